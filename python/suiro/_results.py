"""A results folder."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import _files
from ._binary import find_binary
from ._files import ResultsError
from ._frame import Frame, html_table, nearest, need

if TYPE_CHECKING:
    import matplotlib.figure
    import pyarrow

    from ._names import TableName


@dataclass(frozen=True)
class Trial:
    """One trial of the plan."""

    number: int | None
    """Its number in the whole plan, from 1; None in folders made before trials had numbers."""
    cell: dict[str, str]
    """The value of each axis."""
    repetition: int
    """From 1."""
    seed: int
    """The seed of its random numbers."""
    folder: str
    """Its folder below the results folder."""
    root: Path
    """The results folder."""

    @cached_property
    def outcome(self) -> dict[str, Any]:
        """What `trial.json` says. Raises FileNotFoundError if the trial was not run to its end."""
        return _files.read_document(self.root, f"{self.folder}/trial.json")

    @property
    def machine(self) -> dict[str, Any] | None:
        """The machine that it ran on; None if it did not record it."""
        machine = self.outcome.get("machine")
        return machine if isinstance(machine, dict) else None


@dataclass(frozen=True)
class Axis:
    """An axis of the matrix."""

    name: str
    labels: list[str]


class Results:
    """A results folder, as `suiro run` or `suiro merge` wrote it. Documents are read when they are first asked for."""

    def __init__(self, root: str | os.PathLike[str]) -> None:
        self.root = Path(root)
        try:
            self._manifest = _files.read_document(self.root, "manifest.json")
        except (FileNotFoundError, NotADirectoryError):
            raise FileNotFoundError(
                f"{self.root} is not a results folder: it has no manifest.json\n"
                "hint: give the folder that suiro run wrote, named after --out or below results/"
            ) from None
        try:
            self.axes = [Axis(str(axis["name"]), [str(label) for label in axis["labels"]]) for axis in self._manifest["axes"]]
            self.trials = [self._trial(planned) for planned in self._manifest["plan"]]
            self.scenario = str(self._manifest["scenario"])
            self.title = str(self._manifest["title"])
        except (KeyError, TypeError, AttributeError) as error:
            raise ResultsError(f"{self.root / 'manifest.json'}: not a manifest of this version of suiro: {error!r}") from None

    def _trial(self, planned: dict[str, Any]) -> Trial:
        folder = str(planned["folder"])
        _files.parts(folder)
        cell = {str(name): str(value) for name, value in planned["cell"].items()}
        number = planned.get("number")
        return Trial(number, cell, int(planned["repetition"]), int(planned["seed"]), folder, self.root)

    @property
    def manifest(self) -> dict[str, Any]:
        """What was run, with what, on what."""
        return self._manifest

    @cached_property
    def _summary(self) -> dict[str, Any]:
        return self._document("summary.json")

    @cached_property
    def _table(self) -> pyarrow.Table | None:
        """The rows of a summary of very many trials, which `summary.json` does not have itself."""
        name = self._summary.get("rows_in")
        if name is None:
            return None
        if name != ROWS:
            raise ResultsError(f"{self.root / 'summary.json'}: `rows_in`: expected {ROWS!r}, found {name!r}")
        pa, pq = need("pyarrow"), need("pyarrow.parquet")
        try:
            with os.fdopen(_files.open_beneath(self.root, ROWS), "rb") as file:
                rows = pq.ParquetFile(file)
                values = rows.metadata.num_rows * rows.metadata.num_columns
                if values > VALUES_MAX:
                    raise ResultsError(f"{self.root / ROWS}: expected at most {VALUES_MAX:,} values, found {values:,}")
                table = rows.read()
        except FileNotFoundError:
            raise FileNotFoundError(f"{self.root / ROWS} is missing\nhint: suiro report {self.root} writes it") from None
        except (pa.ArrowException, OSError) as error:
            raise ResultsError(f"{self.root / ROWS}: damaged: {error}") from None
        missing = [column for column in (*map(_column(table.column_names), self.axes), *_FIXED) if column not in table.column_names]
        if missing:
            raise ResultsError(f"{self.root / ROWS}: it has no column {missing[0]!r}")
        return table

    @cached_property
    def _findings(self) -> dict[str, Any]:
        return self._document("findings.json")

    def _document(self, name: str) -> dict[str, Any]:
        try:
            return _files.read_document(self.root, name)
        except FileNotFoundError:
            raise FileNotFoundError(f"{self.root / name} is missing\nhint: suiro report {self.root} writes it") from None

    def trial(self, number: int | None = None, *, repetition: int = 1, **cell: object) -> Trial:
        """The trial of this number, or the only one of these values: `run.trial(tcp="reno", repetition=2)`.

        Raises KeyError if there is none, or more than one.
        """
        if number is not None:
            found = [trial for trial in self.trials if trial.number == number]
        else:
            found = self._chosen(repetition, cell)
        if len(found) != 1:
            axes = "; ".join(f"{axis.name} = {', '.join(axis.labels)}" for axis in self.axes)
            raise KeyError(f"expected one trial, found {len(found)}; the axes are: {axes or 'none'}")
        return found[0]

    def _chosen(self, repetition: int | None, cell: Mapping[str, object]) -> list[Trial]:
        """The trials of these values, which are compared as text. Raises KeyError if the scenario has no such axis, value or repetition."""
        known = {axis.name: axis.labels for axis in self.axes}
        for name, value in cell.items():
            if name not in known:
                raise KeyError(f"there is no axis {name!r}{nearest(name, known)}")
            if str(value) not in known[name]:
                raise KeyError(f"axis {name} has no value {str(value)!r}{nearest(str(value), known[name])}")
        repetitions = sorted({trial.repetition for trial in self.trials})
        if repetition is not None and repetition not in repetitions:
            raise KeyError(f"there is no repetition {repetition!r}; there are {', '.join(map(str, repetitions)) or 'none'}")
        return [
            trial
            for trial in self.trials
            if repetition in (None, trial.repetition) and all(trial.cell.get(name) == str(value) for name, value in cell.items())
        ]

    def summary(self, *, invalid: bool = False) -> Frame:
        """One row per trial: axes, repetition, number, seed, validity and every metric.

        Only valid trials, unless `invalid`. What a metric is stands in `metrics()`.
        """
        if self._table is not None:
            return self._summary_of(self._table, invalid)
        rows = [row for row in self._rows("trials") if invalid or row.get("valid") is True]
        names = list(dict.fromkeys(name for row in rows for name in self._object(row, "metrics")))
        pa = need("pyarrow")
        number = {(tuple(trial.cell.items()), trial.repetition): trial.number for trial in self.trials}
        key = [(tuple((str(k), str(v)) for k, v in self._object(row, "cell").items()), row.get("repetition")) for row in rows]
        columns: dict[str, Any] = self._axis_columns([self._object(row, "cell") for row in rows], frozenset({*_FIXED, *names}))
        try:
            columns["repetition"] = pa.array([row.get("repetition") for row in rows], pa.int64())
            columns["trial"] = pa.array([number.get(one) for one in key], pa.int64())  # type: ignore[arg-type]
            columns["seed"] = pa.array([row.get("seed") for row in rows], pa.uint64())
            columns["valid"] = pa.array([row.get("valid") for row in rows], pa.bool_())
            columns["invalid_because"] = pa.array([row.get("invalid_because") for row in rows], pa.string())
            for name in names:
                columns[name] = pa.array([self._object(row, "metrics").get(name) for row in rows], pa.float64())
            meanings = self._object(self._summary, "metrics")
            fields = [_field(name, column.type, self._object(meanings, name)) for name, column in columns.items()]
        except (pa.ArrowException, TypeError, OverflowError) as error:
            raise ResultsError(f"{self.root / 'summary.json'}: not a summary of this version of suiro: {error}") from None
        return Frame.of(pa.table(list(columns.values()), pa.schema(fields)))

    def _summary_of(self, table: pyarrow.Table, invalid: bool) -> Frame:
        """The summary of very many trials."""
        pa, pc = need("pyarrow"), need("pyarrow.compute")
        columns: dict[str, Any] = {}
        try:
            if not invalid:
                table = table.filter(pc.fill_null(table["valid"], False))
            column = _column(table.column_names)
            for axis in self.axes:
                labels = pa.array(axis.labels, pa.string())
                codes = pc.index_in(table[column(axis)].combine_chunks(), value_set=labels)
                columns[column(axis)] = pa.DictionaryArray.from_arrays(codes, labels, ordered=True)
            for name in ("repetition", "trial"):
                columns[name] = table[name].cast(pa.int64())
            for name in ("seed", "valid", "invalid_because"):
                columns[name] = table[name]
            first = table.column_names.index(_FIXED[-1]) + 1
            for name in table.column_names[first:]:
                columns[name] = table[name].cast(pa.float64())
        except (pa.ArrowException, TypeError) as error:
            raise ResultsError(f"{self.root / ROWS}: not a summary of this version of suiro: {error}") from None
        meanings = self._object(self._summary, "metrics")
        fields = [_field(name, column.type, self._object(meanings, name)) for name, column in columns.items()]
        return Frame.of(pa.table(list(columns.values()), pa.schema(fields)))

    def metrics(self) -> Frame:
        """One row per cell and metric: the mean over valid repetitions, its 95 % interval, unit and meaning.

        Raises ResultsError with more than 10,000 trials, whose means are not kept: group `summary()` by its axes.
        """
        if self._table is not None:
            raise ResultsError(
                f"{self.root / 'summary.json'}: more than 10,000 trials have no means of cells\n"
                "hint: group summary() by the axes: summary().to_pandas().groupby(…)"
            )
        pa = need("pyarrow")
        meanings = self._object(self._summary, "metrics")
        cells: list[dict[str, Any]] = []
        rows: list[dict[str, Any]] = []
        for cell in self._rows("cells"):
            for name, interval in self._object(cell, "metrics").items():
                meaning, figures = self._object(meanings, name), interval if isinstance(interval, dict) else {}
                cells.append(self._object(cell, "cell"))
                rows.append({"metric": name, **{key: meaning.get(key) for key in _WORDS}, **{key: figures.get(key) for key in _FIGURES}})
        columns = self._axis_columns(cells, frozenset({"metric", *_WORDS, *_FIGURES}))
        try:
            for key in ("metric", *_WORDS):
                columns[key] = pa.array([row[key] for row in rows], pa.string())
            columns["n"] = pa.array([row["n"] for row in rows], pa.int64())
            for key in _FIGURES[1:]:
                columns[key] = pa.array([row[key] for row in rows], pa.float64())
        except (pa.ArrowException, TypeError, OverflowError) as error:
            raise ResultsError(f"{self.root / 'summary.json'}: not a summary of this version of suiro: {error}") from None
        return Frame.of(pa.table(columns))

    def findings(self) -> Frame:
        """One row per published claim: what was claimed and measured, and the verdict over the means.

        `verdict` is "holds", "does not hold" or "inconclusive", and null if the claim cannot be judged; `holds` is null for
        the last two. `held_in` of `judged_in` repetitions hold by themselves. `formula` is what is judged.
        """
        pa = need("pyarrow")
        rows = self._findings.get("findings")
        if not isinstance(rows, list):
            raise ResultsError(f"{self.root / 'findings.json'}: expected a list `findings`")
        kinds = {"id": pa.string(), "claim": pa.string(), "published": pa.string(), "measured": pa.string()}
        kinds |= {"holds": pa.bool_(), "verdict": pa.string(), "judged_in": pa.int64(), "held_in": pa.int64()}
        kinds |= {"because": pa.string(), "formula": pa.string(), "note": pa.string()}
        try:
            return Frame.of(pa.table({key: pa.array([row.get(key) for row in rows], kind) for key, kind in kinds.items()}))
        except (pa.ArrowException, TypeError, AttributeError) as error:
            raise ResultsError(f"{self.root / 'findings.json'}: not findings of this version of suiro: {error}") from None

    def table(
        self,
        name: TableName,
        /,
        *,
        columns: list[str] | None = None,
        invalid: bool = False,
        repetition: int | None = None,
        **cell: object,
    ) -> Frame:
        """The records of a table over all trials, with the cell's columns in front.

        Only valid trials, unless `invalid`; only those of these values, as in `table("tcp", tcp="reno", repetition=1)`.
        Raises KeyError if there is no such table, axis, value or repetition. Rows are read
        trial by trial when they are asked for. An axis that is called like a column of the table becomes `axis.NAME`.
        docs/records.md describes the tables. Table `tcp` leaves out looks that show nothing new: a mean over its rows is
        not one over time.
        """
        from . import _tables

        trials = self._chosen(repetition, cell)
        if not invalid:
            good = self._valid
            trials = [trial for trial in trials if (tuple(trial.cell.items()), trial.repetition) in good]
        return _tables.frame(self, trials, name, columns)

    @cached_property
    def _valid(self) -> set[tuple[tuple[tuple[str, str], ...], int]]:
        valid = set()
        if self._table is not None:
            columns = [self._table[_column(self._table.column_names)(axis)].to_pylist() for axis in self.axes]
            flags = zip(self._table["valid"].to_pylist(), self._table["repetition"].to_pylist(), *columns, strict=True)
            for good, repetition, *labels in flags:
                if good is True:
                    pairs = zip(self.axes, labels, strict=True)
                    valid.add((tuple((axis.name, str(label)) for axis, label in pairs if label is not None), int(repetition)))
            return valid
        for row in self._rows("trials"):
            if row.get("valid") is True:
                cell = tuple((str(name), str(value)) for name, value in self._object(row, "cell").items())
                valid.add((cell, int(row["repetition"])))
        return valid

    def plot(self, name: str | None = None, *, repetition: int = 1) -> matplotlib.figure.Figure:
        """The report's figures, drawn by matplotlib.

        Without a name: the panels of the report. With the name of a panel or a series, such as `tcp.cwnd_bytes`: that
        figure, a line per cell. With the name of a metric: its mean and 95 % interval in each cell.
        """
        from . import _plot

        return _plot.plot(self, name, repetition)

    def _rows(self, key: str) -> list[dict[str, Any]]:
        rows = self._summary.get(key, [])
        if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
            raise ResultsError(f"{self.root / 'summary.json'}: expected a list of objects `{key}`")
        return rows

    def _object(self, of: Mapping[str, Any], key: str) -> dict[str, Any]:
        found = of.get(key, {})
        if not isinstance(found, dict):
            raise ResultsError(f"{self.root / 'summary.json'}: expected an object `{key}`")
        return found

    def _axis_columns(self, cells: list[dict[str, Any]], taken: frozenset[str] = frozenset()) -> dict[str, pyarrow.Array]:
        """A column per axis: an ordered dictionary, in the scenario's order."""
        pa = need("pyarrow")
        columns = {}
        for axis in self.axes:
            place = {label: index for index, label in enumerate(axis.labels)}
            # 32 bits where 16 are too few.
            kind = pa.int16() if len(axis.labels) < 1 << 15 else pa.int32()
            codes = pa.array([place.get(str(cell.get(axis.name))) for cell in cells], kind)
            name = f"axis.{axis.name}" if axis.name in taken else axis.name
            columns[name] = pa.DictionaryArray.from_arrays(codes, pa.array(axis.labels, pa.string()), ordered=True)
        return columns

    def __repr__(self) -> str:
        return f"<suiro.Results {str(self.root)!r}: {self.scenario}, {len(self.trials)} trials>"

    def _repr_html_(self) -> str:
        axes = [[axis.name, ", ".join(axis.labels)] for axis in self.axes]
        facts: list[list[Any]] = [["scenario", self.scenario], ["title", self.title], ["trials", len(self.trials)], *axes]
        return html_table(["results folder", str(self.root)], facts)

    def __iter__(self) -> Iterator[Trial]:
        return iter(self.trials)

    def __len__(self) -> int:
        return len(self.trials)


def _field(name: str, kind: pyarrow.DataType, meaning: dict[str, Any]) -> pyarrow.Field:
    """A column with what the summary says of its metric: unit, label and meaning."""
    said = {key: meaning[key] for key in _WORDS if isinstance(meaning.get(key), str) and meaning[key]}
    return need("pyarrow").field(name, kind, metadata=said or None)


def _column(names: list[str]) -> Callable[[Axis], str]:
    """What the column of an axis is called in a table with these columns."""
    return lambda axis: f"axis.{axis.name}" if f"axis.{axis.name}" in names else axis.name


#: The rows of a summary of more than 10,000 trials.
ROWS = "summary.parquet"
#: Most values of it that are read; as in the program.
VALUES_MAX = 100_000_000
#: Its columns between the axes and the metrics.
_FIXED = ("repetition", "trial", "seed", "valid", "skipped", "invalid_because", "folder")

_WORDS = ("label", "unit", "better", "meaning")
_FIGURES = ("n", "mean", "sd", "low", "high")


def load(folder: str | os.PathLike[str]) -> Results:
    """Opens a results folder.

    Raises FileNotFoundError if it is none, and ResultsError if its manifest is damaged.
    """
    return Results(folder)


def run(
    scenario: str,
    *,
    out: str | os.PathLike[str],
    set: Mapping[str, object] | None = None,
    only: Mapping[str, str] | None = None,
    repeat: int | None = None,
    duration: str | None = None,
    seed: int | None = None,
    resume: bool = False,
) -> Results:
    """Runs a scenario with `suiro run`, whose messages go to standard error, and loads its results.

    Invalid trials raise nothing: they are in `summary(invalid=True)`. Raises RuntimeError if nothing could be run.
    """
    command = [find_binary(), "run", scenario, "--out", os.fspath(out)]
    command += [f"--set={path}={value}" for path, value in (set or {}).items()]
    command += [f"--only={axis}={value}" for axis, value in (only or {}).items()]
    options = {"repeat": repeat, "duration": duration, "seed": seed}
    command += [f"--{name}={value}" for name, value in options.items() if value is not None]
    done = subprocess.run([*command, "--resume"] if resume else command, stdout=subprocess.DEVNULL, check=False)
    if done.returncode not in (0, 1) or not (Path(out) / "summary.json").is_file():
        raise RuntimeError(f"{' '.join(command)} ended with exit code {done.returncode}; its messages are on standard error")
    return load(out)
