"""Faults of a run on training jobs: those of `rehearsal.core.faults`, met as a client of the service does."""

import os
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from rehearsal.core.fault_injection import FaultPlan, kill
from rehearsal.core.faults import read
from rehearsal.core.model import Call, ProviderInstance


@dataclass(frozen=True)
class CreateFaults:
    """What befalls one job: its machines take longer, or there are none."""

    slow_s: float = 0.0
    capacity: bool = True


Refusals = Mapping[str, Exception]
"""What a service says, by the kind of fault: `throttling`, `transient`, `quota`."""


class JobFaults:
    """Asks the plan once for each create, and answers tries again as often as the plan says.

    `type` is that of the jobs in faults, such as `aws:sagemaker/trainingJob:TrainingJob`.
    """

    def __init__(self, plan: FaultPlan, path: Path, type: str) -> None:
        self._plan, self._path, self._type = plan, path, type
        self._refusals: dict[str, list[Exception]] = {}
        self._met: dict[str, CreateFaults] = {}
        self._lock = threading.Lock()

    def create(self, key: str, name: str, refusals: Refusals) -> CreateFaults:
        """Faults of one request to create a job; `key` tells jobs apart. Raises what `refusals` says."""
        with self._lock:
            if key not in self._met:
                self._ask(key, name, refusals)
            if self._refusals[key]:
                raise self._refusals[key].pop(0)
            del self._refusals[key]
            return self._met.pop(key)

    def interruption(self, name: str) -> float | None:
        """After how many seconds of training a spot job is interrupted now; each fault hits once."""
        return self._plan.interruption(name)

    def quotas(self) -> Mapping[str, float]:
        """Limits of the account by name of the quota; without a row, enough."""
        return read(self._path).quotas

    def _ask(self, key: str, name: str, said: Refusals) -> None:
        package = self._type.partition(":")[0]
        call = Call(
            ProviderInstance(package), self._type, f"{key}::{name}", threading.Event(), lambda *_: None
        )
        refusals: list[Exception] = []
        slow_s, capacity = 0.0, True
        for fault in self._plan.hitting("create", call):
            if fault.kind in ("throttling", "transient"):
                refusals += [said[fault.kind]] * fault.times
            elif fault.kind == "quota":
                refusals.append(said["quota"])
            elif fault.kind == "slow":
                slow_s += fault.duration_s
            elif fault.kind == "capacity":
                capacity = False
            elif fault.kind == "crash-before" and fault.victim == "daemon":
                kill("daemon", os.getpid(), package)
        self._met[key], self._refusals[key] = CreateFaults(slow_s, capacity), refusals
