"""Hands out the trials of a plan, watches them, tries again, and merges what they recorded."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter, deque
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

from .._files import ResultsError, read_document
from . import folder as rooms
from . import job
from .engine import Engine, Local
from .job import Attempt, Scenario, gather
from .words import Refused, say

#: How often an attempt that was lost with its machine, or that left no record, is repeated.
LOST_MAX = 3
#: From so many failures in a row on, a machine is avoided.
BAD = 3
#: Bytes of disk that must be free, in addition to those of the largest trial so far.
SPACE_BYTES = 64 << 20
#: In the sweep's folder: the attempts that were begun, and those that have ended.
BEGUN, ENDED = "begun.jsonl", "attempts.jsonl"
#: Trials that a message lists.
LISTED = 20
#: Outcomes that say nothing against a machine.
GOOD = ("valid", "invalid", "late")
#: Seconds between two lines of progress where standard error is not a terminal.
TELL_S = 10.0
#: From this difference on, clocks are told to be apart.
APART_S = 2.0


@dataclass
class Request:
    """What was typed."""

    binary: str
    """The program."""
    command: list[str]
    """The command line, for the manifest."""
    scenario: str
    """A built-in scenario's name, or a file."""
    changes: list[str]
    """`--set …`, `--only …` and so on, as `suiro check` takes them."""
    out: Path
    on: str
    jobs: int | None
    retries: int
    """How often a trial that is invalid because its machine was too slow is repeated elsewhere."""
    resume: bool
    tune: dict[str, Any] | None = None


@dataclass
class Plan:
    """What is to be run."""

    document: dict[str, Any]
    scenario: Scenario
    trials: list[int] = field(default_factory=list)

    @classmethod
    def of(cls, request: Request) -> Plan:
        """Planned by the program."""
        command = [request.binary, "check", request.scenario, "--json", *request.changes]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise Refused(done.stderr.strip().removeprefix("error: "))
        document = json.loads(done.stdout)
        try:
            files = gather(Path(request.scenario).parent, document["files"])
            # Machines of a cluster have another working folder.
            working = gather(Path(), document.get("command_files", [])) if request.on.partition(":")[0] == "ray" else {}
        except ResultsError as error:
            raise Refused(
                f"{error}\nhint: a sweep sends what is below the folder of the scenario, or for its commands below the working "
                "folder, and only that; copy it there, or name it by an absolute path that all machines have"
            ) from None
        contents = {name: content for name, (_, content) in files.items()}
        scenario = Scenario(document["scenario"], document["text"], document["suiro"], contents, working)
        return cls(document, scenario, [trial["number"] for trial in document["trials"]])

    def identity(self) -> dict[str, Any]:
        """What another sweep in the same folder must share."""
        files = {name: hashlib.sha256(content).hexdigest() for name, content in sorted(self.scenario.files.items())}
        return {key: self.document[key] for key in ("suiro", "scenario", "text", "seed", "plan_trials")} | {"files": files}

    @property
    def virtual(self) -> bool:
        """Whether its trials run in virtual time."""
        return bool(self.document.get("time") == "virtual")


class Sweep:
    """A sweep in its results folder: `OUT/sweep` holds what is not merged yet."""

    def __init__(self, request: Request, plan: Plan) -> None:
        self.request, self.plan = request, plan
        self.folder = request.out / "sweep"
        self.parts = self.folder / "parts"
        self.counts: Counter[str] = Counter()
        self.best: dict[int, Attempt] = {}
        self.avoid: dict[int, set[str]] = {}
        self.tries: Counter[tuple[int, str]] = Counter()
        self.numbers: Counter[int] = Counter()
        self.unended: set[tuple[int, int]] = set()
        self.stopping = False
        self.told_clocks: set[str] = set()
        self.held: int | None = None
        self.failures: Counter[str] = Counter()
        self.versions: dict[str, str] = {}
        self.largest = 0

    def prepare(self) -> list[int]:
        """Takes the folder until `release`. Gives the numbers of the trials that have no valid outcome yet."""
        self._check_free()
        self.held = rooms.hold(self.folder)
        try:
            # Another driver may have begun and ended in between.
            self._check_free()
            rooms.check_own(self.folder)
            self.parts.mkdir(parents=True, exist_ok=True)
            rooms.write(self.folder / "plan.json", json.dumps(self.plan.identity()))
            rooms.settle(self.folder)
            done = self._measured()
            self._recall(done)
        except BaseException:
            self.release()
            raise
        return [trial for trial in self.plan.trials if trial not in done]

    def _recall(self, done: set[int]) -> None:
        """Reads which attempts earlier drivers began. Those that ended unrecorded, because the driver was killed, are recorded."""
        begun, ended = (rooms.attempts(self.folder, name) for name in (BEGUN, ENDED))
        self.numbers = Counter()
        for trial, number in begun + ended:
            self.numbers[trial] = max(self.numbers[trial], number)
        self.unended = set(begun) - set(ended)
        self._record({one for one in self.unended if one[0] in done}, "valid", "the sweep was killed before this was recorded")

    def _record(self, attempts: set[tuple[int, int]], outcome: str, because: str) -> None:
        """Records attempts of earlier drivers, by trial and number."""
        for trial, number in sorted(attempts):
            rooms.append(self.folder / ENDED, Attempt(trial, number, "", outcome, because).line())
        self.unended -= attempts

    def _record_lost(self, running: set[int]) -> None:
        """Records the attempts that ended with an earlier driver; those of the trials in `running` go on."""
        lost = {one for one in self.unended if one[0] not in running}
        self._record(lost, "lost", "the sweep was stopped or killed before this had ended")
        if lost:
            trials = [str(trial) for trial, _ in sorted(lost)]
            more = ", …" if len(trials) > LISTED else ""
            say(f"{len(trials)} attempts were lost with the sweep before this one, again: trials {', '.join(trials[:LISTED])}{more}")

    def release(self) -> None:
        """Gives the folder back."""
        if self.held is not None:
            os.close(self.held)
            self.held = None

    def _check_free(self) -> None:
        """Refuses a folder that holds something else, and without --resume one that holds this sweep."""
        out, known = self.request.out, self.folder / "plan.json"
        used = known.exists() or (out.exists() and any(entry.name != self.folder.name for entry in out.iterdir()))
        if used and not self.request.resume:
            raise Refused(f"{out} already holds results\nhint: --resume goes on with them, --out names another folder")
        if used and not known.exists():
            raise Refused(f"{out} was not made by suiro sweep\nhint: choose another folder with --out")
        if used and read_document(self.folder, known.name) != self.plan.identity():
            raise Refused(
                f"{out} holds results of another scenario, version or settings\n"
                "hint: repeat the command that made them, with --resume"
            )

    def _measured(self) -> set[int]:
        """The trials that are valid already, merged or not, and whose tables are whole."""
        done, damage = set[int](), dict[int, str]()
        for folder in [self.request.out, *(part for part in self.parts.iterdir() if part.name.isdigit())]:
            try:
                manifest = read_document(folder, "manifest.json")
                planned = [(int(one["number"]), str(one["folder"])) for one in manifest["plan"]]
                self.versions = programs(manifest) | self.versions
            except (OSError, ValueError, LookupError, TypeError, AttributeError):
                continue
            known = job.verdicts(folder)
            for number, place in planned:
                try:
                    trial = read_document(folder, f"{place}/trial.json")
                    why = job.damaged(folder, place, trial, known) if trial.get("valid") is True else None
                except (OSError, ValueError, LookupError, TypeError, AttributeError):
                    continue
                if why is not None:
                    damage[number] = why
                elif trial.get("valid") is True:
                    done.add(number)
        for number in sorted(damage.keys() - done):
            say(f"trial {number}: damaged, again: {damage[number]}")
        return done

    def run(self, engine: Engine, trials: list[int]) -> None:
        """Runs these trials to the end, or until it is interrupted."""
        running = engine.adopt(set(trials))
        self._record_lost(running)
        waiting = deque(trial for trial in trials if trial not in running)
        progress = Progress(self, len(trials), self._seconds())
        try:
            while (waiting or running) and not self.stopping:
                slots = engine.slots()
                if not slots and not running:
                    raise Refused("no machine is left that can run trials\nhint: start one, then the same command with --resume")
                while waiting and len(running) < max(slots, 1):
                    trial = waiting.popleft()
                    self.numbers[trial] += 1
                    number = self.numbers[trial]
                    rooms.append(self.folder / BEGUN, json.dumps({"trial": trial, "number": number}))
                    engine.start(trial, number, self.avoid.get(trial, set()) | self._bad())
                    running.add(trial)
                for attempt in engine.wait(1.0):
                    running.discard(attempt.trial)
                    if self._ended(attempt):
                        waiting.append(attempt.trial)
                    if self.failures[attempt.machine] == BAD and attempt.outcome not in GOOD:
                        say(f"{BAD} trials in a row failed on {attempt.machine}: others are used if there are any")
                        engine.shun(self._bad())
                progress.tell(len(running), slots)
        finally:
            progress.end()
            engine.stop()

    def _seconds(self) -> float:
        return max((trial["seconds"] for trial in self.plan.document["trials"]), default=0.0)

    def _ended(self, attempt: Attempt) -> bool:
        """Records an attempt. True if the trial is to be run again."""
        self._check_versions(attempt)
        rooms.append(self.folder / ENDED, attempt.line())
        self._check_space(attempt)
        self._tell_clock(attempt)
        trial, outcome = attempt.trial, attempt.outcome
        if attempt.machine:
            self.failures[attempt.machine] = 0 if outcome in GOOD else self.failures[attempt.machine] + 1
        self.tries[trial, outcome] += 1
        most = {"late": self.request.retries, "valid": 0, "invalid": 0}.get(outcome, LOST_MAX)
        again = not self.stopping and self.tries[trial, outcome] <= most
        if again:
            self.counts["repeated"] += 1
            if attempt.machine:
                self.avoid.setdefault(trial, set()).add(attempt.machine)
        else:
            self.best[trial] = attempt
            self.counts[outcome] += 1
        if attempt.starts > 1:
            say(f"trial {trial}: it was started {attempt.starts} times; the first that ended counts")
        if outcome != "valid":
            where = f" on {attempt.machine}" if attempt.machine else ""
            say(f"trial {trial}: {outcome}{where}{', again' if again else ''}: {attempt.because}")
        return again

    def _bad(self) -> set[str]:
        """The machines on which nothing works."""
        return {machine for machine, count in self.failures.items() if count >= BAD}

    def _check_versions(self, attempt: Attempt) -> None:
        """Refuses an attempt that was made with other programs than those before it: they could not be merged."""
        part = self.parts / str(attempt.trial)
        if attempt.outcome not in GOOD:
            return
        try:
            found = programs(read_document(part, "manifest.json"))
        except (OSError, ValueError, LookupError, AttributeError):
            return
        for name, version in found.items():
            known = self.versions.setdefault(name, version)
            if known != version:
                attempt.outcome, attempt.because = "refused", f"it has {name} {version}, and the trials before it {known}"
                shutil.rmtree(part)
                return

    def _check_space(self, attempt: Attempt) -> None:
        """Raises OSError if the disk is full: whatever is repeated fails again."""
        part = self.parts / str(attempt.trial)
        if attempt.outcome in GOOD:
            self.largest = max(self.largest, sum(file.lstat().st_size for file in part.rglob("*")))
        else:
            rooms.check_space(self.folder, SPACE_BYTES + self.largest)

    def _tell_clock(self, attempt: Attempt) -> None:
        if attempt.clock_s is None or abs(attempt.clock_s) < APART_S or attempt.machine in self.told_clocks:
            return
        self.told_clocks.add(attempt.machine)
        way = "ahead of" if attempt.clock_s > 0 else "behind"
        say(
            f"the clock of {attempt.machine} is at least {abs(attempt.clock_s):.0f} s {way} this machine's: the times at which its "
            "trials began are off by that; measurements are not\nhint: start a time service such as chrony there"
        )

    def merge(self, *, quiet: bool = False) -> int:
        """Merges the parts into the results folder. Gives the exit code."""
        parts = sorted((part for part in self.parts.iterdir() if part.name.isdigit()), key=lambda part: int(part.name))
        if not parts and (self.request.out / "manifest.json").exists():
            return subprocess.run([self.request.binary, "report", str(self.request.out)], check=False).returncode
        if not parts:
            say("no trial has a record")
            return 1
        command = [self.request.binary, "merge", *map(str, parts), "--out", str(self.request.out)]
        command.append(f"--made-by={json.dumps(self.request.command)}")
        done = subprocess.run(command, check=False, stdout=subprocess.DEVNULL if quiet else None)
        if done.returncode not in (0, 1) or not (self.request.out / "summary.json").exists():
            say(f"the trials are kept in {self.parts}\nhint: the same command with --resume goes on with them")
            return done.returncode
        for part in parts:
            # First out of the way: half a part, of a driver that was killed here, could never be merged.
            room = rooms.room(self.folder, int(part.name))
            os.replace(part, room / "part")
            shutil.rmtree(room)
        return done.returncode


class Progress:
    """How far it is, and how long it will take."""

    def __init__(self, sweep: Sweep, trials: int, seconds: float) -> None:
        self.sweep, self.trials, self.seconds = sweep, trials, seconds
        self.began, self.told = time.monotonic(), 0.0
        self.live = sys.stderr.isatty()

    def tell(self, running: int, slots: int) -> None:
        now = time.monotonic()
        if now - self.told < (0.2 if self.live else TELL_S):
            return
        self.told = now
        line = self.line(running, slots, now - self.began)
        if self.live:
            sys.stderr.write(f"\r\x1b[K{line}")
            sys.stderr.flush()
        else:
            say(line)

    def line(self, running: int, slots: int, passed: float) -> str:
        """`12 of 40 trials, 3 running, 1 late, about 4 min left`."""
        done = len(self.sweep.best)
        others = [f"{count} {name}" for name, count in sorted(self.sweep.counts.items()) if name != "valid" and count]
        left = self.trials - done
        # What is known before the first trial has ended is how long one measures.
        each = passed / done if done else self.seconds / max(min(slots, self.trials), 1)
        rest = f"about {duration(left * each)} left" if left else "done"
        return ", ".join([f"{done} of {self.trials} trials", f"{running} running", *others, rest])

    def end(self) -> None:
        if self.live:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


def programs(manifest: dict[str, Any]) -> dict[str, str]:
    """What trials were made with, and what all trials of a folder must share: programs, and the kernel of guests."""
    kernel = (manifest.get("virtual_time") or {}).get("kernel_sha256")
    return {str(name): str(version) for name, version in (manifest.get("versions") or {}).items()} | ({"guest kernel": str(kernel)} if kernel else {})


def duration(seconds: float) -> str:
    """`40 s`, `12 min`, `3.5 h`."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def engine_of(request: Request, plan: Plan, folder: Path) -> Engine:
    """The engine that `--on` names."""
    if request.on != "slurm":
        from .slurm import check_none_left

        check_none_left(folder)
    kind, _, rest = request.on.partition(":")
    if request.on == "local":
        # In virtual time trials do not disturb each other.
        usual = len(os.sched_getaffinity(0)) if plan.virtual else plan.document["jobs"]
        return Local(plan.scenario, folder, request.binary, request.jobs or usual)
    if request.on == "slurm":
        from .slurm import Slurm

        return Slurm(plan.scenario, folder, request.binary, request.jobs, virtual=plan.virtual)
    if kind == "ray":
        from .cluster import Ray

        address = request.on if rest.startswith("//") else rest or "auto"
        return Ray(plan.scenario, folder, address, virtual=plan.virtual)
    raise Refused(f"--on {request.on}: expected local, slurm, ray, ray:HOST:PORT or ray://HOST:PORT")


def sweep(request: Request) -> int:
    """Runs a whole sweep. Gives the exit code."""
    plan = Plan.of(request)
    whole = Sweep(request, plan)
    trials = whole.prepare()

    def interrupted(_signal: int, _frame: FrameType | None) -> None:
        whole.stopping = True

    signal.signal(signal.SIGINT, interrupted)
    signal.signal(signal.SIGTERM, interrupted)
    try:
        if trials:
            engine = engine_of(request, plan, whole.folder)
            say(f"running {len(trials)} trials on {request.on}, {engine.slots()} at a time")
            whole.run(engine, trials)
        code = whole.merge()
    finally:
        whole.release()
    if whole.stopping:
        say("interrupted\nhint: the same command with --resume goes on")
        return 1
    return code
