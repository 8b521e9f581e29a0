"""A table that pandas, polars, DuckDB and pyarrow take as it is, by the Arrow C stream interface."""

from __future__ import annotations

import html
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

#: Rows that a notebook shows.
SHOWN = 20


class Frame:
    """Rows and columns that are read when they are asked for.

    `pandas.DataFrame.from_arrow(frame)`, `polars.DataFrame(frame)` and `pyarrow.table(frame)` take it directly;
    `to_pandas()`, `to_polars()` and `to_arrow()` do the same. Iterating gives record batches.
    """

    def __init__(
        self,
        schema: Callable[[], pyarrow.Schema],
        batches: Callable[[], Iterator[pyarrow.RecordBatch]],
        whole: Callable[[], pyarrow.Table] | None = None,
    ) -> None:
        self._schema, self._batches, self._whole = schema, batches, whole

    @classmethod
    def of(cls, table: pyarrow.Table) -> Frame:
        """A frame of a table that is in memory."""
        return cls(lambda: table.schema, lambda: iter(table.to_batches()), lambda: table)

    @property
    def schema(self) -> pyarrow.Schema:
        """Names and types of the columns."""
        return self._schema()

    @property
    def columns(self) -> list[str]:
        """Names of the columns."""
        return list(self.schema.names)

    def __iter__(self) -> Iterator[pyarrow.RecordBatch]:
        return self._batches()

    def __len__(self) -> int:
        return int(self.to_arrow().num_rows)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The rows as an Arrow C stream, batch by batch: no more than one trial's are in memory."""
        pa = need("pyarrow")
        reader = pa.RecordBatchReader.from_batches(self.schema, self._batches())
        return reader.__arrow_c_stream__(requested_schema)

    def to_arrow(self) -> pyarrow.Table:
        """All rows as a `pyarrow.Table`."""
        if self._whole is not None:
            return self._whole()
        return need("pyarrow").Table.from_batches(list(self._batches()), self.schema)

    def to_pandas(self) -> pandas.DataFrame:
        """All rows as a `pandas.DataFrame`. Axes are ordered categories; integers that may be null stay integers."""
        pa, pd = need("pyarrow"), need("pandas")
        kinds = {pa.int64(): pd.Int64Dtype(), pa.uint64(): pd.UInt64Dtype(), pa.bool_(): pd.BooleanDtype()}
        table = self.to_arrow()
        nullable = {field.name for field in table.schema if table[field.name].null_count}
        full = table.select([name for name in table.column_names if name not in nullable])
        frame = full.to_pandas()
        if nullable:
            rest = table.select(sorted(nullable)).to_pandas(types_mapper=kinds.get)
            frame = pd.concat([frame, rest], axis=1)[table.column_names]
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
        head: list[dict[str, Any]] = []
        for batch in self._batches():
            head.extend(batch.slice(0, SHOWN - len(head)).to_pylist())
            if len(head) >= SHOWN:
                break
        return html_table(self.columns, [list(row.values()) for row in head])


def html_table(columns: list[str], rows: list[list[Any]]) -> str:
    """A table for a notebook: every text is escaped."""

    def cell(value: Any, kind: str) -> str:
        text = "" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)
        return f"<{kind}>{html.escape(text)}</{kind}>"

    head = "".join(cell(name, "th") for name in columns)
    body = "".join(f"<tr>{''.join(cell(value, 'td') for value in row)}</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def need(module: str) -> Any:
    """A module that is loaded when it is first used, with the command that installs it where it is missing."""
    import importlib

    try:
        return importlib.import_module(module)
    except ImportError as error:
        extra = {"pyarrow": "data", "pandas": "data", "polars": "polars", "matplotlib": "plot", "ray": "ray", "optuna": "tune"}
        hint = extra.get(module.split(".")[0], "data")
        raise ImportError(f"{error}\nhint: pip install 'suiro[{hint}]'") from error
