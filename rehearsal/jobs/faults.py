"""Faults of a run on training jobs: those of `rehearsal.core.faults`, met as a client of the service does."""

import json
import os
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from rehearsal.core.faulty import FaultPlan, kill
from rehearsal.core.model import Call, Instance
from rehearsal.dataplane.http import ServiceError

TYPE = "aws:sagemaker/trainingJob:TrainingJob"


@dataclass(frozen=True)
class Met:
    """What befalls one job: its machines take longer, or there are none."""

    slow_s: float = 0.0
    capacity: bool = True


class JobFaults:
    """Asks the plan once for each create, and answers tries again as often as the plan says."""

    def __init__(self, plan: FaultPlan, path: Path) -> None:
        self._plan, self._path = plan, path
        self._refusals: dict[str, list[ServiceError]] = {}
        self._met: dict[str, Met] = {}
        self._lock = threading.Lock()

    def create(self, arn: str, name: str) -> Met:
        """Faults of one request to create a job. Raises ServiceError for one that refuses it."""
        with self._lock:
            if arn not in self._met:
                self._ask(arn, name)
            if self._refusals[arn]:
                raise self._refusals[arn].pop(0)
            del self._refusals[arn]
            return self._met.pop(arn)

    def interruption(self, name: str) -> float | None:
        """After how many seconds of training a spot job is interrupted now; each fault hits once."""
        return self._plan.interruption(name)

    def quotas(self) -> Mapping[str, float]:
        """What the account may have, by the name of the quota; without a row, enough."""
        try:
            return dict(json.loads(self._path.read_text()).get("quotas") or {})
        except FileNotFoundError:
            return {}

    def _ask(self, arn: str, name: str) -> None:
        call = Call(Instance("aws"), TYPE, f"{arn}::{name}", threading.Event(), lambda *_: None)
        refusals: list[ServiceError] = []
        slow_s, capacity = 0.0, True
        for fault in self._plan.hitting("create", call):
            if fault.kind == "throttling":
                refusals += [ServiceError("ThrottlingException", "Rate exceeded")] * fault.times
            elif fault.kind == "transient":
                refusals += [ServiceError("InternalFailure", "internal failure", 500)] * fault.times
            elif fault.kind == "quota":
                message = "The account-level service limit for training jobs has been reached."
                refusals.append(ServiceError("ResourceLimitExceeded", message))
            elif fault.kind == "slow":
                slow_s += fault.duration_s
            elif fault.kind == "capacity":
                capacity = False
            elif fault.kind == "crash-before" and fault.victim == "daemon":
                kill("daemon", os.getpid(), "aws")
        self._met[arn], self._refusals[arn] = Met(slow_s, capacity), refusals
