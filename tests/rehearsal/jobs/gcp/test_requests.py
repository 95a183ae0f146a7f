"""Errors and lists of the emulated Vertex AI, in the form of google.rpc.Status."""

from typing import Any

import pytest

from tests.rehearsal.jobs.gcp.conftest import ADA, OVER, PROJECT, REGION, TRAINER, Project, request

L4 = {"machineType": "g2-standard-8", "acceleratorType": "NVIDIA_L4", "acceleratorCount": 1}
_JOBS = f"v1/projects/{PROJECT}/locations/{REGION}/customJobs"
METRIC = "aiplatform.googleapis.com/custom_model_training_nvidia_l4_gpus"
SPOT_METRIC = "aiplatform.googleapis.com/custom_model_training_preemptible_nvidia_l4_gpus"


def error(answer: Any) -> tuple[int, str, str]:
    error = answer.json()["error"]
    return answer.status_code, error["status"], error["message"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"displayName": ""}, "display_name"),
        ({"display": "x"}, "Unknown name \"display\" at 'custom_job'"),
        ({"labels": {"Team": "x"}}, "Label keys"),
        ({"displayName": "x" * 129}, "at most 128"),
    ],
)
def test_a_job_of_another_shape_is_refused(project: Project, change: dict[str, Any], words: str) -> None:
    status, code, message = error(project.ask("POST", _JOBS, {**request(), **change}))
    assert (status, code) == (400, "INVALID_ARGUMENT") and words in message


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"workerPoolSpecs": []}, "worker_pool_specs"),
        ({"scheduling": {"timeout": 5}}, "TYPE_DURATION"),
        ({"scheduling": {"strategy": "CHEAP"}}, "strategy"),
        ({"scheduling": {"strategy": "FLEX_START"}}, "accelerator_type"),
        ({"scheduling": {"strategy": "FLEX_START", "timeout": "604801s"}}, "FLEX_START"),
        ({"scheduling": {"maxWaitDuration": "1 h"}}, "TYPE_DURATION"),
        ({"scheduling": {"retries": 5}}, "Unknown name \"retries\" at 'custom_job.job_spec.scheduling'"),
        ({"baseOutputDirectory": {"outputUriPrefix": "s3://x"}}, "Cloud Storage URI"),
    ],
)
def test_a_spec_of_another_shape_is_refused(project: Project, change: dict[str, Any], words: str) -> None:
    body = request()
    body["jobSpec"] |= change
    status, _, message = error(project.ask("POST", _JOBS, body))
    assert status == 400 and words in message


def test_there_is_one_primary_replica(project: Project) -> None:
    body = request()
    body["jobSpec"]["workerPoolSpecs"][0]["replicaCount"] = 2
    assert "primary replica" in error(project.ask("POST", _JOBS, body))[2]


def test_a_denied_create_names_the_permission(project: Project) -> None:
    status, code, message = error(project.create(by=ADA))
    assert (status, code) == (403, "PERMISSION_DENIED")
    assert message.startswith("Permission 'aiplatform.customJobs.create' denied on resource")


def test_running_as_an_account_needs_a_right_to_it(project: Project) -> None:
    project.grant("roles/aiplatform.user", ADA)
    said = f"You do not have permission to act as service_account: {TRAINER}. (or it may not exist)."
    assert error(project.create(by=ADA)) == (400, "INVALID_ARGUMENT", said)
    project.grant("roles/iam.serviceAccountUser", ADA)
    assert project.create(by=ADA).ok
    gone = f"gone@{PROJECT}.iam.gserviceaccount.com"
    assert error(project.create(serviceAccount=gone))[1] == "INVALID_ARGUMENT"


@pytest.mark.parametrize(("strategy", "metric"), [("STANDARD", METRIC), ("SPOT", SPOT_METRIC)])
def test_more_than_the_quota_is_refused_at_once(project: Project, strategy: str, metric: str) -> None:
    project.faults(quotas={metric: 1})
    answer = project.create(machine=L4, workers=1, scheduling={"strategy": strategy})
    said = f"The following quota metrics exceed quota limits: {metric}"
    assert error(answer) == (429, "RESOURCE_EXHAUSTED", said)
    assert project.create(machine=L4, scheduling={"strategy": strategy}).ok


def test_a_job_waits_for_others_within_the_quota(project: Project) -> None:
    project.faults(quotas={"custom_model_training_nvidia_l4_gpus": 1})
    first = project.start("until [ -e /gcs/runs-bucket/go ]; do sleep 0.1; done", machine=L4)
    project.reached(first, {"JOB_STATE_RUNNING"})
    second = project.start("echo mine", machine=L4, name="job-2")
    third = project.start("true", name="job-3")  # without a GPU there is room
    project.reached(third, {"JOB_STATE_SUCCEEDED"})
    assert project.job(second)["state"] == "JOB_STATE_QUEUED"
    project.file("runs-bucket", "go").touch()
    assert project.reached(second, OVER)["state"] == "JOB_STATE_SUCCEEDED"


def test_busy_services_respond_on_a_retry(project: Project) -> None:
    project.faults(faults=[{"on": "gcp:vertex/customJob", "kind": "transient", "times": 2}])
    assert [project.create().status_code for _ in range(3)] == [503, 503, 200]


def test_jobs_are_listed_by_name_state_and_label_in_pages(project: Project) -> None:
    for index in range(3):
        project.run(name=f"job-{index}", labels={"team": "vision" if index else "nlp"})

    def listed(**query: str) -> tuple[list[str], str]:
        found = project.ask("GET", f"{_JOBS}?{'&'.join(f'{k}={v}' for k, v in query.items())}").json()
        return [one["displayName"] for one in found["customJobs"]], found.get("nextPageToken", "")

    assert listed()[0] == ["job-2", "job-1", "job-0"]
    assert listed(filter='display_name="job-1"')[0] == ["job-1"]
    assert listed(filter='labels.team=vision AND state="JOB_STATE_SUCCEEDED"')[0] == ["job-2", "job-1"]
    page, token = listed(pageSize="2")
    assert page == ["job-2", "job-1"] and listed(pageSize="2", pageToken=token) == (["job-0"], "")
    assert "AND only" in error(project.ask("GET", f"{_JOBS}?filter=(a OR b)"))[2]


def test_a_job_that_is_not_there(project: Project) -> None:
    assert error(project.ask("GET", f"{_JOBS}/7"))[:2] == (404, "NOT_FOUND")


def test_an_image_cannot_run_here_and_the_job_reports_it(project: Project) -> None:
    body = request()
    del body["jobSpec"]["workerPoolSpecs"][0]["containerSpec"]["command"]
    name = project.ask("POST", _JOBS, body).json()["name"]
    assert "cannot run" in project.reached(name, OVER)["error"]["message"]
