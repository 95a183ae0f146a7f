"""The function that budgets wake, held against the emulated Vertex AI and Cloud Storage."""

import datetime
import json
from typing import Any

import pytest

from components.gcp.money.stop import function
from components.gcp.money.stop.rest import Google, RefusedError
from components.gcp.money.stopper import STOPS
from tests.components.gcp.money.stop.google import running
from tests.rehearsal.jobs.vertex.conftest import PROJECT, REGION, Project

STOPPER = f"stopper@{PROJECT}.iam.gserviceaccount.com"
ROLE = f"projects/{PROJECT}/roles/stops"
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


def woken(project: Project) -> dict[str, Any]:
    """What the function does with a message, with the rights that the stack gives it."""
    with running() as notebooks:
        notebooks.token = project.token(STOPPER)
        environment = {
            **notebooks.environment,
            "CLOUDSDK_API_ENDPOINT_OVERRIDES_AIPLATFORM": project.url,
            "CLOUDSDK_API_ENDPOINT_OVERRIDES_STORAGE": project.url,
        }
        settings = {
            "stack": "small",
            "project": PROJECT,
            "region": REGION,
            "bucket": "runs-bucket",
            "budgets": [BUDGET],
        }
        # Endpoints are not emulated.
        google = _WithoutEndpoints(environment, REGION)
        return function.act(MESSAGE, settings, google, NOW)


class _WithoutEndpoints(Google):
    def pages(self, api: str, path: str, key: str, **query: str) -> Any:
        return iter(()) if key == "endpoints" else super().pages(api, path, key, **query)


@pytest.fixture
def stopping(project: Project) -> Project:
    project.add("serviceaccount/account:Account", STOPPER, {}, email=STOPPER)
    project.add("projects/iAMCustomRole:IAMCustomRole", ROLE, {"permissions": list(STOPS)}, name=ROLE)
    project.grant(ROLE, STOPPER)
    project.grant("roles/storage.objectCreator", STOPPER)
    return project


def test_a_job_above_its_budget_is_really_cancelled_and_another_one_goes_on(stopping: Project) -> None:
    hers = stopping.start("sleep 600", name="hers", labels=labels("eve"))
    adas = stopping.start("sleep 600", name="adas", labels=labels("ada"))
    stopping.reached(hers, {"JOB_STATE_RUNNING"})
    (done,) = woken(stopping)["done"]
    assert (done["name"], done["outcome"]) == ("hers", "stopped")
    assert stopping.reached(hers, {"JOB_STATE_CANCELLED"})["state"] == "JOB_STATE_CANCELLED"
    assert stopping.job(adas)["state"] in OPEN
    # Woken again, it has nothing left to do.
    assert woken(stopping)["done"] == []


def test_the_record_lies_in_the_bucket_once(stopping: Project) -> None:
    stopping.start("sleep 600", name="kept", labels=labels("eve", **{"trainstack-budget-exempt": "paper"}))
    woken(stopping)
    woken(stopping)
    found = [*stopping.file("runs-bucket", "audit").rglob("*.json")]
    assert len(found) == 1
    assert json.loads(found[0].read_text())["action"] == "exempt"


def test_without_its_role_the_function_may_not_even_look(project: Project) -> None:
    project.add("serviceaccount/account:Account", STOPPER, {}, email=STOPPER)
    with pytest.raises(RefusedError, match="status 403"):
        woken(project)
