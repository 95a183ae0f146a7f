"""Records of custom jobs and their store."""

import secrets
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from rehearsal.accounts import project_number
from rehearsal.core.state import State

_SPACE = "vertex-custom-job"
# Source: googleapis/python-aiplatform types/job_state.py.
QUEUED, PENDING, RUNNING = "JOB_STATE_QUEUED", "JOB_STATE_PENDING", "JOB_STATE_RUNNING"
SUCCEEDED, FAILED = "JOB_STATE_SUCCEEDED", "JOB_STATE_FAILED"
CANCELLING, CANCELLED = "JOB_STATE_CANCELLING", "JOB_STATE_CANCELLED"
OVER = frozenset({SUCCEEDED, FAILED, CANCELLED})
_WEEK_S = 7 * 86_400.0  # "The default is 7 days" (types/custom_job.py, Scheduling.timeout)


@dataclass(frozen=True)
class JobFailure:
    """Reason of a failed job: a code of google.rpc.Code and a message."""

    code: int
    message: str


@dataclass(frozen=True)
class CustomJob:
    """One custom job; times are seconds since 1970, `request` is the CustomJob of the create request."""

    project: str
    region: str
    id: str
    request: Mapping[str, Any]
    created: float
    updated: float
    state: str = QUEUED
    started: float | None = None
    ended: float | None = None
    failure: JobFailure | None = None

    @property
    def name(self) -> str:
        """Resource name, with the project's number."""
        return f"projects/{project_number(self.project)}/locations/{self.region}/customJobs/{self.id}"

    @property
    def display_name(self) -> str:
        """Display name."""
        return str(self.request["displayName"])

    @property
    def over(self) -> bool:
        """Return whether the job has ended."""
        return self.state in OVER

    @property
    def spec(self) -> Mapping[str, Any]:
        """The jobSpec."""
        found: Mapping[str, Any] = self.request["jobSpec"]
        return found

    @property
    def scheduling(self) -> Mapping[str, Any]:
        """The scheduling of the jobSpec; every field may be missing."""
        found: Mapping[str, Any] = self.spec.get("scheduling") or {}
        return found

    @property
    def spot(self) -> bool:
        """Return whether the job uses Spot VMs."""
        return self.scheduling.get("strategy") == "SPOT"

    @property
    def flex_start(self) -> bool:
        """Return whether the job waits for machines (Dynamic Workload Scheduler)."""
        return self.scheduling.get("strategy") == "FLEX_START"

    @property
    def timeout_s(self) -> float:
        """Maximum running time."""
        text = str(self.scheduling.get("timeout") or "")
        return float(text.removesuffix("s")) if text else _WEEK_S

    @property
    def account(self) -> str:
        """The service account of the job.

        By default the service agent for custom code (Vertex AI documentation, "Access control", Custom Code
        Service Agent).
        """
        agent = f"service-{project_number(self.project)}@gcp-sa-aiplatform-cc.iam.gserviceaccount.com"
        return str(self.spec.get("serviceAccount") or agent)

    @property
    def replicas(self) -> Mapping[str, tuple[int, int]]:
        """(pool, index) of each replica by its name, such as `workerpool0-0`, the primary one first."""
        return {
            f"workerpool{pool}-{index}": (pool, index)
            for pool, spec in enumerate(self.spec["workerPoolSpecs"])
            for index in range(int(spec.get("replicaCount") or 0))
        }

    def entered(self, state: str, failure: JobFailure | None = None) -> "CustomJob":
        """The record in another state."""
        now = time.time()
        started = now if state == RUNNING and self.started is None else self.started
        ended = now if state in OVER else None
        return replace(self, state=state, updated=now, started=started, ended=ended, failure=failure)

    def described(self) -> dict[str, Any]:
        """The CustomJob in the form of the API's response."""
        times = {"createTime": self.created, "startTime": self.started, "endTime": self.ended}
        return {
            "name": self.name,
            **{key: value for key, value in self.request.items() if key != "name"},
            "state": self.state,
            **{key: _moment(at) for key, at in times.items() if at is not None},
            "updateTime": _moment(self.updated),
            **({"error": asdict(self.failure)} if self.failure else {}),
        }


@dataclass(frozen=True)
class CustomJobStore:
    """Custom jobs in the state of the rehearsal."""

    state: State
    _kind: str = field(default=_SPACE, init=False)

    def put(self, job: CustomJob) -> None:
        """Store the current record of a job."""
        self.state.put_document(self._kind, _key(job.project, job.region, job.id), asdict(job))

    def get(self, project: str, region: str, id: str) -> CustomJob | None:
        """A job by its id; `project` is an id or a number."""
        return next(
            (
                job
                for job in self.all()
                if (job.region, job.id) == (region, id)
                and project in (job.project, project_number(job.project))
            ),
            None,
        )

    def all(self) -> Iterator[CustomJob]:
        """All jobs, newest first."""
        found = [_record(kept) for kept in self.state.documents(self._kind).values()]
        return iter(sorted(found, key=lambda job: job.created, reverse=True))


def new_id() -> str:
    """A new id of about 19 digits, as the service assigns them."""
    return str(10**18 + secrets.randbelow(8 * 10**18))


def _key(project: str, region: str, id: str) -> str:
    return f"{project}/{region}/{id}"


def _record(kept: Any) -> CustomJob:
    failure = JobFailure(**kept["failure"]) if kept["failure"] else None
    return CustomJob(**{**kept, "failure": failure})


def _moment(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
