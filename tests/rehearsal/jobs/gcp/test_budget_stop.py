"""The budget function with the emulated Vertex AI, Workbench and Cloud Storage."""

import datetime
import json
import time
from collections.abc import Callable
from typing import Any

import pytest

from agents.gcp.budget_stop import function
from agents.gcp.budget_stop.rest import GoogleApiError, GoogleApis
from components.gcp.money.stopper import STOPS
from rehearsal.core.validate import SIGNATURE
from tests.rehearsal.jobs.gcp.conftest import PROJECT, REGION, Project

STOPPER = f"stopper@{PROJECT}.iam.gserviceaccount.com"
ROLE = f"projects/{PROJECT}/roles/stops"
# A program as the engine uploads it: an archive of texts (rehearsal/dataplane/assets.py).
ARCHIVE, ASSET = "0def7320c3a5731c473e5ecbe6d01bc7", "c44067f5952c0a294b673a41bacd8c17"
WOKEN = """import functions_framework, os
@functions_framework.cloud_event
def call_function(event):
    print(os.environ["WORD"], event.data["message"]["data"])
"""
NOW = datetime.datetime(2026, 11, 26, 12, tzinfo=datetime.UTC)
BUDGET = {"name": "small-person-eve-monthly", "scope": "person", "value": "eve", "over_budget": "stop"}
MESSAGE = {
    "budgetDisplayName": BUDGET["name"],
    "costAmount": 600,
    "budgetAmount": 500,
    "costIntervalStart": "2026-11-01T08:00:00Z",
    "currencyCode": "USD",
}
OPEN = {"JOB_STATE_PENDING", "JOB_STATE_RUNNING"}


def labels(person: str, **more: str) -> dict[str, str]:
    return {"trainstack-stack": "small", "trainstack-person": person, **more}


def call_function(project: Project) -> dict[str, Any]:
    """Result of the function for a message, with the rights of the stack."""
    apis = ("AIPLATFORM", "NOTEBOOKS", "STORAGE")
    environment = {
        "GCE_METADATA_HOST": project.services.google.metadata_host(STOPPER, PROJECT, REGION),
        **{f"CLOUDSDK_API_ENDPOINT_OVERRIDES_{api}": project.url for api in apis},
    }
    settings = {
        "stack": "small",
        "project": PROJECT,
        "region": REGION,
        "bucket": "runs-bucket",
        "budgets": [BUDGET],
    }
    return function.act(MESSAGE, settings, GoogleApis(environment, REGION), NOW)


@pytest.fixture
def stopping(project: Project) -> Project:
    project.add("serviceaccount/account:Account", STOPPER, {}, email=STOPPER)
    project.add("projects/iAMCustomRole:IAMCustomRole", ROLE, {"permissions": list(STOPS)}, name=ROLE)
    project.grant(ROLE, STOPPER)
    project.grant("roles/storage.objectCreator", STOPPER)
    return project


def test_a_job_above_its_budget_is_cancelled_and_another_one_continues(stopping: Project) -> None:
    hers = stopping.start("sleep 600", name="hers", labels=labels("eve"))
    adas = stopping.start("sleep 600", name="adas", labels=labels("ada"))
    stopping.reached(hers, {"JOB_STATE_RUNNING"})
    (done,) = call_function(stopping)["done"]
    assert (done["name"], done["outcome"]) == ("hers", "stopped")
    assert stopping.reached(hers, {"JOB_STATE_CANCELLED"})["state"] == "JOB_STATE_CANCELLED"
    assert stopping.job(adas)["state"] in OPEN
    # Woken again, it has nothing left to do.
    assert call_function(stopping)["done"] == []


def test_the_record_lies_in_the_bucket_once(stopping: Project) -> None:
    stopping.start("sleep 600", name="kept", labels=labels("eve", **{"trainstack-budget-exempt": "paper"}))
    call_function(stopping)
    call_function(stopping)
    found = [*stopping.file("runs-bucket", "audit").rglob("*.json")]
    assert len(found) == 1
    assert json.loads(found[0].read_text())["action"] == "exempt"


def test_without_its_role_the_function_cannot_list_jobs(project: Project) -> None:
    project.add("serviceaccount/account:Account", STOPPER, {}, email=STOPPER)
    with pytest.raises(GoogleApiError, match="status 403"):
        call_function(project)


def test_a_notebook_that_is_on_is_stopped_once(stopping: Project) -> None:
    path = f"projects/{PROJECT}/locations/{REGION}-a/instances/notebook-eve"
    stopping.add("workbench/instance:Instance", path, {"labels": labels("eve")}, state="ACTIVE")
    (done,) = call_function(stopping)["done"]
    assert (done["kind"], done["name"], done["outcome"]) == ("notebook", "notebook-eve", "stopped")
    assert call_function(stopping)["done"] == []


def test_a_message_calls_the_function_whose_trigger_has_the_right(
    stopping: Project, caplog: pytest.LogCaptureFixture
) -> None:
    topic, place = f"projects/{PROJECT}/topics/budgets", f"projects/{PROJECT}/locations/{REGION}"
    source = {SIGNATURE: ARCHIVE, "assets": {"main.py": {SIGNATURE: ASSET, "text": WOKEN}}}
    stored = {"bucket": "code-bucket", "object": "stop.zip"}
    stopping.add("storage/bucketObject:BucketObject", "o", {**stored, "source": source}, name="stop.zip")
    stopping.add("pubsub/topic:Topic", topic, {})
    service = stopping.add("cloudrunv2/service:Service", f"{place}/services/stop", {})
    inputs = {
        "buildConfig": {"entryPoint": "call_function", "source": {"storageSource": stored}},
        "serviceConfig": {"serviceAccountEmail": STOPPER, "environmentVariables": {"WORD": "received"}},
        "eventTrigger": {"pubsubTopic": topic, "serviceAccountEmail": STOPPER},
    }
    stopping.add("cloudfunctionsv2/function:Function", f"{place}/functions/stop", inputs, location=REGION)
    log = stopping.home / "functions" / "stop.log"

    def published(word: str, delivered: Callable[[], bool]) -> None:
        answer = stopping.ask("POST", f"v1/{topic}:publish", {"messages": [{"data": word}]})
        assert answer.ok, answer.text
        deadline = time.monotonic() + 30
        while not delivered():
            assert time.monotonic() < deadline
            time.sleep(0.05)

    published("Zmlyc3Q=", lambda: "the trigger may not call it" in caplog.text)
    invoker = {"name": service.id, "role": "roles/run.invoker", "member": f"serviceAccount:{STOPPER}"}
    binding = stopping.add("cloudrunv2/serviceIamMember:ServiceIamMember", "wakes", invoker)
    stopping.state.refer(binding, {"name": service})
    published("c2Vjb25k", lambda: log.exists() and log.read_text() == "received c2Vjb25k\n")
