"""A search over parameters of a scenario, by Optuna: `--tune goal="min queue while media.latency_p95_ms < 200" over=…`."""

from __future__ import annotations

import contextlib
import json
import math
import os
import re
import signal
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from .._files import read_document
from .._frame import need
from .driver import Request
from .folder import hold, write
from .job import die_with
from .words import Refused, say

#: Rounds unless `rounds=` says otherwise.
ROUNDS = 20
#: Most rounds.
ROUNDS_MAX = 1000
#: A search over one number ends when the ends of its interval are this close.
CLOSE = 0.02

#: Units that a range may have: what they are in the first of their group.
_UNITS = [
    {"": 1.0},
    {"B": 1.0, "kB": 1e3, "MB": 1e6, "GB": 1e9},
    {"bit/s": 1.0, "kbit/s": 1e3, "Mbit/s": 1e6, "Gbit/s": 1e9},
    {"us": 1.0, "ms": 1e3, "s": 1e6, "min": 6e7},
    {"p": 1.0},
    {"%": 1.0},
]
#: Quantities that are counted in whole ones.
_WHOLE = {"B", "bit/s", "us", "p"}


@dataclass(frozen=True)
class Range:
    """A number that may change."""

    path: str
    low: float
    high: float
    unit: str

    def text(self, value: float) -> str:
        """As a scenario has it."""
        number = f"{round(value)}" if self.unit in _WHOLE else f"{value:.6g}"
        return f"{number} {self.unit}" if self.unit else number

    @property
    def log(self) -> bool:
        """Whether its logarithm is searched."""
        return self.low > 0 and self.high / self.low >= 10


@dataclass(frozen=True)
class Choice:
    """A word that may change."""

    path: str
    words: list[str]


@dataclass(frozen=True)
class Condition:
    """What a metric must meet."""

    metric: str
    below: bool
    bound: float

    def violation(self, value: float | None) -> float:
        """By how much it is not met, relative to the bound: 0 or less where it is."""
        if value is None or math.isnan(value):
            return math.inf
        difference = value - self.bound if self.below else self.bound - value
        return difference / (abs(self.bound) or 1.0)

    def __str__(self) -> str:
        return f"{self.metric} {'<' if self.below else '>'} {self.bound:g}"


@dataclass(frozen=True)
class Measured:
    """A metric over the valid trials of a round."""

    values: list[float | None]
    """Of each trial; None if it has none."""

    @property
    def known(self) -> list[float]:
        """The values that there are."""
        return [value for value in self.values if value is not None]

    @property
    def mean(self) -> float | None:
        """The mean of these."""
        return sum(self.known) / len(self.known) if self.known else None

    @property
    def whole(self) -> float | None:
        """The mean of all trials; None if one has no value: the others do not show what it would be."""
        return self.mean if len(self.known) == len(self.values) else None


#: A metric that no trial of a round lists.
_NOTHING = Measured([])


@dataclass(frozen=True)
class Goal:
    """What is sought."""

    least: bool
    name: str
    conditions: list[Condition]


def goal(text: str) -> Goal:
    """`min NAME [while METRIC < NUMBER [and METRIC > NUMBER]…]`; NAME is a parameter or a metric.

    Raises Refused with what is expected.
    """
    found = re.fullmatch(r"(min|max) (\S+)(?: while (.+))?", text.strip())
    if not found:
        raise Refused(f"--tune goal={text}: expected `min NAME` or `max NAME`, then `while METRIC < NUMBER`\nhint: goal=\"min queue while media.latency_p95_ms < 200\"")
    conditions = []
    for part in re.split(r" and ", found[3]) if found[3] else []:
        one = re.fullmatch(r"\s*(\S+)\s*([<>])\s*([-+.\deE]+)\s*", part)
        try:
            if not one:
                raise ValueError
            conditions.append(Condition(one[1], one[2] == "<", float(one[3])))
        except ValueError:
            raise Refused(f"--tune goal: expected `METRIC < NUMBER` or `METRIC > NUMBER`, found `{part.strip()}`") from None
    return Goal(found[1] == "min", found[2], conditions)


def over(text: str) -> Range | Choice:
    """`PATH=LOW..HIGH`, with units, or `PATH=WORD|WORD`. Raises Refused with what is expected."""
    path, equals, values = text.partition("=")
    hint = 'hint: over="queue=10 kB..1 MB" or over="tcp=reno|cubic"'
    if not equals or not path.strip():
        raise Refused(f"--tune over={text}: expected PATH=LOW..HIGH or PATH=WORD|WORD\n{hint}")
    low, dots, high = values.partition("..")
    if not dots:
        words = [word.strip() for word in values.split("|")]
        if len(words) < 2 or not all(words):
            raise Refused(f"--tune over={text}: expected a range LOW..HIGH or two words at least\n{hint}")
        return Choice(path.strip(), words)
    (least, unit), (most, other) = _quantity(low, text), _quantity(high, text)
    if unit != other:
        raise Refused(f"--tune over={text}: expected two quantities of one kind, found `{low.strip()}` and `{high.strip()}`")
    if not least < most:
        raise Refused(f"--tune over={text}: expected the smaller end first, found {low.strip()}..{high.strip()}")
    return Range(path.strip(), least, most, unit)


def _quantity(text: str, whole: str) -> tuple[float, str]:
    found = re.fullmatch(r"\s*([-+.\deE]+?)\s*([A-Za-z%/]*)\s*", text)
    for units in _UNITS:
        if found and found[2] in units:
            try:
                return float(found[1]) * units[found[2]], next(iter(units))
            except ValueError:
                break
    known = ", ".join(unit for units in _UNITS for unit in units if unit)
    raise Refused(f"--tune over={whole}: expected a number, with one of the units {known} or none, found `{text.strip()}`")


def tune(request: Request) -> int:
    """Searches. Each round is a sweep of its own in `OUT/rounds/N`; `OUT/tune.json` has them all."""
    assert request.tune is not None
    sought, ranges = goal(request.tune["goal"]), [over(text) for text in request.tune["over"]]
    rounds = _number(request.tune, "rounds", ROUNDS)
    search = Search(request, sought, ranges, rounds, _number(request.tune, "parallel", 1))
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    try:
        return search.run()
    finally:
        search.release()


def _number(words: dict[str, Any], name: str, usual: int) -> int:
    number = int(words.get(name) or usual)
    if not 1 <= number <= ROUNDS_MAX:
        raise Refused(f"--tune {name}={number}: expected a number from 1 to {ROUNDS_MAX}")
    return number


@dataclass
class Round:
    """Values that are tried."""

    number: int
    """From 1."""
    trial: Any
    """Optuna's."""
    values: dict[str, float | str]
    texts: list[str]
    """The values as `--set` takes them."""


class Search:
    """A search in its folder."""

    def __init__(self, request: Request, sought: Goal, ranges: list[Range | Choice], rounds: int, parallel: int = 1) -> None:
        self.request, self.sought, self.ranges, self.rounds, self.parallel = request, sought, ranges, rounds, parallel
        self.optuna = optuna = need("optuna")
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        out = request.out
        if out.exists() and any(out.iterdir()) and not (request.resume and (out / "optuna.log").exists()):
            raise Refused(f"{out} already holds results\nhint: --resume goes on with a search, --out names another folder")
        self.held: int | None = hold(out)
        storage = optuna.storages.JournalStorage(optuna.storages.journal.JournalFileBackend(str(out / "optuna.log")))
        tune = request.tune or {}
        name = json.dumps([request.scenario, request.changes, tune.get("goal", ""), tune.get("over", [])])
        if set(optuna.get_all_study_names(storage)) - {name}:
            self.release()
            raise Refused(f"{out} holds another search\nhint: repeat the command that made it, with --resume")
        self.study = optuna.create_study(study_name=name, storage=storage, load_if_exists=True, direction="minimize" if sought.least else "maximize")
        done = [trial.user_attrs["round"] for trial in self.study.trials if "round" in trial.user_attrs]
        self.done: list[dict[str, Any]] = sorted(done, key=lambda one: int(one["round"]))

    def release(self) -> None:
        """Gives the folder back."""
        if self.held is not None:
            os.close(self.held)
            self.held = None

    def run(self) -> int:
        """All rounds. Gives the exit code: 1 if nothing meets the conditions."""
        while len(self.done) < self.rounds:
            # In batches, which end together: what is tried next does not depend on which was faster.
            batch = self._begun() or self._next(min(self.parallel, self.rounds - len(self.done)))
            if not batch:
                break
            self._measure(batch)
            for one in batch:
                self._told(one, self._metrics(one.number))
        best = self._best()
        write(self.request.out / "tune.json", json.dumps({"goal": (self.request.tune or {})["goal"], "best": best, "rounds": self.done}, indent=1))
        if best is None:
            wanted = f"meets {' and '.join(map(str, self.sought.conditions))}" if self.sought.conditions else f"has a value of {self.sought.name}"
            say(f"none of {len(self.done)} rounds {wanted}: see {self.request.out / 'tune.json'}")
            if self._bisects() and len(self.done) <= 2:
                end = "least" if self.sought.least else "greatest"
                say(f"hint: the {end} value is sought by halving the range, which needs that its other end meets the conditions; give another range")
            return 1
        print(f"best of {len(self.done)} rounds: {describe(best)}")
        return 0

    def _bisects(self) -> bool:
        """Whether the goal is an end of the only range: where a condition begins to hold is found by halving it."""
        return len(self.ranges) == 1 and isinstance(self.ranges[0], Range) and self.ranges[0].path == self.sought.name

    def _propose(self, most: int) -> list[float]:
        """The next values of the range: its ends, then the middle of what is left, or as many points. None if that is narrow enough."""
        range_ = self.ranges[0]
        assert isinstance(range_, Range)
        good = [one["values"][range_.path] for one in self.done if one["holds"]]
        bad = [one["values"][range_.path] for one in self.done if not one["holds"]]
        easy, hard = (range_.high, range_.low) if self.sought.least else (range_.low, range_.high)
        if easy in bad:
            # If not even the easy end holds there is nothing between.
            return []
        ends = [end for end in (easy, hard) if end not in good and end not in bad]
        if ends:
            return ends[:most]
        if hard in good:
            return []
        holds = min(good) if self.sought.least else max(good)
        # Measurements scatter: what failed on the holding side of it does not count.
        fails = max((one for one in bad if one < holds), default=hard) if self.sought.least else min((one for one in bad if one > holds), default=hard)
        if abs(holds - fails) <= CLOSE * max(abs(holds), abs(fails)):
            return []
        steps = [step / (most + 1) for step in range(1, most + 1)]
        return [holds ** (1 - step) * fails**step if range_.log else holds + (fails - holds) * step for step in steps]

    def _begun(self) -> list[Round]:
        """The rounds that an earlier driver began and did not end: with their values, and in their folders."""
        states = self.optuna.trial.TrialState
        waiting = self.study.get_trials(states=(states.WAITING,))
        known = {trial.user_attrs.get("number") for trial in waiting}
        for trial in self.study.get_trials(states=(states.RUNNING,)):
            number = trial.user_attrs.get("number")
            if number is not None and number not in known:
                self.study.enqueue_trial(trial.params, user_attrs={"number": number})
            self.study.tell(trial.number, state=states.FAIL)
        return [self._ask() for _ in self.study.get_trials(states=(states.WAITING,))]

    def _next(self, most: int) -> list[Round]:
        """New rounds."""
        if not self._bisects():
            return [self._ask() for _ in range(most)]
        path = self.ranges[0].path
        batch = []
        for value in self._propose(most):
            self.study.enqueue_trial({path: value})
            batch.append(self._ask())
        return batch

    def _ask(self) -> Round:
        """One more round: what waits, or what the sampler proposes."""
        numbers = [trial.user_attrs.get("number", 0) for trial in self.study.trials]
        number = 1 + max(numbers, default=0)
        # Each round has its own randomness, so that a search that was interrupted goes on as it would have.
        self.study.sampler = self.optuna.samplers.TPESampler(seed=number, n_startup_trials=5, constant_liar=self.parallel > 1)
        trial = self.study.ask()
        values: dict[str, float | str] = {}
        for one in self.ranges:
            if isinstance(one, Range):
                values[one.path] = trial.suggest_float(one.path, one.low, one.high, log=one.log)
            else:
                values[one.path] = trial.suggest_categorical(one.path, one.words)
        number = trial.user_attrs.get("number", number)
        trial.set_user_attr("number", number)
        texts = [f"{one.path}={one.text(float(values[one.path])) if isinstance(one, Range) else values[one.path]}" for one in self.ranges]
        return Round(number, trial, values, texts)

    def _told(self, one: Round, metrics: dict[str, Measured]) -> None:
        """Records what a round measured. One that does not have a metric of the goal in each trial does not hold: another may have it."""
        of = {condition.metric: metrics.get(condition.metric, _NOTHING) for condition in self.sought.conditions}
        violations = [condition.violation(of[condition.metric].whole) for condition in self.sought.conditions]
        name = self.sought.name
        reached = one.values.get(name, metrics.get(name, _NOTHING).whole)
        measured = isinstance(reached, float)
        if not measured and (name in one.values or not (name in metrics or self._known())):
            raise Refused(f"--tune goal: there is no parameter or metric `{name}` with a number\nhint: {', '.join(sorted(metrics)[:12])}, …")
        told = {metric: measure.mean for metric, measure in of.items()}
        holds = measured and all(violation < 0 for violation in violations)
        record = {"round": one.number, "set": one.texts, "values": one.values, "reached": reached, "metrics": told, "holds": holds}
        record["measured_in"] = {metric: len(measure.known) for metric, measure in of.items()}
        record["trials"] = max((len(measure.values) for measure in metrics.values()), default=0)
        for condition, violation in zip(self.sought.conditions, violations, strict=True):
            one.trial.set_constraint(str(condition), min(violation, 1e9))
        one.trial.set_user_attr("round", record)
        # The worst there is, so that what is proposed next is elsewhere.
        self.study.tell(one.trial, reached if measured else math.inf if self.sought.least else -math.inf)
        self.done.append(record)
        known = len(metrics.get(name, _NOTHING).known)
        few = f"{known} of {record['trials']} trials have" if known else "no trial has"
        text = describe(record) if measured else f"{', '.join(one.texts)}: {few} a value of {name}"
        say(f"round {one.number}: {text}{'' if holds else ': does not hold'}")

    def _known(self) -> bool:
        """Whether an earlier round measured the goal."""
        return any(one["reached"] is not None for one in self.done)

    def _folder(self, number: int) -> Path:
        return Path(self.request.out) / "rounds" / str(number)

    def _measure(self, batch: list[Round]) -> None:
        """Runs the sweeps of these rounds side by side, each as a process of its own, to their ends."""
        running: dict[int, subprocess.Popen[bytes]] = {}
        try:
            for one in batch:
                running[one.number] = self._start(one, alone=len(batch) == 1)
            codes = {number: process.wait() for number, process in running.items()}
        finally:
            for process in running.values():
                process.terminate()
            for process in running.values():
                process.wait()
        for number, code in codes.items():
            if code not in (0, 1):
                raise Refused(f"round {number} ended with exit code {code}: see {self._folder(number)}.log")

    def _start(self, one: Round, *, alone: bool) -> subprocess.Popen[bytes]:
        out = self._folder(one.number)
        out.parent.mkdir(exist_ok=True)
        changes = [*self.request.changes, *(f"--set={text}" for text in one.texts)]
        request = replace(self.request, changes=changes, out=out, resume=True, tune=None)
        words = json.dumps({**vars(request), "out": str(out)})
        command, own = [sys.executable, "-m", "suiro.sweep", words], os.getpid()
        with contextlib.nullcontext() if alone else out.with_name(f"{one.number}.log").open("ab") as log:
            return subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=log, preexec_fn=lambda: die_with(own)
            )

    def _metrics(self, number: int) -> dict[str, Measured]:
        """Each metric over the valid trials of a round."""
        out = self._folder(number)
        try:
            rows = [row["metrics"] for row in read_document(out, "summary.json")["trials"] if row["valid"]]
        except FileNotFoundError:
            rows = []
        if not rows:
            raise Refused(f"round {number}: no trial is valid: see {out}\nhint: the same command with --resume repeats the round")
        names = {name for row in rows for name in row}
        return {name: Measured([row.get(name) for row in rows]) for name in names}

    def _best(self) -> dict[str, Any] | None:
        good = [one for one in self.done if one["holds"]]
        pick = min if self.sought.least else max
        return pick(good, key=lambda one: one["reached"]) if good else None


def describe(record: dict[str, Any]) -> str:
    """`queue=81234 B: media.latency_p95_ms 187`."""

    def few(name: str) -> str:
        # Rounds of earlier versions have no such numbers.
        known, trials = record.get("measured_in", {}).get(name), record.get("trials")
        return f" in {known} of {trials} trials" if known and trials and known < trials else ""

    figures = [f"{name} {'–' if value is None else format(value, '.4g')}{few(name)}" for name, value in record["metrics"].items()]
    return ": ".join([", ".join(record["set"]), ", ".join(figures) or f"{record['reached']:.4g}"])
