"""Records of training jobs and their store."""

import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from rehearsal.core.state import State

_SPACE = "training-job"
OVER = frozenset({"Completed", "Failed", "Stopped"})
# Status messages of the service; source: the progress lines in aws/sagemaker-python-sdk issue 1225 and
# aws/amazon-sagemaker-examples issues 739 and 842. They are not part of its contract (botocore 1.44.5).
MESSAGES = {
    "Starting": "Preparing the instances for training",
    "Pending": "Training job waiting for capacity",
    "Downloading": "Downloading input data",
    "Training": "Training image download completed. Training in progress.",
    "Interrupted": "Training job interrupted due to Spot instance reclaim",
    "Uploading": "Uploading generated training model",
    "Stopping": "Stopping the training job",
    "Completed": "Training job completed",
    "Failed": "Training job failed",
    "Stopped": "Training job stopped",
    "MaxRuntimeExceeded": "Training job runtime exceeded MaxRuntimeInSeconds provided",
    "MaxWaitTimeExceeded": "Training job wait time exceeded MaxWaitTimeInSeconds provided",
}
_FAILURE_LENGTH = 1024  # source: botocore 1.44.5, shape FailureReason


@dataclass(frozen=True)
class TrainingJobRecord:
    """One training job; times are seconds since 1970, `request` is that of CreateTrainingJob."""

    account: str
    region: str
    name: str
    request: Mapping[str, Any]
    tags: Mapping[str, str]
    created: float
    modified: float
    status: str = "InProgress"
    secondary: str = "Starting"
    transitions: tuple[Mapping[str, Any], ...] = ()
    started: float | None = None
    ended: float | None = None
    failure: str = ""
    artifact: str = ""
    tuning: str = ""
    """ARN of the tuning job that started it."""

    @property
    def arn(self) -> str:
        """ARN of the job."""
        return f"arn:aws:sagemaker:{self.region}:{self.account}:training-job/{self.name}"

    @property
    def over(self) -> bool:
        """Return whether the job has ended."""
        return self.status in OVER

    @property
    def spot(self) -> bool:
        """Return whether the job uses spot capacity."""
        return bool(self.request.get("EnableManagedSpotTraining"))

    @property
    def count(self) -> int:
        """Number of machines."""
        return int((self.request.get("ResourceConfig") or {}).get("InstanceCount") or 1)

    @property
    def hosts(self) -> tuple[str, ...]:
        """Names of the machines."""
        return tuple(f"algo-{index + 1}" for index in range(self.count))

    def entered(self, secondary: str, status: str = "InProgress", message: str = "") -> "TrainingJobRecord":
        """The record with a further secondary status; ends the previous one."""
        now = time.time()
        before = [dict(one) for one in self.transitions]
        if before and "EndTime" not in before[-1]:
            before[-1]["EndTime"] = now
        row = {
            "Status": secondary,
            "StartTime": now,
            "StatusMessage": message or MESSAGES.get(secondary, ""),
        }
        if status in OVER:
            row["EndTime"] = now
        ended = now if status in OVER and self.started is not None else None
        return replace(
            self, modified=now, status=status, secondary=secondary, transitions=(*before, row), ended=ended
        )

    def failed(self, reason: str) -> "TrainingJobRecord":
        """The record after a failure."""
        return replace(self.entered("Failed", "Failed"), failure=reason[:_FAILURE_LENGTH])


@dataclass(frozen=True)
class TrainingJobStore:
    """Training jobs in the state of the rehearsal; a name is unique per account and region for good."""

    state: State

    def put(self, record: TrainingJobRecord) -> None:
        """Store the current record of a job."""
        self.state.put_document(_SPACE, _key(record.account, record.region, record.name), asdict(record))

    def get(self, account: str, region: str, name: str) -> TrainingJobRecord | None:
        """A job by name."""
        return _record(self.state.document(_SPACE, _key(account, region, name)))

    def all(self, region: str | None = None) -> Iterator[TrainingJobRecord]:
        """All jobs, or those of one region."""
        for key, kept in self.state.documents(_SPACE).items():
            if region is None or key.split("/")[1] == region:
                record = _record(kept)
                assert record is not None
                yield record


def _key(account: str, region: str, name: str) -> str:
    return f"{account}/{region}/{name}"


def _record(kept: Any) -> TrainingJobRecord | None:
    return TrainingJobRecord(**{**kept, "transitions": tuple(kept["transitions"])}) if kept else None
