"""Sweeps that are killed at any moment: what was measured is merged once, and what was measured again is said to be."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from test_sweep import Script, attempts, engine_on, measured, plan, program, request, slurm  # noqa: F401

from suiro.sweep import folder as rooms
from suiro.sweep import job
from suiro.sweep.driver import Request, Sweep
from suiro.sweep.job import Attempt


class Killed(BaseException):
    """The driver is killed."""


class Fatal(Script):
    """An engine whose driver is killed when it has handed over two trials."""

    def wait(self, seconds: float) -> list[Attempt]:
        raise Killed

    def stop(self) -> None:
        """Nobody is there to do it."""


def interrupted(folder: Path, trials: int) -> tuple[Request, Sweep]:
    """A sweep of so many trials whose driver was killed, and the request to resume it."""
    asked = request(folder)
    asked.resume = True
    killed = Sweep(asked, plan(trials))
    with pytest.raises(Killed):
        killed.run(Fatal({}), killed.prepare())
    killed.release()
    return asked, killed


def test_attempts_that_ended_with_a_killed_driver_are_recorded(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked, killed = interrupted(tmp_path, 3)
    # It was killed between the end of trial 2 and its line in the list.
    measured(killed.parts / "2", 2)
    whole, engine = Sweep(asked, plan(3)), Script({})
    whole.run(engine, whole.prepare())
    whole.release()
    tried = [(one["trial"], one["number"], one["outcome"]) for one in attempts(tmp_path / "out")]
    assert tried == [(2, 1, "valid"), (1, 1, "lost"), (1, 2, "valid"), (3, 1, "valid")]
    assert "1 attempts were lost with the sweep before this one, again: trials 1\n" in capsys.readouterr().err
    last = Sweep(asked, plan(3))
    last.prepare()
    last.release()
    assert len(attempts(tmp_path / "out")) == 4, "once is enough"


class Adopting(Script):
    """An engine with which a trial goes on."""

    def adopt(self, trials: set[int]) -> set[int]:
        self.running = [Attempt(1, 1, "m", "valid")]
        return {1}


def test_attempts_that_go_on_are_not_lost(tmp_path: Path) -> None:
    asked, killed = interrupted(tmp_path, 2)
    # The last line was cut short.
    with (killed.folder / "begun.jsonl").open("a") as begun:
        begun.write('{"trial": 1, "numb')
    whole = Sweep(asked, plan(2))
    whole.run(Adopting({}), whole.prepare())
    whole.release()
    tried = [(one["trial"], one["number"], one["outcome"]) for one in attempts(tmp_path / "out")]
    assert tried == [(2, 1, "lost"), (1, 1, "valid"), (2, 2, "valid")]


def merged(command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
    """`suiro merge`, which needs a manifest in each part."""
    parts = [Path(word) for word in command[2 : command.index("--out")]]
    out = Path(command[command.index("--out") + 1])
    if not all((part / "manifest.json").exists() for part in parts):
        return subprocess.CompletedProcess(command, 2)
    (out / "manifest.json").write_text("{}")
    (out / "summary.json").write_text("{}")
    return subprocess.CompletedProcess(command, 0)


def test_a_driver_that_is_killed_after_a_merge_leaves_no_half_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = request(tmp_path)
    asked.resume = True
    whole = Sweep(asked, plan(2))
    whole.prepare()
    for number in (1, 2):
        measured(whole.parts / str(number), number)
    monkeypatch.setattr(subprocess, "run", merged)

    def half(path: Path) -> None:
        """Removes one file, the first, and is killed."""
        next(path.rglob("manifest.json")).unlink()
        raise Killed

    with monkeypatch.context() as killing:
        killing.setattr(shutil, "rmtree", half)
        with pytest.raises(Killed):
            whole.merge()
    whole.release()
    again = Sweep(asked, plan(2))
    again.prepare()
    assert again.merge() == 0, "what is left is whole"
    assert list(again.parts.iterdir()) == [] and list((again.folder / "attempts").iterdir()) == []
    again.release()


def test_what_a_killed_driver_was_writing_is_removed(tmp_path: Path) -> None:
    (tmp_path / ".scenario-x" / "scenario").mkdir(parents=True)
    (tmp_path / ".plan.json.x").write_text("{")
    (tmp_path / ".scenario-y").symlink_to(tmp_path / ".scenario-x")
    rooms.settle(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_trial_does_not_begin_without_its_driver() -> None:
    own = os.getpid()
    for parent, code in [(own, 0), (own - 1, 1)]:
        done = subprocess.run(["true"], preexec_fn=lambda parent=parent: job.die_with(parent), check=False)
        assert done.returncode == code, "what starts it is gone already, so no signal would come"


def test_jobs_that_slurm_started_again_are_told(slurm: Any, program: str, tmp_path: Path) -> None:  # noqa: F811
    engine = engine_on(tmp_path, program)
    engine.start(1, 1, set())
    engine.wait(0.0)
    slurm.run(engine, 0)
    slurm.run(engine, 0)
    (ended,) = engine.wait(0.0)
    assert ended.starts == 2
