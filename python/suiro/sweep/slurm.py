"""Trials as arrays of Slurm jobs, on a file system that all machines share.

Each hand-out is a batch in `OUT/sweep/jobs/BATCH`: `tasks` has a line `TRIAL ATTEMPT` per task of the array, and the job's name
is that of the batch, so that a driver finds the jobs of one that was killed, whenever that was. A task writes to a room of its
own each time that Slurm starts it; the first that ends reports it in `TASK.done`.
"""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from . import folder as rooms
from . import job
from .job import Attempt, Scenario
from .words import Refused, say

#: Seconds between two looks at the shared folder.
LOOK_S = 0.5
#: Seconds for which a job that Slurm does not know any more may still have its record on the way.
GRACE_S = 30.0
#: Most tasks of one array; Slurm's own limit, MaxArraySize, may be lower.
TASKS_MAX = 1000


@dataclass
class _Task:
    attempt: Attempt
    batch: Path
    index: int
    array: str
    began: float
    gone: float | None = None
    """Since when Slurm does not know it any more."""

    @property
    def name(self) -> str:
        """As Slurm calls it."""
        return f"{self.array}_{self.index}"


class Slurm:
    """Slurm decides when and where."""

    def __init__(self, scenario: Scenario, folder: Path, binary: str, jobs: int | None, *, virtual: bool = False) -> None:
        for program in ("sbatch", "squeue", "scancel"):
            if shutil.which(program) is None:
                raise Refused(f"--on slurm: the program {program} is not in PATH\nhint: run it on a machine that submits jobs to Slurm")
        self.folder, self.binary, self.jobs = folder.absolute(), binary, jobs
        self.version, self.virtual = scenario.version, virtual
        self.path = rooms.place(scenario, self.folder)
        (self.folder / "jobs").mkdir(exist_ok=True)
        self.waiting: list[tuple[Attempt, frozenset[str]]] = []
        self.running: list[_Task] = []
        self.tasks_max = tasks_max()

    def slots(self) -> int:
        return self.jobs or TASKS_MAX

    def adopt(self, trials: set[int]) -> set[int]:
        adopted: set[int] = set()
        for batch in sorted((self.folder / "jobs").iterdir()):
            array = None if (batch / "cancelled").exists() else _array(batch)
            if array is None:
                # Slurm was never given it, or its jobs were cancelled.
                shutil.rmtree(batch, ignore_errors=True)
                continue
            for index, (trial, number) in enumerate(_tasks(batch)):
                if (batch / f"{index}.ended").exists():
                    continue
                if trial in trials - adopted:
                    adopted.add(trial)
                    self.running.append(_Task(Attempt(trial, number, "", "lost"), batch, index, array, time.time()))
                else:
                    subprocess.run(["scancel", f"{array}_{index}"], check=False)
        if adopted:
            say(f"{len(adopted)} trials are with Slurm already, and go on")
        return adopted

    def start(self, trial: int, attempt: int, avoid: set[str]) -> None:
        self.waiting.append((Attempt(trial, attempt, "", "lost"), frozenset(avoid)))

    def shun(self, machines: set[str]) -> None:
        if not _others(frozenset(machines)):
            return
        for array in {task.array for task in self.running}:
            # It changes the tasks that wait; those that run are what they are.
            command = ["scontrol", "update", f"JobId={array}", f"ExcNodeList={','.join(sorted(machines))}"]
            subprocess.run(command, capture_output=True, check=False)

    def wait(self, seconds: float) -> list[Attempt]:
        self._submit()
        until = time.monotonic() + seconds
        while True:
            ended = self._look()
            if ended or time.monotonic() >= until:
                return ended
            time.sleep(LOOK_S)

    def _submit(self) -> None:
        """Hands over what waits: an array for those that avoid the same machines."""
        while self.waiting:
            avoid = self.waiting[0][1]
            tasks = [attempt for attempt, other in self.waiting if other == avoid][: self.tasks_max]
            if not self._submit_batch(tasks, avoid):
                return
            self.waiting = [(attempt, other) for attempt, other in self.waiting if attempt not in tasks]

    def _submit_batch(self, tasks: list[Attempt], avoid: frozenset[str]) -> bool:
        """False if Slurm takes no more jobs now, and some run that make room."""
        batch = Path(tempfile.mkdtemp(prefix="suiro-", dir=self.folder / "jobs"))
        rooms.write(batch / "tasks", "".join(f"{one.trial} {one.number}\n" for one in tasks))
        rooms.write(batch / "job.sh", script(self.binary, self.version, self.path, batch, virtual=self.virtual))
        command = ["sbatch", "--parsable", f"--job-name={batch.name}", f"--array=0-{len(tasks) - 1}", f"--output={batch}/%a.log"]
        if avoid and _others(avoid):
            command.append(f"--exclude={','.join(sorted(avoid))}")
        done = subprocess.run([*command, str(batch / "job.sh")], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            shutil.rmtree(batch)
            if self.running:
                return False
            raise Refused(f"sbatch: {done.stderr.strip()}\nhint: partition, account and the like are SBATCH_PARTITION, SBATCH_ACCOUNT, …")
        array = done.stdout.strip().split(";")[0]
        rooms.write(batch / "array", array)
        self.running += [_Task(attempt, batch, index, array, time.time()) for index, attempt in enumerate(tasks)]
        return True

    def _look(self) -> list[Attempt]:
        alive = self._alive()
        ended = []
        for task in list(self.running):
            attempt, now = task.attempt, time.time()
            attempt.machine = alive.get(task.name) or attempt.machine
            done = task.batch / f"{task.index}.done"
            if done.exists():
                self._end(task, done.read_text().splitlines())
            elif task.name in alive:
                task.gone = None
                continue
            elif task.gone is None or now - task.gone < GRACE_S:
                task.gone = task.gone or now
                continue
            else:
                attempt.because = f"job {task.name} ended without a record: {self._words(task, None)}"
            attempt.seconds = now - task.began
            attempt.starts = max(1, sum(room.is_dir() for room in task.batch.glob(f"{task.index}.room.*")))
            ended.append(attempt)
            self.running.remove(task)
            self._forget(task)
        return ended

    def _end(self, task: _Task, done: list[str]) -> None:
        """Reads what a task says at its end: its machine, its room, and whether it could begin."""
        attempt = task.attempt
        attempt.machine, name, how = (*done, "", "", "")[:3]
        room = task.batch / Path(name).name
        part = room / "part"
        words = self._words(task, room)
        if how == "refused":
            attempt.outcome, attempt.because = "refused", words
        elif (part / "manifest.json").exists():
            attempt.outcome, attempt.because = job.record(part)
        else:
            attempt.outcome, attempt.because = "failed", words
        if attempt.outcome not in ("failed", "refused"):
            job.keep(part, self.folder / "parts" / str(attempt.trial))

    def _words(self, task: _Task, room: Path | None) -> str:
        own = rooms.keep_log(room / "log", self.folder, task.attempt.trial) if room else ""
        return own or rooms.keep_log(task.batch / f"{task.index}.log", self.folder, task.attempt.trial) or "it has no log"

    def _forget(self, task: _Task) -> None:
        """Removes a task's rooms, and its batch with the last of them."""
        rooms.write(task.batch / f"{task.index}.ended", "")
        for room in task.batch.glob(f"{task.index}.room.*"):
            shutil.rmtree(room, ignore_errors=True)
        if not any(one.batch == task.batch for one in self.running):
            shutil.rmtree(task.batch, ignore_errors=True)

    def _alive(self) -> dict[str, str]:
        """The jobs that Slurm still knows, `ARRAY_TASK`, each with its machine."""
        if not self.running:
            return {}
        arrays = ",".join(sorted({task.array for task in self.running}))
        done = subprocess.run(["squeue", "-h", "-r", "-o", "%F_%K %N", "-j", arrays], capture_output=True, text=True, check=False)
        if done.returncode != 0 and "Invalid job id" not in done.stderr:
            return {task.name: "" for task in self.running}
        return {name: machine for line in done.stdout.splitlines() for name, _, machine in [line.strip().partition(" ")]}

    def stop(self) -> None:
        for batch, array in {task.batch: task.array for task in self.running}.items():
            if subprocess.run(["scancel", array], check=False).returncode == 0:
                rooms.write(batch / "cancelled", "")


def check_none_left(folder: Path) -> None:
    """Refuses to go on without Slurm where jobs of an earlier driver may still run."""
    left = [batch.name for batch in (folder / "jobs").glob("*") if not (batch / "cancelled").exists()]
    if left:
        raise Refused(
            f"trials of this sweep are with Slurm\nhint: --on slurm --resume goes on with them; or scancel --name={','.join(left)}, and "
            f"remove {folder / 'jobs'}"
        )


def _tasks(batch: Path) -> list[tuple[int, int]]:
    """The trials of a batch, each with the number of its attempt."""
    try:
        lines = (batch / "tasks").read_text().splitlines()
        return [(int(trial), int(number)) for trial, number in map(str.split, lines)]
    except (OSError, ValueError):
        return []


def _array(batch: Path) -> str | None:
    """Slurm's number of a batch; None if Slurm does not have it: then its driver was killed before it was handed over."""
    try:
        return (batch / "array").read_text()
    except OSError:
        done = subprocess.run(["squeue", "-h", "-o", "%F", f"--name={batch.name}"], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise Refused(f"squeue: {done.stderr.strip()}") from None
        return next(iter(done.stdout.split()), None)


def _others(avoid: frozenset[str]) -> bool:
    """Whether there are other machines than these."""
    try:
        done = subprocess.run(["sinfo", "-h", "-N", "-o", "%N"], capture_output=True, text=True, check=False)
    except OSError:
        return False
    return bool(set(done.stdout.split()) - avoid)


def tasks_max() -> int:
    """The most tasks that one array may have here."""
    try:
        done = subprocess.run(["scontrol", "show", "config"], capture_output=True, text=True, check=False)
    except OSError:
        return TASKS_MAX
    found = re.search(r"^MaxArraySize\s*=\s*(\d+)", done.stdout, re.MULTILINE)
    return max(1, min(int(found[1]), TASKS_MAX)) if found else TASKS_MAX


def script(binary: str, version: str, scenario: Path, batch: Path, *, virtual: bool) -> str:
    """The job of an array: one trial, on a machine of its own unless its time is virtual.

    Partition, account and the like are SBATCH_… in the environment.
    """
    q = shlex.quote
    alone = "--cpus-per-task=1" if virtual else "--exclusive"
    return f"""#!/bin/sh
#SBATCH {alone}
#SBATCH --requeue
suiro={q(binary)}
task={q(str(batch))}/$SLURM_ARRAY_TASK_ID
trial=$(sed -n "$((SLURM_ARRAY_TASK_ID + 1))s/ .*//p" {q(str(batch))}/tasks)
machine=${{SLURMD_NODENAME:-$(hostname)}}
# Slurm may start it again while the first one lives on, on a machine that is out of reach.
room=$(mktemp -d "$task.room.XXXXXX") || exit 2
exec >"$room/log" 2>&1
end() {{
    printf '%s\\n%s\\n%s\\n' "$machine" "${{room##*/}}" "$1" >"$room.done" && mv -n "$room.done" "$task.done"
}}
case "$("$suiro" --version)" in
*" {version}") ;;
*) echo "suiro on $machine is not version {version}"; end refused; exit 2 ;;
esac
"$suiro" run {q(str(scenario))} --trial "$trial" --retries 0 --out "$room/part" >/dev/null
end ran
"""
