"""What of a stack runs on Vertex AI, and how it is ended."""

from collections.abc import Iterator, Mapping
from typing import Any

from agents.budget_stop.decisions import PREFIX, Running
from agents.gcp.budget_stop.rest import Google, RefusedError

# Open states of a job that is not about to end. Source: Vertex AI API v1, JobState.
_OPEN_JOBS = ("JOB_STATE_QUEUED", "JOB_STATE_PENDING", "JOB_STATE_RUNNING", "JOB_STATE_UPDATING")
# Source: Notebooks API v2, State.
_ON = ("STARTING", "PROVISIONING", "ACTIVE", "UPGRADING", "INITIALIZING")
# Said of something that was deleted, or ended, between the question and the stop (google.rpc.Code).
_GONE, _ENDED = 404, "FAILED_PRECONDITION"


def everything(google: Google, project: str, region: str, stack: str) -> list[Running]:
    """Custom jobs, notebooks that are on, and endpoints with models; of the stack, as their labels say."""
    place = f"projects/{project}/locations/{region}"
    found = [*_jobs(google, place), *_notebooks(google, project), *_endpoints(google, place)]
    return [one for one in found if one.tags.get(f"{PREFIX}:stack") == stack]


def end(google: Google, one: Running) -> bool:
    """End it; False when it had ended by itself. Raises RefusedError for what an API says otherwise."""
    try:
        if one.kind == "custom-job":
            google.post("aiplatform", f"v1/{one.arn}:cancel", {})
        elif one.kind == "notebook":
            google.post("notebooks", f"v2/{one.arn}:stop", {})
        else:
            for model in one.handle["models"].split():
                google.post("aiplatform", f"v1/{one.arn}:undeployModel", {"deployedModelId": model})
    except RefusedError as error:
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


def _jobs(google: Google, place: str) -> Iterator[Running]:
    for state in _OPEN_JOBS:
        jobs = google.pages("aiplatform", f"v1/{place}/customJobs", "customJobs", filter=f'state="{state}"')
        for row in jobs:
            yield Running("custom-job", str(row["displayName"]), row["name"], tags(row.get("labels")), {})


def _notebooks(google: Google, project: str) -> Iterator[Running]:
    """In all zones; those that are off cost their disks alone."""
    path = f"v2/projects/{project}/locations/-/instances"
    for row in google.pages("notebooks", path, "instances"):
        if row.get("state") in _ON:
            name = str(row["name"])
            yield Running("notebook", name.rpartition("/")[2], name, tags(row.get("labels")), {})


def _endpoints(google: Google, place: str) -> Iterator[Running]:
    """Those with models: an endpoint without one costs nothing."""
    for row in google.pages("aiplatform", f"v1/{place}/endpoints", "endpoints"):
        models = [str(model["id"]) for model in row.get("deployedModels") or ()]
        if models:
            handle = {"models": " ".join(models)}
            yield Running("endpoint", str(row["displayName"]), row["name"], tags(row.get("labels")), handle)
