"""Injects the faults of a rehearsal (`core.fault_injection`) into training jobs, as a client sees them."""

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
    """Faults of one new job: machines that take longer or do not exist."""

    slow_s: float = 0.0
    capacity: bool = True


Refusals = Mapping[str, Exception]
"""Errors of a service by kind of fault: `throttling`, `transient`, `quota`."""


class JobFaults:
    """Evaluates the fault plan once per create request, and repeats an error as often as the plan has it.

    `type` is that of the jobs in faults, such as `aws:sagemaker/trainingJob:TrainingJob`.
    """

    def __init__(self, plan: FaultPlan, path: Path, type: str) -> None:
        self._plan, self._path, self._type = plan, path, type
        self._refusals: dict[str, list[Exception]] = {}
        self._met: dict[str, CreateFaults] = {}
        self._lock = threading.Lock()

    def create(self, key: str, name: str, refusals: Refusals) -> CreateFaults:
        """Faults of one request to create the job `key`. Raises the error of the fault's kind."""
        with self._lock:
            if key not in self._met:
                self._evaluate(key, name, refusals)
            if self._refusals[key]:
                raise self._refusals[key].pop(0)
            del self._refusals[key]
            return self._met.pop(key)

    def interruption(self, name: str) -> float | None:
        """Seconds of training until a spot job is interrupted; each fault applies once."""
        return self._plan.interruption(name)

    def quotas(self) -> Mapping[str, float]:
        """Quotas of the account by name; a quota without a row is unlimited."""
        return read(self._path).quotas

    def _evaluate(self, key: str, name: str, errors: Refusals) -> None:
        package = self._type.partition(":")[0]
        call = Call(
            ProviderInstance(package), self._type, f"{key}::{name}", threading.Event(), lambda *_: None
        )
        refusals: list[Exception] = []
        slow_s, capacity = 0.0, True
        for fault in self._plan.hitting("create", call):
            if fault.kind in ("throttling", "transient"):
                refusals += [errors[fault.kind]] * fault.times
            elif fault.kind == "quota":
                refusals.append(errors["quota"])
            elif fault.kind == "slow":
                slow_s += fault.duration_s
            elif fault.kind == "capacity":
                capacity = False
            elif fault.kind == "crash-before" and fault.victim == "daemon":
                kill("daemon", os.getpid(), package)
        self._met[key], self._refusals[key] = CreateFaults(slow_s, capacity), refusals
