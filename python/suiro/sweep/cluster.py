"""Trials as tasks of a Ray cluster.

A machine offers the resource `suiro_link`: how many trials it can carry side by side (`suiro doctor --capacity`). Tasks
ask for one and for no processor. A task that was lost with its machine is handed out again by the driver, not by Ray,
so that it is counted and told.
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

    def __init__(self, scenario: Scenario, folder: Path, address: str) -> None:
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        self.ray, self.folder = need("ray"), folder
        try:
            self.ray.init(address=address, log_to_driver=False, logging_level="ERROR", configure_logging=True)
        except (ConnectionError, TimeoutError, RuntimeError) as error:
            raise Refused(f"--on {address}: there is no Ray cluster: {error}\nhint: ray start --head") from None
        if not self.slots():
            raise Refused(
                f"--on {address}: no machine of the cluster offers {RESOURCE}\n"
                f"hint: on each machine, ray start … --resources '{{\"{RESOURCE}\": N}}', with N from suiro doctor --capacity"
            )
        self.scenario = self.ray.put(scenario)
        self.task = self.ray.remote(num_cpus=0, resources={RESOURCE: 1}, max_retries=0)(_task)
        self.running: dict[Any, tuple[Attempt, float]] = {}

    def slots(self) -> int:
        return int(sum(node["Resources"].get(RESOURCE, 0) for node in self.ray.nodes() if node["Alive"]))

    def adopt(self, trials: set[int]) -> set[int]:
        """None: Ray ends the tasks of a driver that is gone."""
        return set()

    def start(self, trial: int, attempt: int, avoid: set[str]) -> None:
        task = self.task.options(scheduling_strategy=self._elsewhere(avoid))
        reference = task.remote(self.scenario, trial)
        self.running[reference] = (Attempt(trial, attempt, "", "lost"), time.time())

    def _elsewhere(self, avoid: set[str]) -> Any:
        """A machine that has not failed this trial yet, if there is one; otherwise any."""
        nodes = [node for node in self.ray.nodes() if node["Alive"] and node["Resources"].get(RESOURCE)]
        other = [node["NodeID"] for node in nodes if _name(node["NodeManagerHostname"], node["NodeID"]) not in avoid]
        if not avoid or not other:
            return "SPREAD"
        strategies = need("ray.util.scheduling_strategies")
        return strategies.NodeAffinitySchedulingStrategy(node_id=other[0], soft=True)

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


def _name(host: str, node: str) -> str:
    """What a machine of the cluster is called: two nodes can have the same host name."""
    return f"{host}/{node[:8]}"


def apart(there: float, asked: float, answered: float) -> float | None:
    """How far another clock, which read `there` between two readings of ours, is ahead at least; None if it fits."""
    if there > answered:
        return there - answered
    return there - asked if there < asked else None
