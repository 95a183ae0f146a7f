"""List and stop a stack's Vertex AI workloads and notebooks."""

from collections.abc import Iterator, Mapping
from typing import Any

from agents.budget_stop.decisions import PREFIX, BillableWorkload
from agents.gcp.budget_stop.rest import GoogleApiError, GoogleApis

# Open states of a job that is not about to end. Source: Vertex AI API v1, JobState.
_OPEN_JOBS = ("JOB_STATE_QUEUED", "JOB_STATE_PENDING", "JOB_STATE_RUNNING", "JOB_STATE_UPDATING")
# Source: Notebooks API v2, State.
_ON = ("STARTING", "PROVISIONING", "ACTIVE", "UPGRADING", "INITIALIZING")
# For a workload that was deleted or ended between the listing and the stop (google.rpc.Code).
_GONE, _ENDED = 404, "FAILED_PRECONDITION"


def everything(google: GoogleApis, project: str, region: str, stack: str) -> list[BillableWorkload]:
    """Custom jobs, active notebooks and endpoints with models that have the label of the stack."""
    place = f"projects/{project}/locations/{region}"
    found = [*_jobs(google, place), *_notebooks(google, project), *_endpoints(google, place)]
    return [one for one in found if one.tags.get(f"{PREFIX}:stack") == stack]


def end(google: GoogleApis, one: BillableWorkload) -> bool:
    """Stop a workload; False when it had ended already. Raises GoogleApiError for other errors."""
    try:
        if one.kind == "custom-job":
            google.post("aiplatform", f"v1/{one.arn}:cancel", {})
        elif one.kind == "notebook":
            google.post("notebooks", f"v2/{one.arn}:stop", {})
        else:
            for model in one.handle["models"].split():
                google.post("aiplatform", f"v1/{one.arn}:undeployModel", {"deployedModelId": model})
    except GoogleApiError as error:
        if error.status != _GONE and _ENDED not in error.said:
            raise
        return False
    return True


def tags(labels: Mapping[str, Any] | None) -> dict[str, str]:
    """Labels under the keys of tags: `trainstack-person` is `trainstack:person`."""
    return {
        key.replace(f"{PREFIX}-", f"{PREFIX}:", 1) if key.startswith(f"{PREFIX}-") else key: str(value)
        for key, value in (labels or {}).items()
    }


def _jobs(google: GoogleApis, place: str) -> Iterator[BillableWorkload]:
    for state in _OPEN_JOBS:
        jobs = google.pages("aiplatform", f"v1/{place}/customJobs", "customJobs", filter=f'state="{state}"')
        for row in jobs:
            yield BillableWorkload(
                "custom-job", str(row["displayName"]), row["name"], tags(row.get("labels")), {}
            )


def _notebooks(google: GoogleApis, project: str) -> Iterator[BillableWorkload]:
    """Active notebooks in all zones; stopped ones cost only their disks."""
    path = f"v2/projects/{project}/locations/-/instances"
    for row in google.pages("notebooks", path, "instances"):
        if row.get("state") in _ON:
            name = str(row["name"])
            yield BillableWorkload("notebook", name.rpartition("/")[2], name, tags(row.get("labels")), {})


def _endpoints(google: GoogleApis, place: str) -> Iterator[BillableWorkload]:
    """Endpoints with models: one without costs nothing."""
    for row in google.pages("aiplatform", f"v1/{place}/endpoints", "endpoints"):
        models = [str(model["id"]) for model in row.get("deployedModels") or ()]
        if models:
            handle = {"models": " ".join(models)}
            yield BillableWorkload(
                "endpoint", str(row["displayName"]), row["name"], tags(row.get("labels")), handle
            )
