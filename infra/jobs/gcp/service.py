"""Vertex AI as a job service, by its REST API.

Untested in a real project: requests are checked against the API's own definitions (custom_job.proto) and the
rehearsal.
"""

import contextlib
import datetime
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import requests

from infra.clouds.gcp import login as google_login
from infra.clouds.gcp import storage as google_store
from infra.clouds.gcp.api import ApiMethod, ApiRequestError, answer, endpoint, pages
from infra.clouds.gcp.login import LOG_IN, LoggedOutError
from infra.clouds.gcp.storage import CloudStorageError
from infra.errors import Problem, UserError
from infra.jobs.gcp import refusals
from infra.jobs.gcp.described import described
from infra.jobs.gcp.logs import PAGE, CloudLogging
from infra.jobs.service import (
    CallerIdentity,
    JobState,
    LostError,
    Moment,
    PhaseChange,
    ServiceJob,
    run_not_found,
)
from infra.launchers.gcp import vertex
from infra.launchers.gcp.vertex import label_key, label_value
from infra.launchers.runplan import RunPlan
from infra.naming import TAG_PREFIX

_ATTEMPTS = 4
# No job runs longer (SageMaker's StoppingCondition has the same limit), so older jobs are over.
_OLDEST = datetime.timedelta(days=30)
_PAGE = 100
# ListCustomJobsRequest.filter compares states with = and != only.
_OVER = ("JOB_STATE_SUCCEEDED", "JOB_STATE_FAILED", "JOB_STATE_CANCELLED", "JOB_STATE_EXPIRED")
FAILURE = "failure"
"""The object below a run's base directory with the reason of a failure, from its wrapper
(agents/managed_job)."""


PriceShare = Callable[[str, str, str], float | None]
"""Price divided by on demand, by machine, region and strategy (SPOT, FLEX_START); None if unknown."""


def _unknown(_: str, __: str, ___: str) -> float | None:
    return None


class VertexService:
    """Custom jobs of a stack in its project and region, with the caller's own login. See `JobService`.

    Jobs are identified by their display name, which need not be unique: of several, the newest counts.
    """

    def __init__(self, project: str, region: str, stack: str, share: PriceShare = _unknown) -> None:
        self.unseen = 0  # a login that may list jobs sees all of the project
        self._project, self._region, self._stack = project, region, stack
        self._share = share
        self._sessions: dict[int, requests.Session] = {}
        self._resources: dict[str, str] = {}
        self._changes: dict[str, list[PhaseChange]] = {}

    def caller(self) -> CallerIdentity:
        """The login, if known; the project is the stack's."""
        with _asked("read the identity of the login"):
            who = google_login.who(getattr(self._session(_ATTEMPTS), "credentials", None)) or ""
        return CallerIdentity(self._project, who.partition(":")[2])

    def keep(self, uri: str, content: bytes) -> bool:
        """Write an object unless it exists; return whether it was missing."""
        with _stored(f"write {uri}"):
            return google_store.keep_object(uri, content)

    def content(self, uri: str) -> bytes:
        """The content of an object."""
        with _stored(f"read {uri}"):
            return google_store.read_object(uri)

    def submit(self, plan: RunPlan) -> None:
        """Start a job. Raises UserError, and LostError where the outcome is unknown."""
        request = vertex.custom_job(plan)
        name = str(request["displayName"])
        if self._found(name) is not None:
            rule = "another run of this person and folder has just got this name"
            raise UserError([Problem("run", name, rule, "Start it again.", code="run-name-taken")])
        try:
            # Sent once: a request without a response may have created a job, and a retry would create
            # another.
            made = answer(self._session(1), self._method("", "POST"), {**self._place(), **request})
            self._resources[name] = str(made["name"])
        except LoggedOutError as error:
            raise UserError([Problem("login", None, str(error), LOG_IN, code="not-logged-in")]) from error
        except ApiRequestError as error:
            if error.code not in refusals.UNAVAILABLE:
                problem = refusals.of_create(plan, self._region, error.code, error.message)
                raise UserError([problem]) from error
            self._made(name, error)
        except (requests.RequestException, ValueError) as error:
            self._made(name, error)

    def job(self, name: str) -> ServiceJob | None:
        """The job of that name, of any person; None if it does not exist."""
        found = self._found(name)
        if found is None:
            return None
        known = self._described(found)
        return self._with_reason(self._with_changes(known, str(found.get("state"))))

    def jobs(self, since: Moment | None = None, *, running: bool = False) -> Iterator[ServiceJob]:
        """Jobs of the stack that changed since then, newest first; `running`: those that are not over."""
        wanted = f'labels.{label_key(f"{TAG_PREFIX}:stack")}="{label_value(self._stack)}"'
        if since is not None:
            wanted += f' AND create_time>="{since - _OLDEST:%Y-%m-%dT%H:%M:%SZ}"'
        if running:
            wanted += "".join(f' AND state!="{state}"' for state in _OVER)
        for found in self._list(wanted):
            job = self._described(found)
            if running and job.state.over:
                continue
            if job.stack == self._stack and (since is None or job.ended is None or job.ended >= since):
                yield job

    def stop(self, name: str) -> None:
        """Stop a job; no effect on one that is over or stopping."""
        found = self._existing(name)
        try:
            with _asked(f"stop {name}"):
                method = self._method("/{id}:cancel", "POST")
                answer(self._session(_ATTEMPTS), method, {**self._place(), "id": _id(found)})
        except UserError:
            # The service refuses to cancel a job that is over or stopping, maybe by another request.
            after = self.job(name)
            if after is None or after.state is JobState.RUNNING:
                raise

    def logs(self, name: str) -> CloudLogging:
        """Log lines of its nodes."""
        found = self._existing(name)
        return CloudLogging(_id(found), self._described(found).created, self._entries)

    # -- requests --------------------------------------------------------------------------------------

    def _entries(self, wanted: str) -> Iterator[Mapping[str, Any]]:
        address = f"{endpoint('logging', 'logging.googleapis.com')}/v2/entries:list"
        asked = {"resourceNames": [f"projects/{self._project}"], "filter": wanted, "orderBy": "timestamp asc"}
        method = ApiMethod(address, "POST", {"pageSize": PAGE})
        with _asked("read logs"):
            for page in pages(self._session(_ATTEMPTS), method, asked):
                yield from page.get("entries") or ()

    def _existing(self, name: str) -> Mapping[str, Any]:
        found = self._found(name)
        if found is None:
            raise run_not_found(name)
        return found

    def _found(self, name: str) -> Mapping[str, Any] | None:
        """The newest job of that name, as described by the service."""
        if name not in self._resources:
            newest = next(self._list(f'display_name="{name}"'), None)
            if newest is not None:
                self._resources[name] = str(newest["name"])
            return newest
        with _asked(f"read the job {name}"):
            try:
                given = {**self._place(), "id": self._resources[name].rpartition("/")[2]}
                return answer(self._session(_ATTEMPTS), self._method("/{id}"), given)
            except ApiRequestError as error:
                if error.code != "NOT_FOUND":
                    raise
        return None

    def _list(self, wanted: str) -> Iterator[Mapping[str, Any]]:
        method = self._method("", page={"pageSize": _PAGE})
        with _asked("list jobs"):
            for page in pages(self._session(_ATTEMPTS), method, {**self._place(), "filter": wanted}):
                yield from page.get("customJobs") or ()

    def _made(self, name: str, error: Exception) -> None:
        """Raise LostError unless the service has the job, which shows that the request arrived."""
        try:
            found = self._found(name)
        except (UserError, LostError):
            found = None
        if found is None:
            raise LostError(str(error)) from error

    def _method(self, path: str, verb: str = "GET", page: Mapping[str, int] | None = None) -> ApiMethod:
        host = endpoint("aiplatform", f"{self._region}-aiplatform.googleapis.com")
        return ApiMethod(
            f"{host}/v1/projects/{{project}}/locations/{{region}}/customJobs{path}", verb, page or {}
        )

    def _place(self) -> dict[str, Any]:
        return {"project": self._project, "region": self._region}

    def _session(self, attempts: int) -> requests.Session:
        if attempts not in self._sessions:
            self._sessions[attempts], _ = google_login.session(attempts, self._project)
        return self._sessions[attempts]

    # -- descriptions ----------------------------------------------------------------------------------

    def _described(self, found: Mapping[str, Any]) -> ServiceJob:
        pools = (found.get("jobSpec") or {}).get("workerPoolSpecs") or [{}]
        machine = str((pools[0].get("machineSpec") or {}).get("machineType"))
        strategy = str(((found.get("jobSpec") or {}).get("scheduling") or {}).get("strategy") or "STANDARD")
        return described(found, self._share(machine, self._region, strategy))

    def _with_changes(self, job: ServiceJob, state: str) -> ServiceJob:
        """Add the observed phases: the service has no history, such as interruptions."""
        seen = self._changes.setdefault(job.name, list(job.changes))
        if seen[-1].phase is not job.phase:
            now = datetime.datetime.now(datetime.UTC)
            seen.append(PhaseChange(job.ended or now, job.phase, state.removeprefix("JOB_STATE_").lower()))
        return replace(job, changes=tuple(seen))

    def _with_reason(self, job: ServiceJob) -> ServiceJob:
        """Add the reason of a failure that its wrapper wrote, which the service does not read."""
        base = job.model_uri.rpartition("/")[0]
        if job.state is not JobState.FAILED:
            return job
        reason = ""
        if base:
            with contextlib.suppress(CloudStorageError):
                reason = google_store.read_object(f"{base}/{FAILURE}").decode(errors="replace").strip()
        if reason:
            return replace(job, reason=f"{reason} ({job.reason})")
        number = self._resources[job.name].rpartition("/")[2]
        wanted = f'resource.type="ml_job" resource.labels.job_id="{number}"'
        hint = f"Log lines: gcloud logging read '{wanted}' --project {self._project}"
        return replace(job, reason=f"{job.reason} {hint}")


def _id(found: Mapping[str, Any]) -> str:
    return str(found["name"]).rpartition("/")[2]


@contextmanager
def _asked(what: str) -> Iterator[None]:
    """Raise UserError for a refused request within, LostError without a response."""
    try:
        with google_login.logged_in():
            yield
    except LoggedOutError as error:
        raise UserError([Problem("login", None, str(error), LOG_IN, code="not-logged-in")]) from error
    except ApiRequestError as error:
        if error.code in refusals.UNAVAILABLE:
            raise LostError(str(error)) from error
        raise UserError([refusals.of_other(what, error.code, error.message)]) from error
    except (requests.RequestException, ValueError) as error:
        raise LostError(str(error)) from error


@contextmanager
def _stored(what: str) -> Iterator[None]:
    """Raise UserError and LostError for a request about an object within."""
    try:
        yield
    except CloudStorageError as error:
        if error.lost:
            raise LostError(str(error)) from error
        code = refusals.DENIED if error.status == requests.codes.forbidden else f"HTTP {error.status}"
        raise UserError([refusals.of_other(what, code, str(error))]) from error
