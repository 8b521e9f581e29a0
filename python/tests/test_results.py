"""Results folders as data frames."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import suiro
from suiro import _tables


def test_the_summary_has_a_row_per_trial(folder: Path) -> None:
    run = suiro.load(folder)
    frame = run.summary().to_pandas()
    assert len(frame) == 7, "trial 8 is not valid"
    assert len(run.summary(invalid=True)) == 8
    assert list(frame.columns[:4]) == ["tcp", "queue", "repetition", "trial"]
    assert list(frame["tcp"].cat.categories) == ["reno", "cubic"]
    assert frame["queue"].cat.ordered
    assert frame.groupby("queue", observed=True)["player.stall_s"].mean().index.tolist() == ["10 kB", "100 kB"]
    assert frame["media.latency_p95_ms"].isna().all()
    assert frame["seed"].iloc[0] == (1 << 64) - 1
    assert run.summary().to_polars()["trial"].to_list() == [1, 2, 3, 4, 5, 6, 7]


def test_metrics_explain_themselves(folder: Path) -> None:
    rows = suiro.load(folder).metrics().rows()
    assert len(rows) == 8
    first = rows[0]
    assert (first["tcp"], first["metric"], first["unit"], first["n"], first["low"]) == ("reno", "player.stall_s", "s", 2, 1.0)
    assert rows[1]["mean"] is None and rows[1]["unit"] is None


def test_findings(folder: Path) -> None:
    unjudged, inconclusive = suiro.load(folder).findings().rows()
    assert (unjudged["id"], unjudged["holds"], unjudged["verdict"], unjudged["judged_in"]) == ("S0.1", None, None, 0)
    assert (inconclusive["holds"], inconclusive["verdict"]) == (None, "inconclusive")
    assert (inconclusive["held_in"], inconclusive["judged_in"], inconclusive["formula"]) == (3, 5, "a < b")


def test_tables_have_the_cell_in_front_and_older_files_have_nulls(folder: Path) -> None:
    frame = suiro.load(folder).table("tcp")
    assert frame.columns == ["tcp", "queue", "repetition", "trial", "t_ns", "host", "cwnd_bytes"]
    whole = frame.to_polars()
    assert whole.height == 7 * 5
    assert whole.filter(pl.col("trial") == 2)["cwnd_bytes"].to_list() == [2000, None, 2002, None, None]
    assert frame.to_pandas()["cwnd_bytes"].dtype == "Int64"
    some = suiro.load(folder).table("tcp", columns=["t_ns"], tcp="cubic")
    assert some.columns == ["tcp", "queue", "repetition", "trial", "t_ns"]
    assert set(some.to_polars()["tcp"]) == {"cubic"}


def test_pandas_polars_and_arrow_take_frames_as_they_are(folder: Path) -> None:
    frame = suiro.load(folder).table("tcp")
    assert pl.DataFrame(frame).height == pa.table(frame).num_rows == len(pd.DataFrame.from_arrow(frame)) == 35
    assert sum(batch.num_rows for batch in frame.batches()) == 35


def test_an_axis_called_like_a_column_keeps_both(folder: Path) -> None:
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["axes"][0]["name"] = "host"
    for planned in manifest["plan"]:
        planned["cell"]["host"] = planned["cell"].pop("tcp")
    (folder / "manifest.json").write_text(json.dumps(manifest))
    columns = suiro.load(folder).table("tcp", invalid=True).columns
    assert columns[0] == "axis.host" and "host" in columns


def test_what_is_not_there_is_named(folder: Path) -> None:
    run = suiro.load(folder)
    with pytest.raises(KeyError, match="did you mean 'tcp'"):
        run.table("tpc")  # type: ignore[arg-type]
    with pytest.raises(KeyError, match="no column 'x'"):
        run.table("tcp", columns=["x"]).to_arrow()
    with pytest.raises(KeyError, match="axis tcp has no value 'bbr'; there are reno, cubic"):
        run.trial(tcp="bbr")
    with pytest.raises(KeyError, match="tcp = reno, cubic"):
        run.trial(tcp="reno")
    with pytest.raises(KeyError, match="nothing to plot is called 'x'"):
        run.plot("x")
    with pytest.raises(FileNotFoundError, match="hint: give the folder"):
        suiro.load(folder / "trials")
    assert run.table("link").to_arrow().num_rows == 0
    assert run.trial(tcp="cubic", queue="10 kB", repetition=2).machine == {"name": "m"}
    assert run.trial(3).cell == {"tcp": "reno", "queue": "100 kB"}


def many(folder: Path) -> None:
    """Makes the summary and the page of this folder those of very many trials."""
    summary = json.loads((folder / "summary.json").read_text())
    plan = json.loads((folder / "manifest.json").read_text())["plan"]
    rows = summary["trials"]
    columns = {axis: [row["cell"][axis] for row in rows] for axis in ("tcp", "queue")}
    columns |= {"repetition": pa.array([row["repetition"] for row in rows], pa.uint64())}
    columns |= {"trial": pa.array([one["number"] for one in plan], pa.uint64())}
    columns |= {"seed": pa.array([row["seed"] for row in rows], pa.uint64())}
    columns |= {"valid": [row["valid"] for row in rows], "skipped": [False] * len(rows)}
    columns |= {"invalid_because": [row["invalid_because"] for row in rows], "folder": [one["folder"] for one in plan]}
    for name in ("media.latency_p95_ms", "player.stall_s"):
        columns[name] = pa.array([row["metrics"][name] for row in rows], pa.float64())
    pq.write_table(pa.table(columns), folder / "summary.parquet")
    (folder / "summary.json").write_text(json.dumps({**summary, "trials": [], "cells": [], "rows_in": "summary.parquet"}))
    page = {"metrics": [{"name": "player.stall_s", "label": "stalled", "unit": "s"}], "panels": [], "series": [], "cells": [], "trials": []}
    page["axes"] = [{"name": "tcp", "labels": ["reno", "cubic"]}]
    page["many"] = {"values": [[0, 1, None]], "metrics": [{"mean": [1, None, 3], "ci95": []}]}
    (folder / "report.html").write_text(f'<script type="application/json" id="data">{json.dumps(page)}</script>')


def test_rows_of_very_many_trials_come_from_their_table(folder: Path) -> None:
    before = suiro.load(folder)
    names = [*before.summary().columns[:-2], "player.stall_s", "media.latency_p95_ms"]
    expected = [before.summary(invalid=every).to_arrow().select(names).to_pylist() for every in (False, True)]
    rows = before.table("tcp").to_arrow().num_rows
    kinds = before.summary().schema
    many(folder)
    run = suiro.load(folder)
    assert [run.summary(invalid=every).to_arrow().select(names).to_pylist() for every in (False, True)] == expected
    assert run.summary().units == before.summary().units
    pandas = run.summary().to_pandas()
    assert list(pandas["tcp"].cat.categories) == ["reno", "cubic"] and pandas["tcp"].cat.ordered
    assert run.summary().schema.field("seed").type == kinds.field("seed").type
    assert run.table("tcp").to_arrow().num_rows == rows, "only valid trials"
    with pytest.raises(suiro.ResultsError, match="group summary"):
        run.metrics()
    assert len(run.plot("player.stall_s").axes[0].containers) == 2
    (folder / "summary.parquet").write_bytes(b"PAR1")
    with pytest.raises(suiro.ResultsError, match="summary.parquet: damaged"):
        suiro.load(folder).summary()
    pq.write_table(pa.table({"x": [1]}), folder / "summary.parquet")
    with pytest.raises(suiro.ResultsError, match="it has no column 'tcp'"):
        suiro.load(folder).summary()
    (folder / "summary.parquet").unlink()
    with pytest.raises(FileNotFoundError, match="hint: suiro report"):
        suiro.load(folder).summary()


def test_figures(folder: Path) -> None:
    run = suiro.load(folder)
    figure = run.plot()
    assert figure.axes[0].get_title(loc="left") == r"Congestion \$window\$"
    assert len(figure.axes[0].lines) == 4
    assert list(run.plot("tcp.cwnd_bytes").axes[0].lines[0].get_ydata())[::2] == [1, 3]
    assert len(run.plot("player.stall_s").axes[0].containers) == 4
    run.plot().canvas.draw()


def test_notebooks_show_text_as_text(folder: Path) -> None:
    run = suiro.load(folder)
    assert "&lt;script&gt;" in run.summary(invalid=True)._repr_html_()
    assert "<script" not in run.summary(invalid=True)._repr_html_()
    assert "&lt;b&gt;" in run._repr_html_()


@pytest.mark.parametrize(
    ("path", "content", "says"),
    [
        ("manifest.json", "[]", "expected an object"),
        ("manifest.json", "{", "not JSON"),
        ("manifest.json", '{"axes": 1}', "not a manifest"),
        ("manifest.json", "[" * 100_000, "not JSON"),
        ("summary.json", '{"trials": 7}', "expected a list"),
        ("summary.json", '{"trials": [{"valid": true, "metrics": {"x": "y"}, "cell": {}}]}', "not a summary"),
        ("findings.json", '{"findings": [1]}', "not findings"),
        ("report.html", "<html>", "it has no data"),
        ("report.html", '<script type="application/json" id="data">[]</script>', "not an object"),
        ("report.html", '<script type="application/json" id="data">{"series": [1], "panels": [2], "metrics": []}</script>', "not a report"),
    ],
)
def test_damaged_documents_are_refused(folder: Path, path: str, content: str, says: str) -> None:
    (folder / path).write_text(content)
    with pytest.raises(suiro.ResultsError, match=says):
        run = suiro.load(folder)
        run.summary()
        run.findings()
        run.plot()


def test_links_and_devices_are_not_read(folder: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret.parquet"
    pq.write_table(pa.table({"t_ns": [1]}), secret)
    victim = next((folder / "trials").glob("*/1/tcp.client.parquet"))
    victim.unlink()
    victim.symlink_to(secret)
    with pytest.raises(suiro.ResultsError, match="links are not followed"):
        suiro.load(folder).table("tcp").to_arrow()
    victim.unlink()
    os.mkfifo(victim)
    with pytest.raises(suiro.ResultsError, match="regular file"):
        suiro.load(folder).table("tcp").to_arrow()
    (folder / "summary.json").unlink()
    (folder / "summary.json").symlink_to("/etc/passwd")
    with pytest.raises(suiro.ResultsError, match="links are not followed"):
        suiro.load(folder).summary()


def test_paths_do_not_lead_out(folder: Path) -> None:
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["plan"][0]["folder"] = "../elsewhere"
    (folder / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(suiro.ResultsError, match="below its folder"):
        suiro.load(folder)


@pytest.mark.parametrize("place", [4, 0.3, 0.6, 0.9, -5])
def test_damaged_tables_are_refused(folder: Path, place: float) -> None:
    victim = next((folder / "trials").glob("*/1/tcp.client.parquet"))
    content = bytearray(victim.read_bytes())
    at = int(place * len(content)) if isinstance(place, float) else place
    content[at : at + 4] = b"\xff\xff\xff\xff"
    victim.write_bytes(content)
    frame = suiro.load(folder).table("tcp")
    try:
        assert frame.to_arrow().num_rows > 0
    except suiro.ResultsError as error:
        assert str(victim.name) in str(error)
    victim.write_bytes(b"PAR1")
    with pytest.raises(suiro.ResultsError, match="not a table"):
        suiro.load(folder).table("tcp").to_arrow()


def test_the_import_loads_nothing_large() -> None:
    script = "import sys, suiro; print([m for m in ('pyarrow', 'pandas', 'numpy', 'ray', 'matplotlib', 'asyncio') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"



def test_a_misspelt_axis_value_or_repetition_is_an_error(folder: Path) -> None:
    run = suiro.load(folder)
    for wrong, says in [
        ({"tpc": "reno"}, "there is no axis 'tpc': did you mean 'tcp'"),
        ({"tcp": "renno"}, "axis tcp has no value 'renno': did you mean 'reno'"),
        ({"queue": 10}, "axis queue has no value '10'"),
        ({"repetition": 3}, "there is no repetition 3; there are 1, 2"),
        ({"repetition": "1"}, "there is no repetition '1'"),
    ]:
        with pytest.raises(KeyError, match=says):
            run.table("tcp", **wrong)  # type: ignore[arg-type]
        with pytest.raises(KeyError, match=says):
            run.trial(**wrong)  # type: ignore[arg-type]
    first = run.table("tcp", repetition=1, tcp="reno").to_pandas()
    assert set(first["repetition"]) == {1} and set(first["trial"]) == {1, 3}


def test_frames_are_what_a_user_of_pandas_expects(folder: Path) -> None:
    run = suiro.load(folder)
    for frame in (run.summary(), run.table("tcp"), run.table("tcp", tcp="cubic")):
        plain, whole = pd.DataFrame(frame), frame.to_pandas()
        assert list(plain.columns) == list(whole.columns) == frame.columns
        assert plain["tcp"].tolist() == frame["tcp"].tolist() == whole["tcp"].tolist()
        assert len(frame) == len(plain) == len(whole) and frame.shape == whole.shape
        pd.testing.assert_frame_equal(frame.head(3), whole.head(3), check_dtype=False)
        pd.testing.assert_frame_equal(pickle.loads(pickle.dumps(frame)).to_pandas(), whole)
        assert frame["tcp"].cat.ordered and "tcp" in frame and "tpc" not in frame
        assert frame[["trial", "tcp"]].columns == ["trial", "tcp"]
        assert frame.head(0).shape == (0, whole.shape[1]) and len(frame.head(1000)) == len(whole)
        with pytest.raises(KeyError, match="no column 'tpc': did you mean 'tcp'"):
            frame["tpc"]
    assert bool(run.table("link")) and len(run.table("link")) == 0
    again = pickle.loads(pickle.dumps(run))
    assert again.axes == run.axes and isinstance(again.axes[0], suiro.Axis)
    assert [row["trial"] for row in run.summary()] == [1, 2, 3, 4, 5, 6, 7]


def test_counting_and_looking_read_little(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    frame, read = suiro.load(folder).table("tcp"), list[str]()
    original = _tables._Source.read

    def counted(self: Any, trial: Any, file: str, columns: Any = None) -> Any:
        read.append(file)
        return original(self, trial, file, columns)

    monkeypatch.setattr(_tables._Source, "read", counted)
    assert len(frame) == 35 and frame.shape == (35, 7) and not read
    assert len(frame.head(4)) == 4 and len(read) == 2


def test_units_are_in_the_schema(folder: Path) -> None:
    run = suiro.load(folder)
    table = run.table("tcp")
    assert table.units == {"t_ns": "ns", "cwnd_bytes": "B"}
    assert pa.table(table).schema.field("cwnd_bytes").metadata == {b"unit": b"B"}
    assert table.to_arrow().schema.equals(table.schema, check_metadata=True)
    assert table.to_pandas().attrs["units"] == table.units
    summary = run.summary()
    assert summary.units == {"player.stall_s": "s"}
    assert summary.schema.field("player.stall_s").metadata[b"meaning"] == b"Time spent waiting."


def test_an_axis_called_like_a_column_keeps_its_values_where_that_is_not_read(folder: Path) -> None:
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["axes"][0]["name"] = "host"
    for planned in manifest["plan"]:
        planned["cell"]["host"] = planned["cell"].pop("tcp")
    (folder / "manifest.json").write_text(json.dumps(manifest))
    some = suiro.load(folder).table("tcp", columns=["t_ns"], invalid=True)
    assert set(some.to_polars()["axis.host"]) == {"reno", "cubic"}


def test_an_axis_called_like_a_column_of_the_metrics_keeps_both(folder: Path) -> None:
    for name in ("manifest.json", "summary.json"):
        document = json.loads((folder / name).read_text())
        for one in [*document.get("plan", []), *document.get("trials", []), *document.get("cells", [])]:
            one["cell"]["n"] = one["cell"].pop("tcp")
        for axis in document.get("axes", [])[:1]:
            axis["name"] = "n"
        (folder / name).write_text(json.dumps(document))
    frame = suiro.load(folder).metrics()
    assert frame.columns[:3] == ["axis.n", "queue", "metric"]
    first = frame.rows()[0]
    assert (first["axis.n"], first["n"], first["mean"]) == ("reno", 2, 1.5)


def change_report(folder: Path, change: Any) -> None:
    """Changes the data of the page."""
    text = (folder / "report.html").read_text()
    before, after = text.index("data\">") + len("data\">"), text.index("</script>")
    page = json.loads(text[before:after])
    change(page)
    (folder / "report.html").write_text(f"{text[:before]}{json.dumps(page)}{text[after:]}")


def test_each_instance_and_direction_has_a_chart_of_its_own(folder: Path) -> None:
    def change(page: dict[str, Any]) -> None:
        [kind] = page["series"]
        where = [("a", "down"), ("a", "up"), ("b", "down"), ("b", "down")]
        page["series"] = [{**kind, "instance": instance, "direction": direction, "style": "line"} for instance, direction in where]
        page["series"][3]["label"] = "threshold"
        for trial in page["trials"]:
            trial["series"] = [[1, None, 3]] * 4

    change_report(folder, change)
    figure = suiro.load(folder).plot()
    titles = [ax.get_title(loc="left").removeprefix(r"Congestion \$window\$") for ax in figure.axes]
    assert titles == [", a down", ", a up", ", b down"]
    for ax in figure.axes:
        texts = [text.get_text() for text in ax.get_legend().get_texts()]
        assert len(texts) == len(set(texts)) == len(ax.lines)
        looks = {(line.get_color(), str(line.get_linestyle())) for line in ax.lines}
        assert len(looks) == len(ax.lines)
    assert len(figure.axes[2].lines) == 8


def test_a_chart_says_which_cells_it_leaves_out(folder: Path) -> None:
    def change(page: dict[str, Any]) -> None:
        page["cells"] = [{**page["cells"][0], "label": f"cell {index}", "trials": [0]} for index in range(12)]

    change_report(folder, change)
    [ax] = suiro.load(folder).plot().axes
    assert len(ax.lines) == 10
    assert ax.get_title(loc="left").endswith(" (10 of 12 cells)")


def test_steps_are_steps_and_bars_are_bars(folder: Path) -> None:
    def change(page: dict[str, Any]) -> None:
        [kind] = page["series"]
        page["panels"] = [{"id": "steps", "title": "Steps"}, {"id": "bars", "title": "Bars"}]
        page["series"] = [{**kind, "panel": "steps", "style": "step"}, {**kind, "panel": "bars", "style": "bar"}]
        for trial in page["trials"]:
            trial["series"] = [[1, None, 3]] * 2

    change_report(folder, change)
    steps, bars = suiro.load(folder).plot().axes
    assert [line.get_drawstyle() for line in steps.lines] == ["steps-mid"] * 4
    assert not bars.lines and len(bars.containers) == 4
    lefts = [container.patches[0].get_x() for container in bars.containers]
    assert len(set(lefts)) == 4, "next to each other"
