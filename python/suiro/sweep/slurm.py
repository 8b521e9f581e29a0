"""Trials as an array of Slurm jobs, on a file system that all machines share."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import time
from pathlib import Path

from . import job
from .engine import Refused, anew
from .job import Attempt, Scenario

#: Seconds between two looks at the shared folder.
LOOK_S = 0.5
#: Seconds for which a job that Slurm does not know any more may still have its record on the way.
GRACE_S = 30.0


class Slurm:
    """One array per hand-out, of one trial each; Slurm decides when and where."""

    def __init__(self, scenario: Scenario, folder: Path, binary: str, jobs: int | None) -> None:
        for program in ("sbatch", "squeue", "scancel"):
            if shutil.which(program) is None:
                raise Refused(f"--on slurm: the program {program} is not in PATH\nhint: run it on a machine that submits jobs to Slurm")
        self.folder, self.binary, self.jobs = folder, binary, jobs
        for name in ("parts", "logs"):
            (folder / name).mkdir(parents=True, exist_ok=True)
        self.path = anew(scenario, folder)
        self.waiting: dict[int, Attempt] = {}
        self.running: dict[str, tuple[Attempt, float, float | None]] = {}
        self.script = folder / "slurm.sh"
        self.script.write_text(script(binary, scenario.version, self.path, folder))

    def slots(self) -> int:
        return self.jobs or 1000

    def start(self, trial: int, attempt: int, avoid: set[str]) -> None:
        self.waiting[trial] = Attempt(trial, attempt, "", "lost")
        self.excluded = avoid

    def wait(self, seconds: float) -> list[Attempt]:
        self._submit()
        until = time.monotonic() + seconds
        while True:
            ended = self._look()
            if ended or time.monotonic() >= until:
                return ended
            time.sleep(LOOK_S)

    def _submit(self) -> None:
        """Hands over what waits, as one array: its indices are the numbers of the trials."""
        if not self.waiting:
            return
        indices = ",".join(map(str, sorted(self.waiting)))
        limit = f"%{self.jobs}" if self.jobs else ""
        command = ["sbatch", "--parsable", f"--array={indices}{limit}", f"--output={self.folder}/logs/%a.log", str(self.script)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise Refused(f"sbatch: {done.stderr.strip()}\nhint: the script is {self.script}")
        array = done.stdout.strip().split(";")[0]
        for trial, attempt in self.waiting.items():
            self.running[f"{array}_{trial}"] = (attempt, time.time(), None)
        self.waiting.clear()

    def _look(self) -> list[Attempt]:
        alive = self._alive()
        ended = []
        for name, (attempt, began, gone) in list(self.running.items()):
            done = self.folder / "parts" / f".{attempt.trial}.done"
            part = self.folder / "parts" / f".{attempt.trial}.part"
            if done.exists():
                attempt.machine = done.read_text().strip()
                if (part / "manifest.json").exists():
                    attempt.outcome, attempt.because = job.record(part)
                else:
                    attempt.outcome, attempt.because = "failed", self._words(attempt.trial)
                done.unlink()
            elif name in alive or (gone is None or time.time() - gone < GRACE_S):
                self.running[name] = (attempt, began, None if name in alive else gone or time.time())
                continue
            else:
                attempt.because = f"job {name} ended without a record: {self._words(attempt.trial)}"
            attempt.seconds = time.time() - began
            if attempt.outcome in ("failed", "lost"):
                shutil.rmtree(part, ignore_errors=True)
            else:
                job.keep(part, self.folder / "parts" / str(attempt.trial))
            ended.append(attempt)
            del self.running[name]
        return ended

    def _words(self, trial: int) -> str:
        try:
            return (self.folder / "logs" / f"{trial}.log").read_text(errors="replace")[-job.WORDS_MAX :].strip()
        except OSError:
            return "it has no log"

    def _alive(self) -> set[str]:
        """The jobs that Slurm still knows, `ARRAY_TRIAL`."""
        if not self.running:
            return set()
        arrays = ",".join(sorted({name.split("_")[0] for name in self.running}))
        done = subprocess.run(["squeue", "-h", "-r", "-o", "%F_%K", "-j", arrays], capture_output=True, text=True, check=False)
        if done.returncode != 0 and "Invalid job id" not in done.stderr:
            return set(self.running)
        return set(done.stdout.split())

    def stop(self) -> None:
        arrays = sorted({name.split("_")[0] for name in self.running})
        if arrays:
            subprocess.run(["scancel", *arrays], check=False)


def script(binary: str, version: str, scenario: Path, folder: Path) -> str:
    """The job of the array: one trial on a machine of its own. Partition, account and the like are SBATCH_… in the environment."""
    q = shlex.quote
    part, done = f"{q(str(folder))}/parts/.$trial.part", f"{q(str(folder))}/parts/.$trial.done"
    return f"""#!/bin/sh
#SBATCH --job-name=suiro
#SBATCH --exclusive
#SBATCH --requeue
trial=$SLURM_ARRAY_TASK_ID
suiro={q(binary)}
case "$("$suiro" --version)" in
*" {version}") ;;
*) echo "suiro on $(hostname) is not version {version}" >&2; hostname >{done}; exit 2 ;;
esac
rm -rf {part}
"$suiro" run {q(str(scenario))} --trial "$trial" --retries 0 --out {part} >/dev/null
hostname >{done}.new && mv {done}.new {done}
"""


def folder_is_shared(folder: Path) -> bool:
    """Whether a folder is one that other machines can see, as far as its path tells."""
    return not os.path.realpath(folder).startswith(("/tmp/", "/dev/shm/", "/run/"))
