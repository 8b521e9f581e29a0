"""The records of a results folder: Parquet files of all trials as one table."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import TYPE_CHECKING, Any

from . import _files
from ._files import ResultsError
from ._frame import Frame, nearest, need
from ._names import TABLES

if TYPE_CHECKING:
    import pyarrow

    from ._results import Results, Trial

#: Files that are read at one time.
READERS = 4


def frame(results: Results, trials: list[Trial], name: str, columns: list[str] | None) -> Frame:
    """The table `name` of these trials."""
    if name not in TABLES:
        raise KeyError(f"no table is called {name!r}{nearest(name, TABLES)}")
    source = _Source(results, trials, name, columns)
    return Frame(source.schema, source.batches, source.whole, source.count)


#: What the last word of a column's name says of its unit.
_UNITS = {"ns": "ns", "us": "µs", "ms": "ms", "s": "s", "bytes": "B", "bps": "bit/s", "packets": "packets", "frames": "frames", "db": "dB"}


def _with_unit(field: pyarrow.Field) -> pyarrow.Field:
    """A field as its name describes it: `cwnd_bytes`."""
    _, _, unit = field.name.rpartition("_")
    known = {"unit": _UNITS[unit]} if unit in _UNITS and unit != field.name else None
    return field.remove_metadata() if known is None else field.with_metadata(known)


class _Source:
    def __init__(self, results: Results, trials: list[Trial], name: str, columns: list[str] | None) -> None:
        self.results, self.trials, self.name, self.chosen = results, trials, name, columns
        self.schema, self.records = cache(self._schema), cache(self._records)

    def files(self, trial: Trial) -> list[str]:
        """The trial's files of this table, below the results folder: `NAME.parquet` and `NAME.*.parquet`."""
        names = _files.list_beneath(self.results.root, trial.folder)
        own = f"{self.name}."
        return [f"{trial.folder}/{name}" for name in names if name.startswith(own) and name.endswith(".parquet")]

    def _all(self) -> list[tuple[Trial, str]]:
        return [(trial, file) for trial in self.trials for file in self.files(trial)]

    def _records(self) -> pyarrow.Schema:
        """The columns of all files: those that an older version did not write are null in its files."""
        pa = need("pyarrow")
        with ThreadPoolExecutor(READERS) as pool:
            found = list(pool.map(lambda one: self._read_schema(one[1]), self._all()))
        unique = list({schema.to_string(): schema for schema in found}.values())
        try:
            records = pa.unify_schemas(unique) if unique else pa.schema([])
        except pa.ArrowException as error:
            raise ResultsError(f"{self.results.root}: the files of table {self.name} do not agree: {error}") from None
        return pa.schema(map(_with_unit, records))

    def _schema(self) -> pyarrow.Schema:
        """The columns: those of a trial, then those of the records."""
        pa = need("pyarrow")
        fields = [*self._constants(self.trials[0], 0).items()] if self.trials else []
        front = [pa.field(name, column.type) for name, column in fields]
        schema = pa.schema([*front, *self.records()])
        if self.chosen is None:
            return schema
        unknown = [name for name in self.chosen if name not in schema.names]
        if unknown:
            raise KeyError(f"table {self.name} has no column {unknown[0]!r}{nearest(unknown[0], schema.names)}")
        return pa.schema([schema.field(name) for name in schema.names if name in front_names(front) or name in self.chosen])

    def _read_schema(self, file: str) -> pyarrow.Schema:
        with self._open(file) as parquet:
            return parquet.schema_arrow.remove_metadata()

    def _open(self, file: str) -> Any:
        """A Parquet file, with texts as dictionaries: most of them repeat."""
        pa, pq = need("pyarrow"), need("pyarrow.parquet")
        found = _files.open_beneath(self.results.root, file)
        try:
            source = pa.PythonFile(os.fdopen(found, "rb"), mode="r") if not _MAPPED else _mapped(found)
        except (OSError, pa.ArrowException) as error:
            raise ResultsError(f"{self.results.root / file}: {error}") from None
        try:
            texts = _text_columns(pq, source)
            return pq.ParquetFile(source, read_dictionary=texts)
        except (pa.ArrowException, OSError, ValueError) as error:
            source.close()
            raise ResultsError(f"{self.results.root / file}: not a table: {error}") from None

    def count(self) -> int:
        """The number of rows, by the ends of the files."""
        with ThreadPoolExecutor(READERS) as pool:
            return sum(pool.map(lambda one: self._count(one[1]), self._all()))

    def _count(self, file: str) -> int:
        with self._open(file) as parquet:
            return int(parquet.metadata.num_rows)

    def read(self, trial: Trial, file: str, columns: list[str] | None = None) -> pyarrow.Table:
        """One file, with the trial's columns in front, in the columns of all, or in some of them."""
        pa = need("pyarrow")
        schema = self.schema()
        if columns is not None:
            schema = pa.schema([schema.field(name) for name in columns])
        with self._open(file) as parquet:
            wanted = [name for name in parquet.schema_arrow.names if name in schema.names]
            try:
                table = parquet.read(columns=wanted)
            except (pa.ArrowException, OSError, ValueError) as error:
                raise ResultsError(f"{self.results.root / file}: damaged: {error}") from None
        constants = self._constants(trial, table.num_rows)
        found = []
        for field in schema:
            if field.name in constants:
                found.append(constants[field.name])
            elif field.name in table.column_names:
                column = table[field.name]
                found.append(column if column.type == field.type else column.cast(field.type))
            else:
                found.append(pa.nulls(table.num_rows, field.type))
        return pa.Table.from_arrays(found, schema=schema)

    def _constants(self, trial: Trial, rows: int) -> dict[str, pyarrow.Array]:
        """The columns of a trial: its axes, its repetition, its number."""
        pa = need("pyarrow")
        one = self.results._axis_columns([trial.cell], frozenset({*self.records().names, "repetition", "trial"}))
        columns = {
            name: pa.DictionaryArray.from_arrays(pa.repeat(column.indices[0], rows), column.dictionary, ordered=True)
            for name, column in one.items()
        }
        columns["repetition"] = pa.repeat(pa.scalar(trial.repetition, pa.int32()), rows)
        columns["trial"] = pa.repeat(pa.scalar(trial.number, pa.int32()), rows)
        return columns

    def batches(self) -> Iterator[pyarrow.RecordBatch]:
        """The rows, file by file."""
        for trial, file in self._all():
            yield from self.read(trial, file).to_batches()

    def whole(self, columns: list[str] | None = None) -> pyarrow.Table:
        """All rows, in some columns or all."""
        pa = need("pyarrow")
        schema = self.schema()
        # The usual allocator asks for huge pages, and clearing those takes the kernel longer than reading: 10 million
        # rows of `link` in 2.4 s instead of 1.0 s. Each buffer knows its own allocator, so others may read meanwhile.
        usual = pa.default_memory_pool()
        pa.set_memory_pool(pa.system_memory_pool())
        try:
            with ThreadPoolExecutor(READERS) as pool:
                tables = list(pool.map(lambda one: self.read(one[0], one[1], columns), self._all()))
        finally:
            pa.set_memory_pool(usual)
        return pa.concat_tables(tables) if tables else schema.empty_table()


#: Linux can map an open file by its descriptor, which spares a copy.
_MAPPED = os.path.isdir("/proc/self/fd")


def _mapped(descriptor: int) -> Any:
    pa = need("pyarrow")
    try:
        return pa.memory_map(f"/proc/self/fd/{descriptor}")
    finally:
        os.close(descriptor)


def _text_columns(pq: Any, source: Any) -> list[str]:
    metadata = pq.read_metadata(source)
    source.seek(0)
    columns = [metadata.schema.column(index) for index in range(metadata.num_columns)]
    return [column.path for column in columns if column.physical_type == "BYTE_ARRAY"]


def front_names(fields: list[Any]) -> set[str]:
    """The names of these fields."""
    return {field.name for field in fields}
