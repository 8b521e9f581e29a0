"""Trials as tasks of a Ray cluster.

A machine offers the resource `suiro_link`: how many trials it can carry side by side (`suiro doctor --capacity`). A task asks
for one, and for its share of the machine's cores, so that Ray gives them to nobody else. In virtual time trials do not disturb each
other, and a task asks for a core alone. A task that was lost with its machine is handed out again by the driver, not by
Ray, so that it is counted and told.
"""

from __future__ import annotations

import os
import socket
import time
from pathlib import Path
from typing import Any

from .._frame import need
from . import folder as rooms
from . import job
from .job import Attempt, Scenario
from .words import Refused

#: The resource that a machine offers.
RESOURCE = "suiro_link"


class Ray:
    """A Ray cluster."""

    def __init__(self, scenario: Scenario, folder: Path, address: str, *, virtual: bool = False) -> None:
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        self.ray, self.folder = need("ray"), folder
        try:
            self.ray.init(address=address, log_to_driver=False, logging_level="ERROR", configure_logging=True)
        except (ConnectionError, TimeoutError, RuntimeError) as error:
            raise Refused(f"--on {address}: there is no Ray cluster: {error}\nhint: ray start --head") from None
        self.resource = "CPU" if virtual else RESOURCE
        if not self.slots() and virtual:
            raise Refused(f"--on {address}: no machine of the cluster offers a CPU\nhint: on each machine, ray start … --num-cpus N")
        if not self.slots():
            raise Refused(
                f"--on {address}: no machine of the cluster offers {RESOURCE}\n"
                f"hint: on each machine, ray start … --resources '{{\"{RESOURCE}\": N}}', with N from suiro doctor --capacity"
            )
        self.scenario = self.ray.put(scenario)
        wants = {"num_cpus": 1} if virtual else {"num_cpus": cores(self._nodes()), "resources": {RESOURCE: 1}}
        self.task = self.ray.remote(**wants, max_retries=0)(_task)
        self.elsewhere = 0
        self.running: dict[Any, tuple[Attempt, float]] = {}

    def slots(self) -> int:
        return sum(int(node["Resources"][self.resource]) for node in self._nodes())

    def _nodes(self) -> list[dict[str, Any]]:
        """The machines that can run trials."""
        return [node for node in self.ray.nodes() if node["Alive"] and node["Resources"].get(self.resource, 0) >= 1]

    def adopt(self, trials: set[int]) -> set[int]:
        """None: Ray ends the tasks of a driver that is gone."""
        return set()

    def start(self, trial: int, attempt: int, avoid: set[str]) -> None:
        task = self.task.options(scheduling_strategy=self._elsewhere(avoid))
        reference = task.remote(self.scenario, trial)
        self.running[reference] = (Attempt(trial, attempt, "", "lost"), time.time())

    def _elsewhere(self, avoid: set[str]) -> Any:
        """A machine that has not failed this trial yet, if there is one; otherwise any."""
        other = [node["NodeID"] for node in self._nodes() if _name(node["NodeManagerHostname"], node["NodeID"]) not in avoid]
        if not avoid or not other:
            return "SPREAD"
        strategies = need("ray.util.scheduling_strategies")
        # In turn: with the same one for all, they would wait there.
        self.elsewhere += 1
        return strategies.NodeAffinitySchedulingStrategy(node_id=other[self.elsewhere % len(other)], soft=True)

    def shun(self, machines: set[str]) -> None:
        """None waits: no more are handed over than there are slots."""

    def wait(self, seconds: float) -> list[Attempt]:
        if not self.running:
            return []
        ready, _ = self.ray.wait(list(self.running), num_returns=1, timeout=seconds)
        return [self._end(reference) for reference in ready]

    def _end(self, reference: Any) -> Attempt:
        attempt, began = self.running.pop(reference)
        attempt.seconds = time.time() - began
        try:
            answer = self.ray.get(reference)
        except self.ray.exceptions.RayError as error:
            attempt.because = f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
            return attempt
        attempt.machine, attempt.outcome, attempt.because = answer["machine"], answer["outcome"], answer["because"]
        attempt.clock_s = apart(answer["ended"], began, time.time())
        if answer["tar"] is not None:
            room = rooms.room(self.folder, attempt.trial)
            job.unpack(answer["tar"], room / "part")
            job.keep(room / "part", self.folder / "parts" / str(attempt.trial))
            room.rmdir()
        return attempt

    def stop(self) -> None:
        for reference in self.running:
            self.ray.cancel(reference, force=True)
        self.ray.shutdown()


def _task(scenario: Scenario, trial: int) -> dict[str, Any]:
    """On a machine of the cluster: runs a trial with the program that is installed there."""
    import ray

    from .._binary import find_binary

    node = ray.get_runtime_context().get_node_id()
    try:
        answer = job.run_here(scenario, trial, find_binary())
    except FileNotFoundError as error:
        answer = {"outcome": "refused", "because": str(error), "tar": None}
    return answer | {"machine": _name(socket.gethostname(), node), "ended": time.time()}


def cores(nodes: list[dict[str, Any]]) -> int:
    """A trial's share of a machine's cores: that of the machine where it is smallest; 0 if one offers none."""
    return min((int(node["Resources"].get("CPU", 0) // node["Resources"][RESOURCE]) for node in nodes), default=0)


def _name(host: str, node: str) -> str:
    """What a machine of the cluster is called: two nodes can have the same host name."""
    return f"{host}/{node[:8]}"


def apart(there: float, asked: float, answered: float) -> float | None:
    """How far another clock, which read `there` between two readings of ours, is ahead at least; None if it fits."""
    if there > answered:
        return there - answered
    return there - asked if there < asked else None
