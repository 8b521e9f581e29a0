"""A table that pandas, polars, DuckDB and pyarrow take as it is, by the Arrow C stream interface."""

from __future__ import annotations

import difflib
import html
import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, overload

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

#: Rows that a notebook shows.
SHOWN = 20


class Frame:
    """Rows and columns that are read when they are asked for.

    `pandas.DataFrame.from_arrow(frame)`, `polars.DataFrame(frame)` and `pyarrow.table(frame)` take it directly;
    `to_pandas()`, `to_polars()` and `to_arrow()` do the same. `frame["x"]` is a column, `len(frame)` the number of rows,
    `frame.head()` the first rows; iterating gives the rows as dictionaries, which `pandas.DataFrame(frame)` takes too.
    """

    def __init__(
        self,
        schema: Callable[[], pyarrow.Schema],
        batches: Callable[[], Iterator[pyarrow.RecordBatch]],
        whole: Callable[[list[str] | None], pyarrow.Table],
        count: Callable[[], int],
    ) -> None:
        self._schema, self._batches, self._whole, self._count = schema, batches, whole, count

    @classmethod
    def of(cls, table: pyarrow.Table) -> Frame:
        """A frame of a table that is in memory."""

        def whole(columns: list[str] | None) -> pyarrow.Table:
            return table if columns is None else table.select(columns)

        return cls(lambda: table.schema, lambda: iter(table.to_batches()), whole, lambda: int(table.num_rows))

    def __reduce__(self) -> tuple[Any, ...]:
        # All rows: where it is unpickled the files may not be.
        return Frame.of, (self.to_arrow(),)

    @property
    def schema(self) -> pyarrow.Schema:
        """Names and types of the columns. The metadata of a field has its `unit`, if it has one."""
        return self._schema()

    @property
    def columns(self) -> list[str]:
        """Names of the columns."""
        return list(self.schema.names)

    @property
    def units(self) -> dict[str, str]:
        """The unit of each column that has one: `{"t_ns": "ns", …}`."""
        metadata = {field.name: field.metadata or {} for field in self.schema}
        return {name: found[b"unit"].decode() for name, found in metadata.items() if b"unit" in found}

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return len(self), len(self.columns)

    def __len__(self) -> int:
        return self._count()

    def __bool__(self) -> bool:
        # As of any object: how many rows it has is in files, and pandas refuses to say.
        return True

    def __contains__(self, name: object) -> bool:
        return name in self.columns

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for batch in self._batches():
            yield from batch.to_pylist()

    def batches(self) -> Iterator[pyarrow.RecordBatch]:
        """The rows as record batches: no more than one trial's are in memory."""
        return self._batches()

    @overload
    def __getitem__(self, name: str) -> pandas.Series: ...
    @overload
    def __getitem__(self, name: list[str]) -> Frame: ...
    def __getitem__(self, name: str | list[str]) -> pandas.Series | Frame:
        """A column as a `pandas.Series`; a frame of some columns for a list of names. Only these are read.

        Raises KeyError if there is no such column.
        """
        names = [name] if isinstance(name, str) else list(name)
        for one in names:
            if one not in self.columns:
                raise KeyError(f"no column {one!r}{nearest(str(one), self.columns)}")
        some = Frame.of(self._whole(names).select(names))
        return some.to_pandas()[name] if isinstance(name, str) else some

    def head(self, rows: int = 5) -> pandas.DataFrame:
        """The first rows; no more of the files are read than have them."""
        pa = need("pyarrow")
        first: list[Any] = []
        left = max(rows, 0)
        for batch in self._batches() if left else ():
            first.append(batch.slice(0, left))
            left -= first[-1].num_rows
            if left == 0:
                break
        return Frame.of(pa.Table.from_batches(first, self.schema)).to_pandas()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The rows as an Arrow C stream, batch by batch."""
        pa = need("pyarrow")
        reader = pa.RecordBatchReader.from_batches(self.schema, self._batches())
        return reader.__arrow_c_stream__(requested_schema)

    def to_arrow(self) -> pyarrow.Table:
        """All rows as a `pyarrow.Table`."""
        return self._whole(None)

    def to_pandas(self) -> pandas.DataFrame:
        """All rows as a `pandas.DataFrame`, with `attrs["units"]`. Axes are ordered categories; integers that may be null stay integers."""
        pa, pd = need("pyarrow"), need("pandas")
        kinds = {pa.int64(): pd.Int64Dtype(), pa.uint64(): pd.UInt64Dtype(), pa.bool_(): pd.BooleanDtype()}
        table = self.to_arrow()
        nullable = {field.name for field in table.schema if table[field.name].null_count}
        full = table.select([name for name in table.column_names if name not in nullable])
        frame = full.to_pandas()
        if nullable:
            rest = table.select(sorted(nullable)).to_pandas(types_mapper=kinds.get)
            frame = pd.concat([frame, rest], axis=1)[table.column_names]
        frame.attrs["units"] = self.units
        return frame

    def to_polars(self) -> polars.DataFrame:
        """All rows as a `polars.DataFrame`."""
        frame = need("polars").from_arrow(self.to_arrow())
        return frame

    def rows(self) -> list[dict[str, Any]]:
        """All rows as dictionaries."""
        return list(self.to_arrow().to_pylist())

    def __repr__(self) -> str:
        return f"<suiro.Frame of the columns {', '.join(self.columns)}>"

    def _repr_html_(self) -> str:
        head = list(itertools.islice(self, SHOWN))
        return html_table(self.columns, [list(row.values()) for row in head])


def html_table(columns: list[str], rows: list[list[Any]]) -> str:
    """A table for a notebook: every text is escaped."""

    def cell(value: Any, kind: str) -> str:
        text = "" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)
        return f"<{kind}>{html.escape(text)}</{kind}>"

    head = "".join(cell(name, "th") for name in columns)
    body = "".join(f"<tr>{''.join(cell(value, 'td') for value in row)}</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def nearest(name: str, known: Iterable[str]) -> str:
    """What was probably meant, or what there is: the end of a message."""
    names = list(known)
    near = difflib.get_close_matches(name, names, 1)
    return f": did you mean {near[0]!r}?" if near else f"; there are {', '.join(names) or 'none'}"


def need(module: str) -> Any:
    """A module that is loaded when it is first used, with the command that installs it where it is missing."""
    import importlib

    try:
        return importlib.import_module(module)
    except ImportError as error:
        extra = {"pyarrow": "data", "pandas": "data", "polars": "polars", "matplotlib": "plot", "ray": "ray", "optuna": "tune"}
        hint = extra.get(module.split(".")[0], "data")
        raise ImportError(f"{error}\nhint: install suiro's wheel with the extra `{hint}`") from error
