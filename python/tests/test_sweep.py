"""Sweeps: on this machine, on a Ray cluster of two nodes, by Slurm; and searches. Trials last 300 ms."""

from __future__ import annotations

import errno
import json
import os
import re
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import suiro
from suiro.sweep import folder as rooms
from suiro.sweep import job
from suiro.sweep.cluster import apart, cores
from suiro.sweep.driver import LOST_MAX, Plan, Progress, Request, Sweep, duration
from suiro.sweep.engine import Local
from suiro.sweep.job import Attempt
from suiro.sweep.slurm import Slurm, check_none_left
from suiro.sweep.tune import Choice, Condition, Measured, Range, Round, Search, goal, over
from suiro.sweep.words import Refused

TINY = """
name = 'tiny'
title = 'a test'
duration = '300 ms'
repetitions = {repetitions}
matrix.kind = ['one', 'two']
[parameters]
pause = 100
[topology]
shape = "explicit"
hosts = ["server", "client"]
cables = [{{ from = "server", to = "client" }}]
[links]
[media]
[endpoints.it]
kind = 'command'
host = 'client'
command = ['sh', '-c', 'echo ${{kind}}; exec sleep ${{pause}}']
"""


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    """A scenario of six trials."""
    path = tmp_path / "tiny.toml"
    path.write_text(TINY.format(repetitions=3))
    return path


def sweep(binary: str, *words: str, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """`suiro sweep` with the Python of the tests."""
    environment = {**os.environ, "SUIRO_PYTHON": sys.executable, **(env or {})}
    return subprocess.run([binary, "sweep", *words], capture_output=True, text=True, env=environment, check=False, timeout=300)


def check_whole(out: Path, trials: int) -> None:
    """Every trial of the plan is there once, and valid."""
    run = suiro.load(out)
    assert [trial.number for trial in run.trials] == list(range(1, trials + 1))
    summary = run.summary().rows()
    assert len({(row["kind"], row["repetition"]) for row in summary}) == len(summary) == trials
    assert not list((out / "sweep" / "parts").iterdir()), "what is merged is removed"
    records = sorted(str(path.relative_to(out)) for path in out.glob("trials/*/*/trial.json"))
    assert records == sorted(f"{trial.folder}/trial.json" for trial in run.trials)


def attempts(out: Path) -> list[dict[str, Any]]:
    """What was tried."""
    return [json.loads(line) for line in (out / "sweep" / "attempts.jsonl").read_text().splitlines()]


@pytest.mark.slow
def test_on_this_machine_interrupted_and_resumed(binary: str, tiny: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    words = [str(tiny), "--on", "local", "--jobs", "2", "--out", str(out)]
    environment = {**os.environ, "SUIRO_PYTHON": sys.executable}
    process = subprocess.Popen([binary, "sweep", *words], stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, env=environment, start_new_session=True)
    deadline = time.monotonic() + 60
    while len(list((out / "sweep" / "parts").glob("[0-9]"))) < 1:
        assert time.monotonic() < deadline and process.poll() is None
        os.sched_yield()
    # The driver is killed: its trials end with it, and nothing is lost.
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    done = sweep(binary, *words)
    assert done.returncode == 2 and "--resume" in done.stderr
    done = sweep(binary, *words, "--repeat", "4", "--resume")
    assert done.returncode == 2 and "other" in done.stderr, done.stderr
    done = sweep(binary, *words, "--resume")
    assert done.returncode == 0, done.stderr
    check_whole(out, 6)
    assert suiro.load(out).manifest["command"][1] == "sweep"
    # With nothing left to do, nothing is done.
    before = len(attempts(out))
    assert sweep(binary, *words, "--resume").returncode == 0
    assert len(attempts(out)) == before
    check_whole(out, 6)


@pytest.mark.slow
def test_on_a_cluster_of_which_a_node_dies(binary: str, tiny: Path, tmp_path: Path) -> None:
    pytest.importorskip("ray")
    os.environ |= {"SUIRO_BINARY": binary, "RAY_health_check_period_ms": "1000", "RAY_health_check_failure_threshold": "5"}
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
    try:
        cluster.add_node(num_cpus=2, resources={"suiro_link": 1})
        victim = cluster.add_node(num_cpus=2, resources={"suiro_link": 1})
        cluster.wait_for_nodes()
        out = tmp_path / "out"
        tiny.write_text(TINY.format(repetitions=4).replace("300 ms", "2 s"))
        environment = {**os.environ, "SUIRO_PYTHON": sys.executable}
        words = [binary, "sweep", str(tiny), "--on", f"ray:{cluster.address}", "--out", str(out)]
        process = subprocess.Popen(words, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, env=environment, text=True)
        deadline = time.monotonic() + 120
        # One slot each: if two trials run and one has ended, the victim is in the middle of one.
        while not (list((out / "sweep" / "parts").glob("[0-9]")) and trials_running() == 2):
            assert time.monotonic() < deadline and process.poll() is None
            os.sched_yield()
        cluster.remove_node(victim, allow_graceful=False)
        _, messages = process.communicate(timeout=240)
    finally:
        cluster.shutdown()
    assert process.returncode == 0, messages
    check_whole(out, 8)
    tried = attempts(out)
    valid = [one["trial"] for one in tried if one["outcome"] == "valid"]
    assert sorted(valid) == list(range(1, 9)), "none twice"
    assert {one["outcome"] for one in tried} == {"valid", "lost"}, "the node died in the middle of a trial, which was told"
    assert len({one["machine"] for one in tried if one["outcome"] == "valid"}) == 2


#: A Slurm of one machine: jobs of an array run one after another, in the background.
SBATCH = """#!/bin/sh
for word; do case "$word" in --array=*) indices=${word#--array=};; --output=*) log=${word#--output=};; esac; script=$word; done
echo 77
( for index in $(seq 0 "${indices#0-}"); do
    SLURM_ARRAY_TASK_ID=$index sh "$script" >"$(echo "$log" | sed "s/%a/$index/")" 2>&1
  done; rm "$SLURM_FAKE/alive" ) >/dev/null 2>&1 </dev/null &
touch "$SLURM_FAKE/alive"
"""
SQUEUE = """#!/bin/sh
[ -e "$SLURM_FAKE/alive" ] || { echo "slurm_load_jobs error: Invalid job id specified" >&2; exit 1; }
for index in $(seq 0 20); do echo "77_$index it"; done
"""


@pytest.mark.slow
def test_by_slurm(binary: str, tiny: Path, tmp_path: Path) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, text in [("sbatch", SBATCH), ("squeue", SQUEUE), ("scancel", "#!/bin/sh\n")]:
        (programs / name).write_text(text)
        (programs / name).chmod(stat.S_IRWXU)
    out = tmp_path / "out"
    environment = {"PATH": f"{programs}:{os.environ['PATH']}", "SLURM_FAKE": str(tmp_path)}
    done = sweep(binary, str(tiny), "--on", "slurm", "--out", str(out), env=environment)
    assert done.returncode == 0, done.stderr
    check_whole(out, 6)


@pytest.mark.slow
def test_a_search_finds_where_a_condition_begins_to_hold(binary: str, tiny: Path, tmp_path: Path) -> None:
    pytest.importorskip("optuna")
    out = tmp_path / "out"
    words = [str(tiny), "--on", "local", "--jobs", "2", "--repeat", "1", "--out", str(out)]
    done = sweep(binary, *words, "--tune", "goal=min pause while nothing.s < 3", "over=pause=1..100", "rounds=1")
    assert done.returncode == 1 and "none of 1 rounds" in done.stderr, done.stderr
    tuned = json.loads((out / "tune.json").read_text())
    assert tuned["best"] is None and tuned["rounds"][0]["set"] == ["pause=100"]
    assert suiro.load(out / "rounds" / "1").scenario == "tiny"


def test_without_an_engine_it_says_what_is_missing(binary: str, tiny: Path, tmp_path: Path) -> None:
    out = ["--out", str(tmp_path / "out")]
    cases = [
        (["--on", "moon"], "expected local, slurm, ray"),
        (["--tune", "goal=x", "over=pause=1..2"], "expected `min NAME`"),
        (["--tune", "goal=min pause"], "expected a goal=… and an over=…"),
        (["--tune", "what=7"], "--tune what=7: expected"),
        (["--only", "kind=three"], "has no value `three`"),
    ]
    for words, says in cases:
        done = sweep(binary, str(tiny), *words, *out)
        assert done.returncode == 2 and says in done.stderr, (words, done.stderr)
        subprocess.run(["rm", "-rf", str(tmp_path / "out")], check=True)
    # Whatever is installed here: a PATH with the tools of this test alone.
    done = sweep(binary, str(tiny), "--on", "slurm", *out, env={"PATH": str(tmp_path / "no-programs")})
    assert done.returncode == 2 and "sbatch is not in PATH\nhint" in done.stderr, done.stderr
    done = subprocess.run([binary, "sweep", str(tiny)], capture_output=True, text=True, env={**os.environ, "SUIRO_PYTHON": "/bin/false"}, check=False)
    assert done.returncode == 2 and "SUIRO_PYTHON: /bin/false has no package suiro" in done.stderr


def trials_running() -> int:
    """How many `suiro run` of a cluster's tasks there are."""
    running = 0
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        running += b"run" in words[1:2] and any(b"suiro-sweep-" in word for word in words)
    return running


def request(tmp_path: Path, **more: Any) -> Request:
    """A request that needs no program."""
    return Request("suiro", ["suiro"], "tiny", [], tmp_path / "out", "local", None, 2, False, **more)


def plan(trials: int) -> Plan:
    """A plan of so many trials."""
    each = [{"number": number, "seconds": 30.0} for number in range(1, trials + 1)]
    document = {"suiro": "1", "scenario": "x", "text": "", "seed": 1, "plan_trials": trials, "trials": each, "jobs": 1}
    return Plan(document, job.Scenario("x", "", "1"), list(range(1, trials + 1)))


class Script:
    """An engine whose attempts end as a list says, trial by trial; then they are valid."""

    def __init__(self, ends: dict[int, list[str]]) -> None:
        self.ends, self.running, self.avoided = ends, list[Attempt](), list[tuple[int, set[str]]]()
        self.shunned = list[set[str]]()

    def slots(self) -> int:
        return 2

    def adopt(self, trials: set[int]) -> set[int]:
        return set()

    def shun(self, machines: set[str]) -> None:
        self.shunned.append(machines)

    def start(self, trial: int, attempt: int, avoid: set[str]) -> None:
        left = self.ends.get(trial, [])
        self.avoided.append((trial, set(avoid)))
        self.running.append(Attempt(trial, attempt, f"m{attempt}", left.pop(0) if left else "valid"))

    def wait(self, seconds: float) -> list[Attempt]:
        return [self.running.pop(0)]

    def stop(self) -> None:
        assert not self.running


def test_what_is_late_or_lost_is_repeated_elsewhere_and_at_most_so_often(tmp_path: Path) -> None:
    whole = Sweep(request(tmp_path), plan(4))
    engine = Script({1: ["late"] * 9, 2: ["lost", "late", "lost"], 3: ["invalid"], 4: ["failed"] * 9})
    assert whole.prepare() == [1, 2, 3, 4]
    whole.run(engine, [1, 2, 3, 4])
    assert {trial: attempt.outcome for trial, attempt in whole.best.items()} == {1: "late", 2: "valid", 3: "invalid", 4: "failed"}
    assert whole.tries[1, "late"] == 3 and whole.tries[4, "failed"] == LOST_MAX + 1 and whole.tries[3, "invalid"] == 1
    assert [avoid for trial, avoid in engine.avoided if trial == 1] == [set(), {"m1"}, {"m1", "m2"}]
    assert len(attempts(tmp_path / "out")) == sum(whole.tries.values())


def test_a_folder_of_others_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "thesis.tex").write_text("mine")
    with pytest.raises(Refused, match="already holds results"):
        Sweep(request(tmp_path), plan(1)).prepare()
    again = request(tmp_path)
    again.resume = True
    with pytest.raises(Refused, match="not made by suiro sweep"):
        Sweep(again, plan(1)).prepare()


def test_progress_tells_what_is_left(tmp_path: Path) -> None:
    whole = Sweep(request(tmp_path), plan(10))
    progress = Progress(whole, 10, 30.0)
    assert progress.line(2, 2, 0.0) == "0 of 10 trials, 2 running, about 2 min left"
    whole.best = {n: Attempt(n, 1, "", "valid") for n in range(5)}
    whole.counts |= {"valid": 4, "late": 1}
    assert progress.line(2, 2, 50.0) == "5 of 10 trials, 2 running, 1 late, about 50 s left"
    assert [duration(s) for s in (30, 600, 9000)] == ["30 s", "10 min", "2.5 h"]


def test_clocks_apart_are_told() -> None:
    assert apart(105.0, 100.0, 110.0) is None
    assert apart(130.0, 100.0, 110.0) == 20.0
    assert apart(70.0, 100.0, 110.0) == -30.0


def test_a_hostile_answer_writes_nothing_elsewhere(tmp_path: Path) -> None:
    import io
    import tarfile

    def answer(*members: tuple[str, bytes, str]) -> bytes:
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w") as tar:
            for name, kind, link in members:
                info = tarfile.TarInfo(name)
                info.type, info.linkname = kind, link
                info.size = 4 if kind == tarfile.REGTYPE else 0
                tar.addfile(info, io.BytesIO(b"evil"))
        return packed.getvalue()

    file = tarfile.REGTYPE
    outside = str(tmp_path / "outside")
    hostile = [
        [("../escaped", file, "")],
        [(f"{tmp_path}/escaped", file, "")],
        [("a/../../escaped", file, "")],
        [("way", tarfile.SYMTYPE, ".."), ("way/escaped", file, "")],
        [("escaped", tarfile.LNKTYPE, outside)],
        [("pipe", tarfile.FIFOTYPE, "")],
    ]
    for number, members in enumerate(hostile):
        with pytest.raises(suiro.ResultsError):
            job.unpack(answer(*members), tmp_path / "parts" / str(number))
    assert not list(tmp_path.rglob("escaped"))
    job.unpack(answer((".", tarfile.DIRTYPE, ""), ("./a", tarfile.DIRTYPE, ""), ("./a/b", file, "")), tmp_path / "fine")
    assert (tmp_path / "fine" / "a" / "b").read_bytes() == b"evil"


#: A machine's program. `run` leaves what the test asks for in MODE.
PROGRAM = """#!/bin/sh
case "$1" in
--version) echo "suiro ${{VERSION:-1}}" ;;
check) cat {plan} ;;
run)
    for word; do case "$word" in */part) out=$word;; esac; done
    case "$MODE" in
    full) echo "error: writing trial.json: No space left on device" >&2; exit 2 ;;
    esac
    mkdir -p "$out/trials/all/1"
    ls -1 >"$out/trials/all/1/working"
    echo '{{"plan": [{{"folder": "trials/all/1"}}]}}' >"$out/manifest.json"
    cat {outcome} >"$out/trials/all/1/trial.json" ;;
esac
"""


@pytest.fixture
def program(tmp_path: Path) -> str:
    """A program of which every trial is skipped."""
    path, outcome, planned = tmp_path / "suiro", tmp_path / "outcome.json", tmp_path / "plan.json"
    path.write_text(PROGRAM.format(plan=planned, outcome=outcome))
    path.chmod(stat.S_IRWXU)
    outcome.write_text(json.dumps({"valid": False, "skipped": True, "invalid_because": "the kernel has no tcp_vegas"}))
    planned.write_text(json.dumps({**plan(2).document, "files": []}))
    return str(path)


def test_what_is_wrong_with_a_machine_is_told(program: str, monkeypatch: pytest.MonkeyPatch) -> None:
    one = job.Scenario("x", "", "1")
    answer = job.run_here(one, 1, program)
    assert (answer["outcome"], answer["because"]) == ("skipped", "the kernel has no tcp_vegas")
    monkeypatch.setenv("MODE", "full")
    answer = job.run_here(one, 1, program)
    assert answer["outcome"] == "failed" and "No space left on device" in answer["because"] and answer["tar"] is None
    monkeypatch.setenv("VERSION", "2")
    answer = job.run_here(one, 1, program)
    assert (answer["outcome"], answer["because"]) == ("refused", "suiro 2 is installed there, expected 1")
    answer = job.run_here(one, 1, "/nowhere/suiro")
    assert answer["outcome"] == "failed" and "/nowhere/suiro" in answer["because"]


def full(path: Path, line: str) -> None:
    """Writing fails as on a full disk."""
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))


def test_a_full_disk_of_the_driver_ends_the_sweep_with_a_hint(
    program: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from suiro.sweep.__main__ import main

    again = request(tmp_path)
    again.binary, again.resume = program, True
    monkeypatch.setattr("suiro.sweep.folder.append", full)
    words = {**vars(again), "out": str(again.out)}
    monkeypatch.setattr(sys, "argv", ["suiro.sweep", json.dumps(words)])
    assert main() == 1
    said = capsys.readouterr().err
    assert "No space left on device" in said and "--resume" in said


def test_an_answer_that_is_no_record_is_a_failure(tmp_path: Path) -> None:
    part = tmp_path / "part"
    part.mkdir()
    for manifest in ["", "[]", "{", '{"plan": []}', '{"plan": [7]}', '{"plan": [{"folder": 7}]}', '{"plan": [{"folder": "x"}]}', "[" * 100_000]:
        (part / "manifest.json").write_text(manifest)
        assert job.record(part)[0] == "failed", manifest[:20]
    (part / "trial.json").write_text("7")
    (part / "manifest.json").write_text('{"plan": [{"folder": "."}]}')
    assert job.record(part)[0] == "failed"


def test_the_outcome_of_an_attempt() -> None:
    assert job.judge({"valid": True}) == ("valid", None)
    assert job.judge({"valid": False, "only_late": True, "invalid_because": "x"}) == ("late", "x")
    assert job.judge({"valid": False, "self_checks": [{"ok": False}], "invalid_because": "x"}) == ("late", "x")
    assert job.judge({"valid": False, "invalid_because": "y"}) == ("invalid", "y")
    assert job.judge({"valid": False, "skipped": True, "invalid_because": "z"}) == ("skipped", "z")


def test_goals_and_ranges() -> None:
    found = goal("min queue while media.latency_p95_ms < 200 and video.vmaf_mean > 80")
    assert found.least and found.name == "queue"
    assert found.conditions == [Condition("media.latency_p95_ms", True, 200.0), Condition("video.vmaf_mean", False, 80.0)]
    assert found.conditions[0].violation(100.0) == -0.5 and found.conditions[1].violation(None) > 1
    queue = over("queue=10 kB..1 MB")
    assert isinstance(queue, Range)
    assert (queue.low, queue.high, queue.text(12345.6), queue.log) == (10_000.0, 1_000_000.0, "12346 B", True)
    assert over("tcp=reno|cubic") == Choice("tcp", ["reno", "cubic"])
    for bad in ("queue", "queue=1", "queue=1 MB..1 kB", "queue=1 kB..1 ms", "queue=1 furlong..2 furlong"):
        with pytest.raises(Refused, match="expected"):
            over(bad)


def test_an_attempt_that_was_only_late_is_recorded_in_the_next(tmp_path: Path) -> None:
    place = tmp_path / "parts" / "1"
    for number, late in enumerate([True, True, False], 1):
        beside = tmp_path / "attempts" / "part"
        (beside / "trials" / "all" / "1").mkdir(parents=True)
        (beside / "manifest.json").write_text(json.dumps({"plan": [{"folder": "trials/all/1"}]}))
        outcome = {"started": f"t{number}", "duration_s": 1.5, "links": [], "attempts": [], "only_late": late}
        because = "packets left late" if late else None
        (beside / "trials" / "all" / "1" / "trial.json").write_text(json.dumps(outcome | {"invalid_because": because}))
        job.keep(beside, place)
    kept = json.loads((place / "trials" / "all" / "1" / "trial.json").read_text())
    assert [attempt["started"] for attempt in kept["attempts"]] == ["t1", "t2"]
    assert kept["attempts"][0] == {"started": "t1", "duration_s": 1.5, "invalid_because": "packets left late", "links": []}


@pytest.mark.parametrize("name", ["../../etc/payload", "a/../../b", "/etc/payload", "a//b", "", ".", "a\0b"])
def test_a_scenario_writes_nothing_outside_of_its_folder(tmp_path: Path, name: str) -> None:
    room = tmp_path / "one" / "room"
    hostile = job.Scenario("x", "text", "1", {"fine": b"", name: b"evil"})
    with pytest.raises(suiro.ResultsError, match="expected a path below"):
        hostile.write(room)
    with pytest.raises(suiro.ResultsError, match="expected a path below"):
        job.Scenario("../x", "text", "1").write(room)
    assert list(tmp_path.rglob("*")) == [], "not even the files before it"


def test_files_outside_of_the_scenario_s_folder_are_not_sent(tmp_path: Path) -> None:
    base, secret = tmp_path / "scenario", tmp_path / "secret"
    (base / "traces").mkdir(parents=True)
    (base / "traces" / "a.csv").write_text("0,1")
    secret.write_text("a key")
    (base / "link").symlink_to(secret)
    (base / "folder").symlink_to(tmp_path)
    (only,) = job.gather(base, ["./traces/a.csv", "/etc/hostname"]).items()
    assert only[0] == "traces/a.csv" and only[1][1] == b"0,1"
    for name in ["../secret", "traces/../../secret", "link", "folder/secret", "traces", "/../secret"[1:]]:
        with pytest.raises(suiro.ResultsError):
            job.gather(base, [name])


def test_a_file_of_a_scenario_does_not_pass_for_a_record(program: str) -> None:
    forged = {"part/manifest.json": b'{"plan": [{"folder": "."}]}', "part/trial.json": b'{"valid": true}'}
    answer = job.run_here(job.Scenario("x", "", "1", forged), 1, program)
    assert (answer["outcome"], answer["because"]) == ("skipped", "the kernel has no tcp_vegas")


def test_a_camera_outside_of_the_scenario_s_folder_is_refused(program: str, tmp_path: Path) -> None:
    planned = tmp_path / "plan.json"
    (tmp_path / "payload").write_text("evil")
    planned.write_text(json.dumps({**json.loads(planned.read_text()), "files": ["../payload"]}))
    asked = request(tmp_path)
    asked.binary, asked.scenario = program, str(tmp_path / "scenario" / "x.toml")
    with pytest.raises(Refused, match=r"(?s)payload is outside of the folder.*hint: .*copy it there"):
        Plan.of(asked)


def test_one_driver_at_a_time(tmp_path: Path) -> None:
    first, second = Sweep(request(tmp_path), plan(2)), Sweep(request(tmp_path), plan(2))
    second.request.resume = True
    first.prepare()
    with pytest.raises(Refused, match=f"another suiro sweep is at work in .*: process {os.getpid()} on"):
        second.prepare()
    first.release()
    assert second.prepare() == [1, 2]
    second.release()


def test_the_lock_of_a_driver_that_was_killed_is_free(tmp_path: Path) -> None:
    script = f"from pathlib import Path; from suiro.sweep.folder import hold; hold(Path({str(tmp_path)!r})); print(1, flush=True); input()"
    with subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None and other.stdout.readline() == b"1\n"
        with pytest.raises(Refused, match=f"process {other.pid} on"):
            rooms.hold(tmp_path)
        other.kill()
        other.wait()
        os.close(rooms.hold(tmp_path))


def test_a_trial_of_a_killed_driver_ends_before_others_begin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    room = rooms.room(tmp_path, 1)
    (room / "part").mkdir()
    script = "import fcntl, os, sys; fcntl.flock(os.open(sys.argv[1], os.O_RDONLY), fcntl.LOCK_EX); print(1, flush=True); input()"
    with subprocess.Popen([sys.executable, "-c", script, str(room / "part")], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as trial:
        assert trial.stdin is not None and trial.stdout is not None and trial.stdout.readline() == b"1\n"
        waited = []

        def looked(seconds: float) -> None:
            """It is waited for: so it ends."""
            waited.append(seconds)
            assert trial.stdin is not None
            trial.stdin.close()
            trial.wait()

        monkeypatch.setattr("suiro.sweep.folder.time.sleep", looked)
        rooms.settle(tmp_path)
    assert len(waited) == 1 and not room.exists()


def test_each_attempt_has_a_folder_of_its_own(program: str, tmp_path: Path) -> None:
    folder = tmp_path / "sweep"
    folder.mkdir()
    drivers = [Local(job.Scenario("x", "", "1"), folder, program, 1) for _ in range(2)]
    for one in drivers:
        one.start(1, 1, set())
    used = [one.running[0].room for one in drivers]
    assert used[0] != used[1]
    # One of a killed driver writes more than the other: what is kept is of one of them alone.
    drivers[0].running[0].process.wait()
    (used[0] / "part" / "trials" / "all" / "1" / "link.parquet").write_text("another measurement")
    ended = drivers[1].wait(60.0) + drivers[1].wait(0.0)
    assert [attempt.outcome for attempt in ended] == ["skipped"]
    assert [path.name for path in (folder / "parts" / "1" / "trials" / "all" / "1").iterdir() if path.suffix] == ["trial.json"]
    drivers[0].stop()


def test_links_in_a_sweep_s_folder_are_not_followed(tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "text").write_text("mine")
    asked = request(tmp_path)
    asked.resume = True
    whole = Sweep(asked, plan(1))
    whole.prepare()
    whole.release()
    for name in ["parts", "attempts", "jobs", "logs", "scenario"]:
        there = whole.folder / name
        if there.exists():
            there.rmdir()
        there.symlink_to(mine)
        with pytest.raises(Refused, match="links are not followed"):
            Sweep(asked, plan(1)).prepare()
        there.unlink()
    line = tmp_path / "line"
    line.symlink_to(mine / "text")
    with pytest.raises(OSError):
        rooms.append(line, "evil")
    rooms.write(line, "in its place")
    assert (mine / "text").read_text() == "mine" and line.read_text() == "in its place"


def test_a_trial_with_a_damaged_table_is_run_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = request(tmp_path)
    asked.resume = True
    whole = Sweep(asked, plan(4))
    assert whole.prepare() == [1, 2, 3, 4]
    whole.release()
    for number in (1, 2, 3):
        measured(whole.parts / str(number), number)
    table = whole.parts / "2" / "trials" / "all" / "2" / "link.parquet"
    table.write_bytes(table.read_bytes()[:-9])
    summary = {"trials": [{"cell": {}, "repetition": 3, "valid": False, "invalid_because": "link: 1,984 packets offered, 1,989 rows"}]}
    (whole.parts / "3" / "summary.json").write_text(json.dumps(summary))
    assert whole.prepare() == [2, 3, 4]
    said = capsys.readouterr().err
    assert "trial 2: damaged, again: link.parquet is cut short" in said and "1,984 packets offered, 1,989 rows" in said
    assert [job.record(whole.parts / str(number))[0] for number in (1, 2, 3)] == ["valid", "damaged", "damaged"]
    whole.release()


def measured(part: Path, number: int) -> None:
    """A part with a valid trial of an empty table."""
    folder = part / "trials" / "all" / str(number)
    folder.mkdir(parents=True)
    (part / "manifest.json").write_text(json.dumps({"plan": [{"number": number, "folder": f"trials/all/{number}"}]}))
    (folder / "trial.json").write_text(json.dumps({"cell": {}, "repetition": number, "valid": True}))
    pq.write_table(pa.table({"t_ns": pa.array([], pa.int64())}), folder / "link.parquet")


class FakeSlurm:
    """Programs that note what they are asked; a test runs the jobs itself."""

    def __init__(self, room: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.room, self.monkeypatch = room, monkeypatch
        room.mkdir()
        self.answer("sbatch", "echo 77")
        self.answer("squeue", ":")
        self.answer("scancel", ":")
        self.answer("sinfo", "echo one; echo two")
        self.answer("scontrol", "echo 'MaxArraySize            = 1001'")
        monkeypatch.setenv("PATH", f"{room}:{os.environ['PATH']}")

    def answer(self, name: str, text: str) -> None:
        """What a program prints from now on."""
        (self.room / name).write_text(f'#!/bin/sh\necho "$@" >>{self.room}/{name}.asked\n{text}\n')
        (self.room / name).chmod(stat.S_IRWXU)

    def asked(self, name: str) -> list[str]:
        """What it was asked."""
        asked = self.room / f"{name}.asked"
        return asked.read_text().splitlines() if asked.exists() else []

    def run(self, engine: Slurm, index: int) -> None:
        """Runs a task of the engine's first batch, on a machine."""
        script = engine.running[0].batch / "job.sh"
        environment = {**os.environ, "SLURM_ARRAY_TASK_ID": str(index), "SLURMD_NODENAME": "one"}
        subprocess.run(["sh", str(script)], env=environment, check=True)


@pytest.fixture
def slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeSlurm:
    """A Slurm that runs nothing by itself."""
    return FakeSlurm(tmp_path / "slurm", monkeypatch)


def engine_on(tmp_path: Path, program: str, **more: Any) -> Slurm:
    """A driver's engine in the folder of them all."""
    folder = tmp_path / "sweep"
    folder.mkdir(exist_ok=True)
    return Slurm(job.Scenario("x", "", "1"), folder, program, None, **more)


def test_jobs_of_a_killed_driver_are_adopted(slurm: FakeSlurm, program: str, tmp_path: Path) -> None:
    killed = engine_on(tmp_path, program)
    for trial in (4, 1500, 7):
        killed.start(trial, 2, set())
    slurm.answer("squeue", "for task in 0 1 2; do echo 77_$task one; done")
    assert killed.wait(0.0) == []
    with pytest.raises(Refused, match="are with Slurm"):
        check_none_left(tmp_path / "sweep")
    again = engine_on(tmp_path, program)
    assert again.adopt({4, 1500}) == {4, 1500}
    assert slurm.asked("scancel") == ["77_2"], "trial 7 is not wanted any more"
    assert len(slurm.asked("sbatch")) == 1, "nothing is handed over twice"
    slurm.run(again, 1)
    (ended,) = again.wait(0.0)
    assert (ended.trial, ended.number, ended.machine, ended.outcome) == (1500, 2, "one", "skipped")
    assert (tmp_path / "sweep" / "parts" / "1500" / "trials" / "all" / "1" / "trial.json").exists()
    # A third driver does not take up what has ended.
    assert engine_on(tmp_path, program).adopt({4, 1500}) == {4}


def test_jobs_are_found_whose_driver_was_killed_before_it_knew_their_number(slurm: FakeSlurm, program: str, tmp_path: Path) -> None:
    killed = engine_on(tmp_path, program)
    killed.start(1, 1, set())
    killed.wait(0.0)
    batch = killed.running[0].batch
    (batch / "array").unlink()
    slurm.answer("squeue", f'case "$*" in *--name={batch.name}*) echo 88;; esac')
    again = engine_on(tmp_path, program)
    assert again.adopt({1}) == {1} and again.running[0].name == "88_0"
    slurm.answer("squeue", ":")
    assert engine_on(tmp_path, program).adopt({1}) == set() and not batch.exists(), "Slurm was never given it"


def test_a_job_that_slurm_starts_twice_has_one_record(slurm: FakeSlurm, program: str, tmp_path: Path) -> None:
    engine = engine_on(tmp_path, program)
    engine.start(1, 1, set())
    engine.wait(0.0)
    slurm.run(engine, 0)
    done = engine.running[0].batch / "0.done"
    first = done.read_text()
    slurm.run(engine, 0)
    assert done.read_text() == first
    parts = sorted(engine.running[0].batch.glob("0.room.*/part"))
    assert len(parts) == 2, "they did not write to one folder"
    (ended,) = engine.wait(0.0)
    assert ended.outcome == "skipped" and not (tmp_path / "sweep" / "jobs").joinpath("0").exists()
    assert list((tmp_path / "sweep" / "jobs").iterdir()) == []


def test_arrays_stay_within_slurm_s_limit(slurm: FakeSlurm, program: str, tmp_path: Path) -> None:
    for limit, arrays in [(1001, ["0-999", "0-499"]), (700, ["0-699", "0-699", "0-99"])]:
        slurm.answer("scontrol", f"echo 'MaxArraySize            = {limit}'")
        engine = engine_on(tmp_path, program)
        for trial in range(1001, 2501):
            engine.start(trial, 1, set())
        slurm.room.joinpath("sbatch.asked").unlink(missing_ok=True)
        engine.wait(0.0)
        assert [re.search(r"--array=(\S+)", words)[1] for words in slurm.asked("sbatch")] == arrays  # type: ignore[index]
        assert len(engine.running) == 1500


def test_slurm_is_asked_for_other_machines(slurm: FakeSlurm, program: str, tmp_path: Path) -> None:
    engine = engine_on(tmp_path, program, virtual=True)
    for trial, avoid in [(1, {"one"}), (2, set[str]()), (3, {"one", "two"}), (4, {"one"})]:
        engine.start(trial, 1, avoid)
    engine.wait(0.0)
    asked = slurm.asked("sbatch")
    assert len(asked) == 3 and "--exclude=one " in asked[0] and "--array=0-1" in asked[0]
    assert "--exclude" not in asked[1] and "--exclude" not in asked[2], "if there is no other machine, any"
    scripts = [(task.batch / "job.sh").read_text() for task in engine.running]
    assert all("--exclusive" not in one and "--cpus-per-task=1" in one for one in scripts), "in virtual time they do not disturb each other"


def test_a_full_queue_of_slurm_is_waited_for(slurm: FakeSlurm, program: str, tmp_path: Path) -> None:
    engine = engine_on(tmp_path, program)
    slurm.answer("sbatch", "echo 'sbatch: error: QOSMaxSubmitJobPerUserLimit' >&2; exit 1")
    engine.start(1, 1, set())
    with pytest.raises(Refused, match="QOSMaxSubmit"):
        engine.wait(0.0)
    slurm.answer("sbatch", "echo 77")
    engine.wait(0.0)
    slurm.answer("sbatch", "exit 1")
    engine.start(2, 1, set())
    assert engine.wait(0.0) == [] and len(engine.waiting) == 1
    slurm.answer("sbatch", "echo 78")
    engine.wait(0.0)
    assert [task.name for task in engine.running] == ["77_0", "78_0"]
    engine.stop()
    assert slurm.asked("scancel") == ["77", "78"]
    assert engine_on(tmp_path, program).adopt({1, 2}) == set(), "what was cancelled is not gone on with"


def test_the_files_of_commands_are_sent_along(program: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "sender.py").write_text("print(1)")
    (tmp_path / "tools" / "sender.py").chmod(0o755)
    planned = tmp_path / "plan.json"
    planned.write_text(json.dumps({**json.loads(planned.read_text()), "command_files": ["./tools/sender.py"]}))
    asked = request(tmp_path)
    asked.binary, asked.on = program, "ray:HEAD:6379"
    made = Plan.of(asked)
    assert made.scenario.working == {"tools/sender.py": (stat.S_IFREG | 0o755, b"print(1)")}
    there = made.scenario.write_working(tmp_path / "there")
    assert (there / "tools" / "sender.py").stat().st_mode == stat.S_IFREG | 0o755
    answer = job.run_here(made.scenario, 1, program)
    job.unpack(answer["tar"], tmp_path / "back")
    assert (tmp_path / "back" / "trials" / "all" / "1" / "working").read_text().split() == ["tools"], "and nothing else is there"
    asked.on = "local"
    assert Plan.of(asked).scenario.working == {}, "here they are where they were"
    planned.write_text(json.dumps({**json.loads(planned.read_text()), "command_files": ["../elsewhere.py"]}))
    asked.on = "ray"
    with pytest.raises(Refused, match="elsewhere.py is outside of the folder"):
        Plan.of(asked)


def test_trials_reserve_their_share_of_a_machine_s_cores() -> None:
    node = [{"Resources": {"CPU": 8.0, "suiro_link": 3.0}}, {"Resources": {"CPU": 16.0, "suiro_link": 2.0}}]
    assert cores(node) == 2 and cores(node[1:]) == 8
    assert cores([*node, {"Resources": {"suiro_link": 1.0}}]) == 0, "one that offers no cores has its trials all the same"


class Machines(Script):
    """An engine of two machines, of which one fails whatever it is given, until it is shunned."""

    def start(self, trial: int, attempt: int, avoid: set[str]) -> None:
        self.avoided.append((trial, set(avoid)))
        bad = "bad" not in avoid
        self.running.append(Attempt(trial, attempt, "bad" if bad else "good", "failed" if bad else "valid"))


def test_a_machine_on_which_nothing_works_is_avoided_by_all_trials(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    whole, engine = Sweep(request(tmp_path), plan(20)), Machines({})
    whole.run(engine, whole.prepare())
    whole.release()
    assert {attempt.outcome for attempt in whole.best.values()} == {"valid"}
    assert sum(count for (_, outcome), count in whole.tries.items() if outcome == "failed") <= 4, "three, and one beside it"
    assert engine.shunned == [{"bad"}] and "3 trials in a row failed on bad" in capsys.readouterr().err


class Mixed(Script):
    """An engine of machines that were installed at different times."""

    def __init__(self, parts: Path, versions: dict[str, str]) -> None:
        super().__init__({})
        self.parts, self.versions = parts, versions

    def start(self, trial: int, attempt: int, avoid: set[str]) -> None:
        machine = next(name for name in sorted(self.versions) if name not in avoid)
        part = self.parts / str(trial)
        measured(part, trial)
        manifest = json.loads((part / "manifest.json").read_text()) | {"versions": {"ffmpeg": self.versions[machine]}}
        (part / "manifest.json").write_text(json.dumps(manifest))
        self.running.append(Attempt(trial, attempt, machine, "valid"))


def test_other_versions_are_noticed_at_once(tmp_path: Path) -> None:
    asked = request(tmp_path)
    asked.resume = True
    whole = Sweep(asked, plan(3))
    engine = Mixed(whole.parts, {"a": "7.1", "b": "8.1"})
    whole.prepare()
    measured(whole.parts / "1", 1)
    known = json.loads((whole.parts / "1" / "manifest.json").read_text()) | {"versions": {"ffmpeg": "8.1"}}
    (whole.parts / "1" / "manifest.json").write_text(json.dumps(known))
    whole.release()
    assert whole.prepare() == [2, 3], "what was measured before says which version is expected"
    whole.run(engine, [2, 3])
    whole.release()
    assert {trial: (one.machine, one.outcome) for trial, one in whole.best.items()} == {2: ("b", "valid"), 3: ("b", "valid")}
    refused = [one for one in attempts(tmp_path / "out") if one["outcome"] == "refused"]
    assert {one["machine"] for one in refused} == {"a"} and refused[0]["because"] == "it has ffmpeg 7.1, and the trials before it 8.1"


def test_a_full_disk_stops_a_sweep(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole, engine = Sweep(request(tmp_path), plan(50)), Script({number: ["failed"] * 9 for number in range(1, 51)})
    trials = whole.prepare()

    def full_disk(_file: int, _offset: int, _bytes: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "posix_fallocate", full_disk)
    monkeypatch.setattr(Script, "stop", lambda _: None)
    with pytest.raises(OSError, match="No space left"):
        whole.run(engine, trials)
    assert len(attempts(tmp_path / "out")) == 1, "nothing is repeated in vain"
    whole.release()


class Searched(Search):
    """A search whose rounds measure nothing: `latency` is 3700 divided by the queue, or by what was chosen."""

    stop_after = 10**9

    def _measure(self, batch: list[Round]) -> None:
        self.batches = [*getattr(self, "batches", []), [(one.number, one.texts) for one in batch]]
        if len(self.batches) > self.stop_after:
            raise KeyboardInterrupt
        self.values = {one.number: one.values for one in batch}

    def _metrics(self, number: int) -> dict[str, Measured]:
        value = self.values[number]["queue"]
        assert isinstance(value, float)
        return {"latency": Measured([3700 / value]), "noise": Measured([abs(value - 40)])}


def search(tmp_path: Path, sought: str, *, resume: bool = False, parallel: int = 1, rounds: int = 12) -> Searched:
    """A search in its folder."""
    asked = request(tmp_path)
    asked.resume, asked.tune = resume, {"goal": sought, "over": ["queue=1..1000"], "rounds": None}
    return Searched(asked, goal(sought), [over("queue=1..1000")], rounds, parallel)


@pytest.mark.parametrize("sought", ["min queue while latency < 100", "min noise while latency < 1000"])
@pytest.mark.parametrize("parallel", [1, 3])
def test_an_interrupted_search_goes_on_as_it_would_have(tmp_path: Path, sought: str, parallel: int) -> None:
    pytest.importorskip("optuna")
    whole = search(tmp_path / "whole", sought, parallel=parallel)
    assert whole.run() == 0
    whole.release()
    first = search(tmp_path / "cut", sought, parallel=parallel)
    first.stop_after = 2
    with pytest.raises(KeyboardInterrupt):
        first.run()
    with pytest.raises(Refused, match="another suiro sweep is at work"):
        search(tmp_path / "cut", sought, resume=True)
    first.release()
    with pytest.raises(Refused, match="holds another search"):
        search(tmp_path / "cut", "max queue", resume=True)
    again = search(tmp_path / "cut", sought, resume=True, parallel=parallel)
    assert again.run() == 0
    assert again.batches[0] == first.batches[-1], "the round that was cut short is run, with its value and in its folder"
    assert first.batches[:-1] + again.batches == whole.batches
    assert (tmp_path / "cut" / "out" / "tune.json").read_text() == (tmp_path / "whole" / "out" / "tune.json").read_text()
    again.release()


def test_rounds_side_by_side_take_fewer_batches(tmp_path: Path) -> None:
    pytest.importorskip("optuna")
    batches = {}
    for parallel in (1, 4):
        one = search(tmp_path / str(parallel), "min queue while latency < 100", parallel=parallel, rounds=40)
        assert one.run() == 0
        best = json.loads((one.request.out / "tune.json").read_text())["best"]
        assert 37 < best["reached"] < 37 * 1.02
        batches[parallel] = len(one.batches)
        one.release()
    assert batches == {1: 11, 4: 5}


class Patchy(Searched):
    """A search whose metric `latency` no trial of a round has, where the queue is less than 100."""

    def _metrics(self, number: int) -> dict[str, Measured]:
        value = self.values[number]["queue"]
        assert isinstance(value, float)
        return {"latency": Measured([None if value < 100 else 3700 / value]), "noise": Measured([abs(value - 40)])}


def patchy(tmp_path: Path, sought: str, rounds: int, *, resume: bool = False) -> Patchy:
    """Such a search."""
    asked = request(tmp_path)
    asked.resume, asked.tune = resume, {"goal": sought, "over": ["queue=1..1000"], "rounds": None}
    return Patchy(asked, goal(sought), [over("queue=1..1000")], rounds)


def test_a_round_without_the_goal_s_metric_does_not_hold(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("optuna")
    first = patchy(tmp_path, "min latency", 6)
    assert first.run() == 0
    first.release()
    assert ": no trial has a value of latency: does not hold" in capsys.readouterr().err
    again = patchy(tmp_path, "min latency", 20, resume=True)
    assert again.done == first.done
    assert again.run() == 0
    again.release()
    tuned = json.loads((tmp_path / "out" / "tune.json").read_text())
    missing = [one for one in tuned["rounds"] if one["values"]["queue"] < 100]
    assert len(tuned["rounds"]) == 20 and missing
    assert all(one["reached"] is None and not one["holds"] for one in missing)
    assert tuned["best"]["reached"] == min(one["reached"] for one in tuned["rounds"] if one["holds"])
    # What is proposed after the first is where the metric is: those are less than the seven of ten at random.
    assert sum(one["values"]["queue"] < 100 for one in tuned["rounds"][10:]) < 5


def test_a_goal_that_no_round_measures_is_told_and_one_without_that_name_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("optuna")
    none = patchy(tmp_path / "none", "max latency", 2)
    none.ranges = [over("queue=1..50")]
    assert none.run() == 1
    none.release()
    assert "none of 2 rounds has a value of latency: see " in capsys.readouterr().err
    wrong = patchy(tmp_path / "wrong", "min latencies", 2)
    with pytest.raises(Refused, match="there is no parameter or metric `latencies`"):
        wrong.run()
    wrong.release()


class Partial(Searched):
    """A search of which one trial in three has the metric `latency`."""

    def _metrics(self, number: int) -> dict[str, Measured]:
        value = self.values[number]["queue"]
        assert isinstance(value, float)
        return {"latency": Measured([150.0, None, None]), "noise": Measured([1.0, 2.0, value])}


def test_a_metric_that_some_trials_do_not_have_meets_no_condition(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("optuna")
    asked = request(tmp_path)
    asked.tune = {"goal": "min noise while latency < 200", "over": ["queue=1..1000"], "rounds": None}
    partial = Partial(asked, goal("min noise while latency < 200"), [over("queue=1..1000")], 2)
    assert partial.run() == 1
    partial.release()
    rounds = json.loads((tmp_path / "out" / "tune.json").read_text())["rounds"]
    assert [(one["holds"], one["metrics"], one["measured_in"], one["trials"]) for one in rounds] == [
        (False, {"latency": 150.0}, {"latency": 1}, 3)
    ] * 2
    assert "latency 150 in 1 of 3 trials: does not hold" in capsys.readouterr().err
    sought = tmp_path / "sought"
    asked = request(sought)
    asked.tune = {"goal": "min latency", "over": ["queue=1..1000"], "rounds": None}
    other = Partial(asked, goal("min latency"), [over("queue=1..1000")], 1)
    assert other.run() == 1
    other.release()
    assert "1 of 3 trials have a value of latency: does not hold" in capsys.readouterr().err
