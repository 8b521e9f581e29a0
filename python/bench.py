"""The targets of the Python package and of sweeps, measured: `make bench-python`, or `scripts/bench-python NAME…`.

import: `import suiro` in a fresh interpreter. table: 10 million rows of table `link`. many: 100,000 trials in one folder,
reported and summarised. engine: what a sweep costs per trial compared with `suiro run`, on this machine and on a Ray
cluster.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROWS = 10_000_000
TRIALS = 100_000
#: A trial as the targets mean it, in seconds.
TRIAL_S = 30.0


@dataclass
class Figure:
    """What was measured."""

    what: str
    value: float
    unit: str
    most: float | None

    def __str__(self) -> str:
        target = "" if self.most is None else f"   target: at most {self.most:g}{'' if self.value <= self.most else ', NOT MET'}"
        return f"{self.what:62} {self.value:10.3g} {self.unit}{target}"


def timed(command: list[str], **more: Any) -> tuple[float, float]:
    """Runs a command. Gives seconds, and the most memory that it had resident, in MB."""
    began = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, **more)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in (0, 1):
        raise SystemExit(f"{' '.join(command)} ended with exit code {process.returncode}")
    return time.perf_counter() - began, usage.ru_maxrss / 1000


def imports(_binary: str, _room: Path) -> list[Figure]:
    """The best of five: the first reads files from the disk."""
    with_it = min(timed([sys.executable, "-c", "import suiro"])[0] for _ in range(5))
    return [Figure("import suiro, interpreter included", with_it, "s", 0.3)]


def table(binary: str, room: Path) -> list[Figure]:
    """Twenty trials of half a million rows, from a recorded table."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    import suiro

    out = record(binary, room)
    trial = suiro.load(out).trials[0]
    (file,) = (out / trial.folder).glob("link*.parquet")
    recorded = pq.read_table(file, partitioning=None)
    each = ROWS // 20
    rows = pa.concat_tables([recorded] * (each // recorded.num_rows + 1)).slice(0, each).combine_chunks()
    # Times and numbers of packets are all different, as in a long trial.
    growing = pa.array(range(0, each * 1000, 1000), pa.int64())
    for index, field in enumerate(rows.schema):
        if field.name.endswith("_ns") or field.name == "packet":
            rows = rows.set_column(index, field, pc.add(rows.column(index).cast(pa.int64()), growing).cast(field.type))
    pq.write_table(rows, room / "link.parquet", compression="snappy")
    copies(out, room / "table", 20, {file.name: room / "link.parquet"})
    script = """
import sys, time, suiro
began = time.perf_counter()
frame = suiro.load(sys.argv[1]).table('link').to_arrow()
assert frame.num_rows == int(sys.argv[2])
print(time.perf_counter() - began)
"""
    command = [sys.executable, "-c", script, str(room / "table"), str(each * 20)]
    best = min(float(subprocess.run(command, capture_output=True, text=True, check=True).stdout) for _ in range(3))
    return [Figure(f"{each * 20:,} rows of {rows.num_columns} columns by table('link')", best, "s", 2.0)]


def many(binary: str, room: Path) -> list[Figure]:
    """Trials of two seconds, copied. `suiro sweep` merges trials that are analysed, which the second report is about."""
    out = record(binary, room)
    folder = room / "many"
    copies(out, folder, TRIALS, {})
    figures = []
    for what, most in [("suiro report, first, of", None), ("suiro report of", 60.0)]:
        seconds, memory = timed([binary, "report", str(folder)])
        figures.append(Figure(f"{what} {TRIALS:,} trials", seconds, "s", most))
        figures.append(Figure("    its memory", memory, "MB", 2000.0))
    figures.append(Figure("    the page", (folder / "report.html").stat().st_size / 1e6, "MB", 20.0))
    script = "import sys, suiro; assert len(suiro.load(sys.argv[1]).summary().to_pandas()) == int(sys.argv[2])"
    seconds, memory = timed([sys.executable, "-c", script, str(folder), str(TRIALS)])
    figures.append(Figure(f"load().summary().to_pandas() of {TRIALS:,} trials", seconds, "s", 20.0))
    figures.append(Figure("    its memory", memory, "MB", 2000.0))
    return figures


def engine(binary: str, room: Path) -> list[Figure]:
    """The time that each further trial takes, beyond that of `suiro run`, so that what is spent once does not count."""
    target = TRIAL_S * 0.02
    run = slope(room, "run", lambda n, out: [binary, "run", "ping", "--duration=2 s", f"--repeat={n}", "--jobs=1", "--retries=0", f"--out={out}"])
    figures = [Figure("suiro run: a trial of 2 s", run, "s", None)]
    words = [binary, "sweep", "ping", "--duration=2 s", "--retries=0"]
    local = slope(room, "local", lambda n, out: [*words, f"--repeat={n}", "--jobs=1", f"--out={out}", "--on=local"])
    figures.append(Figure("sweep on this machine: the engine, per trial", local - run, "s", target))
    try:
        from ray.cluster_utils import Cluster
    except ImportError:
        print("skipped: sweep on Ray: install suiro's wheel with the extra `ray`", file=sys.stderr)
        return figures
    os.environ.setdefault("SUIRO_BINARY", binary)
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
    try:
        cluster.add_node(num_cpus=2, resources={"suiro_link": 1})
        cluster.wait_for_nodes()
        ray = slope(room, "ray", lambda n, out: [*words, f"--repeat={n}", f"--out={out}", f"--on=ray:{cluster.address}"])
    finally:
        cluster.shutdown()
    figures.append(Figure("sweep on a Ray cluster: the engine, per trial", ray - run, "s", target))
    return figures


def slope(room: Path, name: str, command: Callable[[int, Path], list[str]]) -> float:
    """Seconds for each further trial."""
    few, more = 2, 8
    took = {n: timed(command(n, room / f"{name}-{n}"), env={**os.environ, "SUIRO_PYTHON": sys.executable})[0] for n in (few, more)}
    return (took[more] - took[few]) / (more - few)


def record(binary: str, room: Path) -> Path:
    """A folder of one short trial; made once."""
    out = room / "recorded"
    if not out.exists():
        command = [binary, "run", "ping", "--duration", "2 s", "--out", str(out)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return out


def copies(source: Path, out: Path, trials: int, instead: dict[str, Path]) -> None:
    """A results folder of copies of the only trial of another, under other cells; files that are the same are linked."""
    manifest = json.loads((source / "manifest.json").read_text())
    original = source / manifest["plan"][0]["folder"]
    outcome = json.loads((original / "trial.json").read_text())
    sides = min(100, trials), -(-trials // min(100, trials))
    axes = [{"name": name, "labels": [str(n) for n in range(side)]} for name, side in zip(("rate", "delay"), sides, strict=True)]
    plan = []
    files = [file for file in original.iterdir() if file.suffix == ".parquet"]
    # A file has 65,000 links at most.
    places = [out.with_name(f"{out.name}-{copy}") for copy in range(trials // 50_000 + 1)]
    for place in places:
        place.mkdir(parents=True)
        for file in files:
            shutil.copyfile(instead.get(file.name, file), place / file.name)
    for number in range(trials):
        cell = {"rate": str(number % sides[0]), "delay": str(number // sides[0])}
        folder = f"trials/rate={cell['rate']},delay={cell['delay']}/1"
        (out / folder).mkdir(parents=True)
        plan.append({**manifest["plan"][0], "cell": cell, "seed": number, "folder": folder, "number": number + 1})
        (out / folder / "trial.json").write_text(json.dumps({**outcome, "cell": cell, "seed": number}))
        for file in files:
            os.link(places[number // 50_000] / file.name, out / folder / file.name)
    manifest |= {"axes": axes, "plan": plan, "plan_trials": trials, "self_checks": {}}
    (out / "manifest.json").write_text(json.dumps(manifest))
    rows = [{"cell": one["cell"], "repetition": 1, "seed": one["seed"], "valid": True, "metrics": {}} for one in plan]
    (out / "summary.json").write_text(json.dumps({"trials": rows, "cells": [], "metrics": {}}))


MEASUREMENTS: dict[str, Callable[[str, Path], list[Figure]]] = {"import": imports, "table": table, "many": many, "engine": engine}


def main() -> int:
    """Exit code 1 if a target is missed."""
    names = sys.argv[1:] or list(MEASUREMENTS)
    unknown = [name for name in names if name not in MEASUREMENTS]
    if unknown:
        print(f"error: expected {', '.join(MEASUREMENTS)}, found {unknown[0]}", file=sys.stderr)
        return 2
    binary = os.environ["SUIRO_BINARY"]
    missed = False
    keep = os.environ.get("SUIRO_KEEP")
    room = Path(keep or tempfile.mkdtemp(prefix="suiro-bench-"))
    room.mkdir(parents=True, exist_ok=True)
    try:
        for name in names:
            for figure in MEASUREMENTS[name](binary, room):
                print(figure, flush=True)
                missed |= figure.most is not None and figure.value > figure.most
    finally:
        if not keep:
            shutil.rmtree(room)
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
