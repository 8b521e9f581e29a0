"""Results folders for the tests, and the program."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

CELLS = [("reno", "10 kB"), ("cubic", "10 kB"), ("reno", "100 kB"), ("cubic", "100 kB")]


def table(trial: int, rows: int) -> pa.Table:
    """Rows of a table `tcp`."""
    return pa.table(
        {
            "t_ns": pa.array(range(rows), pa.int64()),
            "host": pa.array(["client"] * rows, pa.string()),
            "cwnd_bytes": pa.array([None if row == 1 else 1000 * trial + row for row in range(rows)], pa.int64()),
        }
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A results folder: four cells, two repetitions, of which trial 8 is not valid."""
    root = tmp_path / "results"
    plan: list[dict[str, Any]] = []
    trials: list[dict[str, Any]] = []
    for repetition in (1, 2):
        for tcp, queue in CELLS:
            number = len(plan) + 1
            cell = {"tcp": tcp, "queue": queue}
            where = f"trials/tcp={tcp},queue={queue.replace(' ', '-')}/{repetition}"
            seed = (1 << 64) - repetition
            plan.append({"cell": cell, "repetition": repetition, "seed": seed, "folder": where, "number": number})
            valid = number != 8
            metrics = {"player.stall_s": number / 2, "media.latency_p95_ms": None}
            why = None if valid else "<script>alert(1)</script>"
            trials.append({"cell": cell, "repetition": repetition, "seed": seed, "valid": valid, "invalid_because": why, "metrics": metrics})
            (root / where).mkdir(parents=True)
            pq.write_table(table(number, 3), root / where / "tcp.client.parquet")
            pq.write_table(table(number, 2).drop_columns(["cwnd_bytes"]), root / where / "tcp.server.parquet")
            (root / where / "trial.json").write_text(json.dumps({"valid": valid, "machine": {"name": "m"}}))
    axes = [{"name": "tcp", "labels": ["reno", "cubic"]}, {"name": "queue", "labels": ["10 kB", "100 kB"]}]
    write(root / "manifest.json", {"scenario": "made", "title": "a <b>test</b>", "axes": axes, "plan": plan})
    interval = {"n": 2, "mean": 1.5, "sd": 0.1, "low": 1.0, "high": 2.0}
    cells = [{"cell": {"tcp": tcp, "queue": queue}, "metrics": {"player.stall_s": interval, "media.latency_p95_ms": None}} for tcp, queue in CELLS]
    meaning = {"label": "stalled", "unit": "s", "better": "lower", "meaning": "Time spent waiting."}
    write(root / "summary.json", {"scenario": "made", "trials": trials, "cells": cells, "metrics": {"player.stall_s": meaning}})
    finding = {"claim": "it holds", "published": "2", "measured": "3", "holds": None, "formula": "a < b", "note": None}
    findings = [
        {**finding, "id": "S0.1", "verdict": None, "judged_in": 0, "held_in": 0, "because": "not judged: no value"},
        {**finding, "id": "S0.2", "verdict": "inconclusive", "judged_in": 5, "held_in": 3, "because": "within the variation"},
    ]
    write(root / "findings.json", {"study": "S0", "findings": findings})
    write_report(root, plan)
    return root


def write(path: Path, document: object) -> None:
    """Writes a document."""
    path.write_text(json.dumps(document))


def write_report(root: Path, plan: list[dict[str, Any]]) -> None:
    """A page with one panel and one series."""
    cells = [
        {"label": f"{tcp} · {queue}", "trials": [index, index + 4], "metrics": [{"n": 2, "mean": index, "sd": 1.0, "ci95": 0.5}]}
        for index, (tcp, queue) in enumerate(CELLS)
    ]
    page = {
        "metrics": [{"name": "player.stall_s", "label": "stalled", "unit": "s"}],
        "panels": [{"id": "window", "title": "Congestion $window$"}],
        "series": [{"name": "tcp.cwnd_bytes", "panel": "window", "label": "cwnd", "unit": "B"}],
        "cells": cells,
        "trials": [{"repetition": one["repetition"], "valid": True, "bin_s": 0.1, "series": [[1, None, 3]]} for one in plan],
    }
    data = json.dumps(page).replace("<", "\\u003c")
    (root / "report.html").write_text(f'<html><script type="application/json" id="data">{data}</script></html>')


@pytest.fixture(scope="session")
def binary() -> str:
    """The program, where it can make hosts."""
    found = os.environ.get("SUIRO_BINARY") or shutil.which("suiro")
    if not found:
        pytest.skip("SUIRO_BINARY does not name the program")
    doctor = subprocess.run([found, "doctor", "--json"], capture_output=True, text=True, check=False)
    if not json.loads(doctor.stdout)["can_run"]:
        pytest.skip("suiro run does not work on this machine: see suiro doctor")
    return found
