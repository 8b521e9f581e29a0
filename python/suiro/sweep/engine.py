"""How a trial gets to a machine."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from . import folder as rooms
from . import job
from .job import Attempt, Scenario

#: Seconds between two looks at processes or files.
LOOK_S = 0.05


class Engine(Protocol):
    """Runs attempts. Every attempt that is handed over ends in `wait`, whatever becomes of its machine."""

    def slots(self) -> int:
        """How many attempts can run side by side now."""
        ...

    def adopt(self, trials: set[int]) -> set[int]:
        """Of these trials, those that an earlier driver handed over and that go on. What else it left running is ended."""
        ...

    def start(self, trial: int, attempt: int, avoid: set[str]) -> None:
        """Hands over an attempt, if possible to a machine that is not in `avoid`."""
        ...

    def shun(self, machines: set[str]) -> None:
        """Keeps what is handed over and waits for a machine away from these, if there are others."""
        ...

    def wait(self, seconds: float) -> list[Attempt]:
        """Attempts that have ended, after at most this long. The folder of each with a record is in `parts/TRIAL`."""
        ...

    def stop(self) -> None:
        """Ends what runs."""
        ...


@dataclass
class _Running:
    process: subprocess.Popen[bytes]
    attempt: Attempt
    room: Path
    began: float


class Local:
    """Processes on this machine."""

    def __init__(self, scenario: Scenario, folder: Path, binary: str, jobs: int) -> None:
        self.folder, self.binary, self.jobs = folder, binary, jobs
        self.path = rooms.place(scenario, folder)
        self.running: list[_Running] = []

    def slots(self) -> int:
        return self.jobs

    def adopt(self, trials: set[int]) -> set[int]:
        """None: a trial ends with its driver, and the driver waits for that before it begins."""
        return set()

    def start(self, trial: int, attempt: int, avoid: set[str]) -> None:
        room, driver = rooms.room(self.folder, trial), os.getpid()
        with (room / "log").open("wb") as file:
            process = subprocess.Popen(
                job.command(self.binary, self.path, trial, room / "part"),
                stdout=subprocess.DEVNULL,
                stderr=file,
                stdin=subprocess.DEVNULL,
                preexec_fn=lambda: _in_background(driver),
            )
        self.running.append(_Running(process, Attempt(trial, attempt, socket.gethostname(), "failed"), room, time.monotonic()))

    def shun(self, machines: set[str]) -> None:
        """There is no other machine."""

    def wait(self, seconds: float) -> list[Attempt]:
        until = time.monotonic() + seconds
        while True:
            ended = [one for one in self.running if one.process.poll() is not None]
            if ended or time.monotonic() >= until:
                return [self._end(one) for one in ended]
            time.sleep(LOOK_S)

    def _end(self, one: _Running) -> Attempt:
        self.running.remove(one)
        attempt, part = one.attempt, one.room / "part"
        attempt.seconds = time.monotonic() - one.began
        words = rooms.keep_log(one.room / "log", self.folder, attempt.trial)
        if (part / "manifest.json").exists():
            attempt.outcome, attempt.because = job.record(part)
        if attempt.outcome == "failed":
            attempt.because = words or attempt.because or f"suiro ended with exit code {one.process.returncode}"
        else:
            job.keep(part, self.folder / "parts" / str(attempt.trial))
        shutil.rmtree(one.room)
        return attempt

    def stop(self) -> None:
        for one in self.running:
            one.process.send_signal(signal.SIGTERM)
        for one in self.running:
            one.process.wait()
            shutil.rmtree(one.room)
        self.running.clear()


def _in_background(driver: int) -> None:
    """Ctrl-C is for the sweep, which ends its trials."""
    os.setpgid(0, 0)
    job.die_with(driver)
