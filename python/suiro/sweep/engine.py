"""How a trial gets to a machine."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path
from typing import Protocol

from . import job
from .job import Attempt, Scenario

#: Seconds between two looks at processes or files.
LOOK_S = 0.05


class Refused(Exception):
    """The sweep cannot begin: what is wrong, and a hint."""


class Engine(Protocol):
    """Runs attempts. Every attempt that is handed over ends in `wait`, whatever becomes of its machine."""

    def slots(self) -> int:
        """How many attempts can run side by side now."""
        ...

    def start(self, trial: int, attempt: int, avoid: set[str]) -> None:
        """Hands over an attempt, if possible to a machine that is not in `avoid`."""
        ...

    def wait(self, seconds: float) -> list[Attempt]:
        """Attempts that have ended, after at most this long. The folder of each with a record is in `parts/TRIAL`."""
        ...

    def stop(self) -> None:
        """Ends what runs."""
        ...


class Local:
    """Processes on this machine."""

    def __init__(self, scenario: Scenario, folder: Path, binary: str, jobs: int) -> None:
        self.folder, self.binary, self.jobs = folder, binary, jobs
        self.path = anew(scenario, folder)
        self.running: dict[int, tuple[subprocess.Popen[bytes], Attempt, float]] = {}

    def slots(self) -> int:
        return self.jobs

    def start(self, trial: int, attempt: int, avoid: set[str]) -> None:
        beside = self._beside(trial)
        shutil.rmtree(beside, ignore_errors=True)
        log = _made(self.folder / "logs") / f"{trial}.log"
        with log.open("wb") as file:
            process = subprocess.Popen(
                job.command(self.binary, self.path, trial, beside),
                stdout=subprocess.DEVNULL,
                stderr=file,
                stdin=subprocess.DEVNULL,
                preexec_fn=_in_background,
            )
        self.running[trial] = (process, Attempt(trial, attempt, socket.gethostname(), "failed"), time.monotonic())

    def wait(self, seconds: float) -> list[Attempt]:
        until = time.monotonic() + seconds
        while True:
            ended = [trial for trial, (process, *_) in self.running.items() if process.poll() is not None]
            if ended or time.monotonic() >= until:
                return [self._end(trial) for trial in ended]
            time.sleep(LOOK_S)

    def _end(self, trial: int) -> Attempt:
        process, attempt, began = self.running.pop(trial)
        attempt.seconds = time.monotonic() - began
        beside = self._beside(trial)
        if (beside / "manifest.json").exists():
            attempt.outcome, attempt.because = job.record(beside)
        if attempt.outcome == "failed":
            words = (self.folder / "logs" / f"{trial}.log").read_text(errors="replace")[-job.WORDS_MAX :].strip()
            attempt.because = words or attempt.because or f"suiro ended with exit code {process.returncode}"
            shutil.rmtree(beside, ignore_errors=True)
        else:
            job.keep(beside, self.folder / "parts" / str(trial))
        return attempt

    def _beside(self, trial: int) -> Path:
        return _made(self.folder / "parts") / f".{trial}.part"

    def stop(self) -> None:
        for process, *_ in self.running.values():
            process.send_signal(signal.SIGTERM)
        for process, *_ in self.running.values():
            process.wait()


def anew(scenario: Scenario, folder: Path) -> Path:
    """Writes the scenario below a sweep's folder, in place of what an earlier driver wrote there."""
    place = folder / "scenario"
    if place.exists():
        shutil.rmtree(place)
    return scenario.write(place)


def _in_background() -> None:
    """Ctrl-C is for the sweep, which ends its trials."""
    os.setpgid(0, 0)
    job.die_with_parent()


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder
