"""A search over parameters of a scenario, by Optuna: `--tune goal="min queue while media.latency_p95_ms < 200" over=…`."""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from .._files import read_document
from .._frame import need
from .driver import Plan, Request, Sweep, engine_of
from .folder import write
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
    rounds = int(request.tune["rounds"] or ROUNDS)
    if not 1 <= rounds <= ROUNDS_MAX:
        raise Refused(f"--tune rounds={rounds}: expected a number from 1 to {ROUNDS_MAX}")
    search = Search(request, sought, ranges, rounds)
    return search.run()


class Search:
    """A search in its folder."""

    def __init__(self, request: Request, sought: Goal, ranges: list[Range | Choice], rounds: int) -> None:
        self.request, self.sought, self.ranges, self.rounds = request, sought, ranges, rounds
        optuna = need("optuna")
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        out = request.out
        if out.exists() and any(out.iterdir()) and not (request.resume and (out / "optuna.log").exists()):
            raise Refused(f"{out} already holds results\nhint: --resume goes on with a search, --out names another folder")
        out.mkdir(parents=True, exist_ok=True)
        storage = optuna.storages.JournalStorage(optuna.storages.journal.JournalFileBackend(str(out / "optuna.log")))
        self.study = optuna.create_study(
            study_name=json.dumps([request.scenario, request.changes, request.tune["goal"] if request.tune else ""]),
            storage=storage,
            load_if_exists=True,
            direction="minimize" if sought.least else "maximize",
            sampler=optuna.samplers.TPESampler(seed=1, n_startup_trials=5),
        )
        self.done: list[dict[str, Any]] = [trial.user_attrs["round"] for trial in self.study.trials if "round" in trial.user_attrs]

    def run(self) -> int:
        """All rounds. Gives the exit code: 1 if nothing meets the conditions."""
        while len(self.done) < self.rounds:
            if self._bisects() and not self._propose():
                break
            self._round(len(self.done) + 1)
        best = self._best()
        write(self.request.out / "tune.json", json.dumps({"goal": (self.request.tune or {})["goal"], "best": best, "rounds": self.done}, indent=1))
        if best is None:
            say(f"none of {len(self.done)} rounds meets {' and '.join(map(str, self.sought.conditions))}: see {self.request.out / 'tune.json'}")
            if self._bisects() and len(self.done) == 1:
                end = "least" if self.sought.least else "greatest"
                say(f"hint: the {end} value is sought by halving the range, which needs that its other end meets the conditions; give another range")
            return 1
        print(f"best of {len(self.done)} rounds: {describe(best)}")
        return 0

    def _bisects(self) -> bool:
        """Whether the goal is an end of the only range: where a condition begins to hold is found by halving it."""
        return len(self.ranges) == 1 and isinstance(self.ranges[0], Range) and self.ranges[0].path == self.sought.name

    def _propose(self) -> bool:
        """The next value of the range: its ends, then the middle of what is left. False if that is narrow enough."""
        range_ = self.ranges[0]
        assert isinstance(range_, Range)
        good = [one["values"][range_.path] for one in self.done if one["holds"]]
        bad = [one["values"][range_.path] for one in self.done if not one["holds"]]
        easy, hard = (range_.high, range_.low) if self.sought.least else (range_.low, range_.high)
        if easy not in good:
            # If not even the easy end holds there is nothing between.
            value = easy if easy not in bad else None
        elif hard in good:
            value = None
        elif hard not in bad:
            value = hard
        else:
            holds = min(good) if self.sought.least else max(good)
            # Measurements scatter: what failed on the holding side of it does not count.
            fails = max((one for one in bad if one < holds), default=hard) if self.sought.least else min((one for one in bad if one > holds), default=hard)
            near = abs(holds - fails) <= CLOSE * max(abs(holds), abs(fails))
            value = None if near else math.sqrt(holds * fails) if range_.log else (holds + fails) / 2
        if value is not None:
            self.study.enqueue_trial({range_.path: value})
        return value is not None

    def _round(self, number: int) -> None:
        trial = self.study.ask()
        values: dict[str, float | str] = {}
        changes = list(self.request.changes)
        for one in self.ranges:
            if isinstance(one, Range):
                value = trial.suggest_float(one.path, one.low, one.high, log=one.log)
                values[one.path] = value
                changes.append(f"--set={one.path}={one.text(value)}")
            else:
                values[one.path] = trial.suggest_categorical(one.path, one.words)
                changes.append(f"--set={one.path}={values[one.path]}")
        metrics = self._measure(number, changes)
        violations = [condition.violation(metrics.get(condition.metric)) for condition in self.sought.conditions]
        reached = values.get(self.sought.name, metrics.get(self.sought.name))
        if not isinstance(reached, float):
            raise Refused(f"--tune goal: there is no parameter or metric `{self.sought.name}` with a number\nhint: {', '.join(sorted(metrics)[:12])}, …")
        told = {condition.metric: metrics.get(condition.metric) for condition in self.sought.conditions}
        texts = [change.removeprefix("--set=") for change in changes[len(self.request.changes) :]]
        record = {"round": number, "set": texts, "values": values, "reached": reached, "metrics": told, "holds": all(v < 0 for v in violations)}
        for condition, violation in zip(self.sought.conditions, violations, strict=True):
            trial.set_constraint(str(condition), min(violation, 1e9))
        trial.set_user_attr("round", record)
        self.study.tell(trial, reached)
        self.done.append(record)
        say(f"round {number}: {describe(record)}{'' if record['holds'] else ': does not hold'}")

    def _measure(self, number: int, changes: list[str]) -> dict[str, float]:
        """Runs a round; the mean of each metric over its valid trials."""
        out = Path(self.request.out) / "rounds" / str(number)
        request = replace(self.request, changes=changes, out=out, resume=out.exists(), tune=None)
        plan = Plan.of(request)
        sweep = Sweep(request, plan)
        trials = sweep.prepare()
        if trials:
            sweep.run(engine_of(request, plan, sweep.folder), trials)
        sweep.merge(quiet=True)
        rows = [row["metrics"] for row in read_document(out, "summary.json")["trials"] if row["valid"]]
        if not rows:
            raise Refused(f"round {number}: no trial is valid: see {out}")
        names = {name for row in rows for name in row}
        return {name: mean for name in names if (mean := _mean([row.get(name) for row in rows])) is not None}

    def _best(self) -> dict[str, Any] | None:
        good = [one for one in self.done if one["holds"]]
        pick = min if self.sought.least else max
        return pick(good, key=lambda one: one["reached"]) if good else None


def describe(record: dict[str, Any]) -> str:
    """`queue=81234 B: media.latency_p95_ms 187`."""
    figures = [f"{name} {'–' if value is None else format(value, '.4g')}" for name, value in record["metrics"].items()]
    return ": ".join([", ".join(record["set"]), ", ".join(figures) or f"{record['reached']:.4g}"])


def _mean(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None
