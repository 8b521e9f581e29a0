"""The report's figures, drawn by matplotlib from the data in `report.html`, of which nothing is executed."""

from __future__ import annotations

import io
import json
from functools import cache
from typing import TYPE_CHECKING, Any

from . import _files
from ._files import ResultsError
from ._frame import need

if TYPE_CHECKING:
    import matplotlib.figure

    from ._results import Results

#: Panels that are drawn at most.
PANELS_MAX = 12
#: Lines of one panel; the report draws its first cells, too.
LINES_MAX = 10

_BEGIN, _END = '<script type="application/json" id="data">', "</script>"


def plot(results: Results, name: str | None, repetition: int) -> matplotlib.figure.Figure:
    """As `Results.plot`."""
    try:
        return _drawn(results, _page(results), name, repetition)
    except Unknown as unknown:
        raise KeyError(str(unknown)) from None
    except (TypeError, LookupError, AttributeError) as error:
        raise ResultsError(f"{results.root / 'report.html'}: not a report of this version of suiro: {error!r}") from None


class Unknown(Exception):
    """Nothing is called so."""


def _drawn(results: Results, page: dict[str, Any], name: str | None, repetition: int) -> matplotlib.figure.Figure:
    series, panels = _list(results, page, "series"), _list(results, page, "panels")
    metrics = [metric["name"] for metric in _list(results, page, "metrics")]
    if name in metrics:
        return _bars(results, page, metrics.index(name))
    chosen = [panel for panel in panels if name is None or name == panel["id"]]
    if name is None or chosen:
        return _lines(page, chosen[:PANELS_MAX], list(range(len(series))), repetition)
    own = [index for index, kind in enumerate(series) if kind["name"] == name]
    if not own:
        known = [panel["id"] for panel in panels] + [kind["name"] for kind in series] + metrics
        raise Unknown(f"nothing to plot is called {name!r}; there are {', '.join(known)}")
    return _lines(page, [panel for panel in panels if panel["id"] == series[own[0]]["panel"]], own, repetition)


def _page(results: Results) -> dict[str, Any]:
    try:
        text = _files.read_text(results.root, "report.html")
    except FileNotFoundError:
        raise FileNotFoundError(
            f"{results.root / 'report.html'} is missing\nhint: suiro report {results.root} writes it"
        ) from None
    begin = text.find(_BEGIN)
    end = text.find(_END, begin)
    if begin < 0 or end < 0:
        raise ResultsError(f"{results.root / 'report.html'}: not a report of suiro: it has no data")
    try:
        page = json.loads(text[begin + len(_BEGIN) : end])
    except (ValueError, RecursionError) as error:
        raise ResultsError(f"{results.root / 'report.html'}: its data is not JSON: {error}") from None
    if not isinstance(page, dict):
        raise ResultsError(f"{results.root / 'report.html'}: its data is not an object")
    if page.get("many") is not None:
        try:
            page["cells"] = _cells(page)
        except (KeyError, TypeError, IndexError, AttributeError) as error:
            raise ResultsError(f"{results.root / 'report.html'}: its data is damaged: {error!r}") from None
    return page


def _cells(page: dict[str, Any]) -> list[dict[str, Any]]:
    """The cells of a page of very many trials, which has them column by column. Such a page draws no lines."""
    many, axes = page["many"], [axis["labels"] for axis in page["axes"]]

    def spread(column: dict[str, Any], index: int) -> dict[str, Any] | None:
        mean, half = column["mean"][index], column["ci95"]
        return None if mean is None else {"mean": mean, "ci95": half[index] if half else None}

    def label(index: int) -> str:
        places = zip(axes, many["values"], strict=True)
        return " · ".join("" if values[index] is None else str(labels[values[index]]) for labels, values in places)

    metrics = many["metrics"]
    count = len(metrics[0]["mean"]) if metrics else 0
    return [{"label": label(index), "trials": [], "metrics": [spread(one, index) for one in metrics]} for index in range(count)]


def _list(results: Results, page: dict[str, Any], key: str) -> list[Any]:
    found = page.get(key)
    if not isinstance(found, list):
        raise ResultsError(f"{results.root / 'report.html'}: its data has no list `{key}`")
    return found


def _figure(panels: int, height: float) -> tuple[matplotlib.figure.Figure, list[Any]]:
    figure = _shown()(figsize=(8, height * panels), layout="constrained")
    return figure, list(figure.subplots(panels, 1, squeeze=False, sharex=True)[:, 0]) if panels else []


@cache
def _shown() -> Any:
    """A figure that a notebook shows, whether `%matplotlib inline` was typed or not."""

    class Shown(need("matplotlib.figure").Figure):  # type: ignore[misc]
        def _repr_png_(self) -> bytes:
            picture = io.BytesIO()
            self.savefig(picture, format="png", dpi=100)
            return picture.getvalue()

    return Shown


def _plain(text: object) -> str:
    """Text as it is: matplotlib would take what is between two dollars for mathematics."""
    return str(text).replace("$", r"\$")


def _lines(page: dict[str, Any], panels: list[Any], wanted: list[int], repetition: int) -> matplotlib.figure.Figure:
    shown = []
    for cell in page["cells"]:
        trials = [page["trials"][index] for index in cell["trials"]]
        shown += [(cell["label"], trial) for trial in trials if trial["repetition"] == repetition and trial["valid"]]
    figure, axes = _figure(len(panels), 2.2)
    for panel, ax in zip(panels, axes, strict=True):
        own = [index for index in wanted if page["series"][index]["panel"] == panel["id"]]
        drawn = 0
        for label, trial in shown[:LINES_MAX]:
            for index in own:
                points = trial["series"][index]
                if points is None:
                    continue
                times = [(place + 0.5) * trial["bin_s"] for place in range(len(points))]
                values = [float("nan") if point is None else point for point in points]
                words = [label] if len(own) == 1 else [label, page["series"][index]["label"]]
                ax.plot(times, values, linewidth=1.2, label=_plain(", ".join(words)))
                drawn += 1
        ax.set_title(_plain(panel["title"]), loc="left", fontsize=10)
        ax.set_ylabel(_plain(page["series"][own[0]]["unit"] if own else ""))
        ax.margins(x=0)
        if drawn > 1:
            ax.legend(fontsize=7, ncols=2, frameon=False)
    if axes:
        axes[-1].set_xlabel("time in the trial (s)")
    return figure


def _bars(results: Results, page: dict[str, Any], index: int) -> matplotlib.figure.Figure:
    metric = page["metrics"][index]
    figure, (ax,) = _figure(1, 4.0)
    for place, cell in enumerate(page["cells"]):
        spread = cell["metrics"][index]
        if spread is None:
            continue
        ax.errorbar(place, spread["mean"], yerr=spread["ci95"], fmt="o", capsize=4, color="C0")
    labels = [_plain(cell["label"]) for cell in page["cells"]]
    ax.set_xticks(range(len(labels)), labels, rotation=30 if len(labels) > 4 else 0, ha="right" if len(labels) > 4 else "center")
    unit = f" ({metric['unit']})" if metric["unit"] else ""
    ax.set_ylabel(_plain(f"{metric['label']}{unit}"))
    ax.set_title(_plain(f"{results.title}: mean and 95 % interval"), loc="left", fontsize=10)
    return figure
