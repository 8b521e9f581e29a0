"""The report's figures, drawn by matplotlib from the data in `report.html`, of which nothing is executed."""

from __future__ import annotations

import io
import json
from dataclasses import dataclass
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
#: Cells of one panel, which have as many colours; the report draws its first cells, too.
LINES_MAX = 10
#: Of several series of a cell, the line of each.
_DASHES = ("-", "--", ":", "-.", (0, (5, 1, 1, 1, 1, 1)))

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
        return _lines(page, chosen, list(range(len(series))), repetition)
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
    figure = _shown()(figsize=(8, height * max(1, panels)), layout="constrained")
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


@dataclass
class _Chart:
    """Series that share axes: those of one panel, instance and direction, as in the report."""

    panel: dict[str, Any]
    series: list[int]
    title: str


def _charts(page: dict[str, Any], panels: list[Any], wanted: list[int]) -> list[_Chart]:
    charts: list[_Chart] = []
    for panel in panels:
        groups: dict[tuple[Any, Any], _Chart] = {}
        for index in wanted:
            kind = page["series"][index]
            if kind["panel"] != panel["id"]:
                continue
            instance, direction = kind.get("instance"), kind.get("direction")
            words = " ".join(word for word in (instance, None if panel.get("direction") else direction) if word)
            title = f"{panel['title']}, {words}" if words else panel["title"]
            groups.setdefault((instance, direction), _Chart(panel, [], title)).series.append(index)
        charts += groups.values()
    return charts


def _lines(page: dict[str, Any], panels: list[Any], wanted: list[int], repetition: int) -> matplotlib.figure.Figure:
    all_shown = []
    for cell in page["cells"]:
        trials = [page["trials"][index] for index in cell["trials"]]
        all_shown += [(cell["label"], trial) for trial in trials if trial["repetition"] == repetition and trial["valid"]]
    shown = all_shown[:LINES_MAX]
    some = [chart for chart in _charts(page, panels, wanted) if any(trial["series"][index] for _, trial in shown for index in chart.series)]
    charts = some[:PANELS_MAX]
    figure, axes = _figure(len(charts), 2.2)
    for chart, ax in zip(charts, axes, strict=True):
        if _chart(page, chart, shown, ax) > 1:
            ax.legend(fontsize=7, ncols=2, frameon=False)
        left_out = f" ({len(shown)} of {len(all_shown)} cells)" if len(shown) < len(all_shown) else ""
        ax.set_title(_plain(f"{chart.title}{left_out}"), loc="left", fontsize=10)
        ax.set_ylabel(_plain(page["series"][chart.series[0]]["unit"]))
        ax.margins(x=0)
    if len(charts) < len(some):
        figure.suptitle(f"{len(charts)} of {len(some)} charts", fontsize=10)
    if axes:
        axes[-1].set_xlabel("time in the trial (s)")
    return figure


def _chart(page: dict[str, Any], chart: _Chart, shown: list[tuple[str, dict[str, Any]]], ax: Any) -> int:
    """Draws the series of these trials, a colour for each cell. Gives how many there are."""
    kinds = [page["series"][index] for index in chart.series]
    named = [kind["label"] for kind in kinds]
    named = named if len(set(named)) == len(named) else [kind["name"] for kind in kinds]
    bars = [(cell, index) for cell, _ in enumerate(shown) for index, kind in zip(chart.series, kinds, strict=True) if kind.get("style") == "bar"]
    drawn = 0
    for cell, (label, trial) in enumerate(shown):
        for place, (index, kind) in enumerate(zip(chart.series, kinds, strict=True)):
            points, bin_s = trial["series"][index], trial["bin_s"]
            if not points:
                continue
            words = _plain(", ".join([label] if len(kinds) == 1 else [label, named[place]]))
            times = [(bin_ + 0.5) * bin_s for bin_ in range(len(points))]
            values = [float("nan") if point is None else point for point in points]
            look = {"color": f"C{cell}", "label": words}
            if kind.get("style") == "bar":
                width = 0.8 * bin_s / len(bars)
                shift = (bars.index((cell, index)) - (len(bars) - 1) / 2) * width
                ax.bar([time + shift for time in times], values, width, alpha=1 / (1 + place), **look)
            else:
                steps = "steps-mid" if kind.get("style") in ("step", "bound") else "default"
                ax.plot(times, values, linewidth=1.2, linestyle=_DASHES[place % len(_DASHES)], drawstyle=steps, **look)
            drawn += 1
    return drawn


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
