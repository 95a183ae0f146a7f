"""Vertex AI projects.locations.customJobs: create, get, list, cancel.

Source: googleapis/googleapis google/cloud/aiplatform/v1/job_service.proto (paths, ListCustomJobsRequest,
CancelCustomJob); googleapis/python-aiplatform issue 1073 (texts about service accounts),
GoogleCloudPlatform/stable-diffusion-on-gcp issue 12 (quota). A job beyond a quota's limit is refused at
once; one that has to wait for others stays queued ("Understand the serverless training service").
"""

import base64
import time
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from rehearsal.accounts import project_number
from rehearsal.core.state import State
from rehearsal.dataplane.gcp.http import Answer, ApiCall, Method, ServiceError
from rehearsal.dataplane.gcp.iam_bindings import allowed, allowed_in_project
from rehearsal.dataplane.gcp.identity import account_record
from rehearsal.jobs.faults import CreateFaults, JobFaults
from rehearsal.jobs.gcp.filters import parsed
from rehearsal.jobs.gcp.vertex import job_fields
from rehearsal.jobs.gcp.vertex.failures import over_quota
from rehearsal.jobs.gcp.vertex.quotas import beyond, demand
from rehearsal.jobs.gcp.vertex.records import CustomJob, CustomJobStore, new_id

TYPE = "gcp:vertex/customJob:CustomJob"
_FAILED = "FAILED_PRECONDITION"
_MOST_LISTED = 100


class CustomJobControl(Protocol):
    """Runs custom jobs."""

    def begin(self, job: CustomJob, met: CreateFaults) -> None:
        """Start a new job."""

    def cancel(self, job: CustomJob) -> None:
        """Cancel a running job."""


class CustomJobs:
    """See `http.Api`."""

    def __init__(self, state: State, jobs: CustomJobControl, faults: JobFaults) -> None:
        self._state, self._jobs, self._faults, self._store = state, jobs, faults, CustomJobStore(state)

    def methods(self) -> Sequence[Method]:
        """See `http.Api`."""
        jobs = r"v1/projects/(?P<project>[^/]+)/locations/(?P<region>[^/]+)/customJobs"
        one = rf"{jobs}/(?P<id>[^/:]+)"
        return (
            Method("POST", jobs, self._create),
            Method("GET", jobs, self._list),
            Method("GET", one, self._get),
            Method("POST", rf"{one}:cancel", self._cancel),
        )

    def _create(self, call: ApiCall) -> Answer:
        project = self._authorised(call, "create")
        job_fields.check(call.body)
        now = time.time()
        job = CustomJob(project, call.parts["region"], new_id(), call.body, now, now)
        self._check_account(call, job)
        if metrics := beyond(job, (), self._faults.quotas()):
            raise ServiceError(429, over_quota(metrics))
        refusals = {
            "throttling": ServiceError(429, "Quota exceeded for quota metric 'Custom job requests'."),
            "transient": ServiceError(503, "The service is currently unavailable."),
            "quota": ServiceError(429, over_quota(sorted(demand(job)))),
        }
        met = self._faults.create(f"{project}/{job.region}/{job.display_name}", job.display_name, refusals)
        self._jobs.begin(job, met)
        return job.described()

    def _check_account(self, call: ApiCall, job: CustomJob) -> None:
        """Raise ServiceError where the caller may not run a job as its account."""
        email = job.spec.get("serviceAccount")
        if not email:
            return
        account = account_record(self._state, str(email))
        acts = "iam.serviceAccounts.actAs"
        if account is None or not allowed(self._state, call.caller.members, acts, account, account.id):
            message = f"You do not have permission to act as service_account: {email}. (or it may not exist)."
            raise ServiceError(400, message)

    def _get(self, call: ApiCall) -> Answer:
        return self._found(call, "get").described()

    def _list(self, call: ApiCall) -> Answer:
        project, region = self._authorised(call, "list"), call.parts["region"]
        wanted = parsed(call.query.get("filter", ""), _field)
        found = [one for one in self._store.all() if (one.project, one.region) == (project, region)]
        rows = [row for one in found if wanted(row := one.described())]
        start = int(base64.b64decode(call.query.get("pageToken", "")) or b"0")
        most = min(int(call.query.get("pageSize") or _MOST_LISTED), _MOST_LISTED)
        token = base64.b64encode(str(start + most).encode()).decode()
        return {
            "customJobs": rows[start : start + most],
            **({"nextPageToken": token} if start + most < len(rows) else {}),
        }

    def _cancel(self, call: ApiCall) -> Answer:
        job = self._found(call, "cancel")
        if job.over:
            raise ServiceError(
                400, f"The CustomJob is in state {job.state} and cannot be cancelled.", _FAILED
            )
        self._jobs.cancel(job)
        return {}

    def _found(self, call: ApiCall, verb: str) -> CustomJob:
        project = self._authorised(call, verb)
        job = self._store.get(project, call.parts["region"], call.parts["id"])
        if job is None:
            parts = call.parts
            where = f"projects/{parts['project']}/locations/{parts['region']}/customJobs/{parts['id']}"
            raise ServiceError(404, f"The CustomJob does not exist: {where}")
        return job

    def _authorised(self, call: ApiCall, verb: str) -> str:
        """The project's id, where the caller has the right in it. Raises ServiceError."""
        named, permission = call.parts["project"], f"aiplatform.customJobs.{verb}"
        project = next((one for one in self._projects() if project_number(one) == named), named)
        if not allowed_in_project(self._state, call.caller.members, permission, project):
            resource = f"projects/{named}/locations/{call.parts['region']}"
            info = {
                "@type": "type.googleapis.com/google.rpc.ErrorInfo",
                "reason": "IAM_PERMISSION_DENIED",
                "domain": "aiplatform.googleapis.com",
                "metadata": {"permission": permission, "resource": resource},
            }
            message = (
                f"Permission '{permission}' denied on resource '//aiplatform.googleapis.com/{resource}' "
                "(or it may not exist)."
            )
            raise ServiceError(403, message, more={"details": [info]})
        return project

    def _projects(self) -> set[str]:
        return {str(one.outputs.get("project") or one.scope) for one in self._state.find(package="gcp")}


def _field(row: Mapping[str, Any], name: str) -> str | None:
    """A field of a job that list filters use (ListCustomJobsRequest.filter)."""
    if name.startswith("labels."):
        value = (row.get("labels") or {}).get(name.removeprefix("labels."))
    else:
        value = {
            "display_name": row.get("displayName"),
            "state": row["state"],
            "create_time": row["createTime"],
        }.get(name)
    return None if value is None else str(value)
