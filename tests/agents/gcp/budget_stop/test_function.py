"""Handling of a Cloud Billing message: stopped workloads, records and log lines."""

import base64
import datetime
import json
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from agents.gcp.budget_stop import function
from agents.gcp.budget_stop.rest import GoogleApiError
from agents.gcp.budget_stop.rest import GoogleApis as Apis
from components.gcp.functions.function import ENTRY, digest, sources
from tests.agents.gcp.budget_stop.google import PLACE, PROJECT, REGION, Google, running

NOW = datetime.datetime(2026, 11, 26, 12, tzinfo=datetime.UTC)
SETTINGS: dict[str, Any] = {
    "stack": "small",
    "project": PROJECT,
    "region": REGION,
    "bucket": "artifacts",
    "budgets": [
        {"name": "small-monthly", "scope": "stack", "value": "small", "over_budget": "warn"},
        {"name": "small-person-eve-monthly", "scope": "person", "value": "eve", "over_budget": "stop"},
    ],
}
PACKAGES = ["agents.gcp.budget_stop", "agents.budget_stop"]


@pytest.fixture
def google() -> Iterator[Google]:
    with running() as made:
        yield made


def message(spent: float = 600, name: str = "small-person-eve-monthly", **more: Any) -> dict[str, Any]:
    return {
        "budgetDisplayName": name,
        "costAmount": spent,
        "budgetAmount": 500,
        "costIntervalStart": "2026-11-01T08:00:00Z",
        "currencyCode": "USD",
        **more,
    }


def act(google: Google, message: dict[str, Any]) -> dict[str, Any]:
    return function.act(message, SETTINGS, Apis(google.environment, REGION), NOW)


def test_above_the_limit_all_workloads_of_the_person_are_stopped_and_no_others(google: Google) -> None:
    google.job("hers", stack="small", person="eve")
    google.job("waits", "JOB_STATE_QUEUED", stack="small", person="eve")
    google.job("adas", stack="small", person="ada")
    google.job("of-another-stack", stack="other", person="eve")
    google.notebook("hers", stack="small", person="eve")
    google.endpoint("hers", ["7", "8"], stack="small", person="eve")
    act(google, message())
    assert sorted(google.posted, key=str) == sorted(
        [
            (f"{PROJECT}/locations/{REGION}/customJobs/hers:cancel", {}),
            (f"{PROJECT}/locations/{REGION}/customJobs/waits:cancel", {}),
            (f"{PROJECT}/locations/us-central1-a/instances/hers:stop", {}),
            (f"{PROJECT}/locations/{REGION}/endpoints/hers:undeployModel", {"deployedModelId": "7"}),
            (f"{PROJECT}/locations/{REGION}/endpoints/hers:undeployModel", {"deployedModelId": "8"}),
        ],
        key=str,
    )


def test_what_is_off_or_ending_or_empty_is_left_alone(google: Google) -> None:
    google.job("ending", "JOB_STATE_CANCELLING", stack="small", person="eve")
    google.notebook("off", "STOPPED", stack="small", person="eve")
    google.endpoint("empty", [], stack="small", person="eve")
    assert act(google, message())["done"] == [] and google.posted == []


@pytest.mark.parametrize("spent", [0, 499.99, 500])
def test_up_to_the_limit_nothing_is_stopped(google: Google, spent: float) -> None:
    google.job("hers", stack="small", person="eve")
    assert act(google, message(spent)) == {"over": [], "done": []}
    assert google.posted == [] and google.objects == {}


def test_a_budget_that_warns_logs_what_it_would_have_stopped(
    google: Google, capsys: pytest.CaptureFixture[str]
) -> None:
    google.job("hers", stack="small", person="eve")
    (done,) = act(google, message(name="small-monthly"))["done"]
    assert (done["action"], done["outcome"], google.posted) == ("would stop", "left running", [])
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    (logged,) = [line for line in lines if line["event"] == "budget-stop"]
    assert logged["subject"].startswith("small: ") and "left running" in logged["text"]


def test_a_label_with_a_reason_exempts_and_is_recorded(google: Google) -> None:
    google.job("deadline", stack="small", person="eve", budget_exempt="paper_deadline")
    (done,) = act(google, message())["done"]
    assert (done["action"], google.posted) == ("exempt", [])
    (record,) = google.objects.values()
    assert record["reason"].endswith("exempt: paper_deadline")


def test_each_action_leaves_a_record_and_a_second_message_adds_none(
    google: Google, capsys: pytest.CaptureFixture[str]
) -> None:
    google.job("hers", stack="small", person="eve")
    act(google, message())
    ((key, record),) = google.objects.items()
    assert key.startswith("audit/2026-11-26/") and key.endswith("customJobs-hers-stop.json")
    assert record["schema_version"] == "trainstack.budget-stop/1"
    assert (record["limit_usd"], record["spent_usd"], record["outcome"]) == (500, 600, "stopped")
    assert record["arn"] == f"{PLACE}/customJobs/hers"
    capsys.readouterr()
    act(google, message(700))
    assert len(google.objects) == 1
    # Records of the log stay, the mail does not come again.
    assert '"event": "budget-stop"' not in capsys.readouterr().out


def test_a_job_that_ended_by_itself_is_no_error(google: Google) -> None:
    google.job("hers", stack="small", person="eve")
    google.refusals = {"hers:cancel": (400, "FAILED_PRECONDITION")}
    (done,) = act(google, message())["done"]
    assert done["outcome"] == "had ended"


def test_one_refusal_does_not_keep_the_rest_running_and_the_message_comes_again(google: Google) -> None:
    google.job("first", stack="small", person="eve")
    google.job("second", stack="small", person="eve")
    google.refusals = {"first:cancel": (403, "PERMISSION_DENIED")}
    with pytest.raises(GoogleApiError, match="status 403"):
        act(google, message())
    assert [path.rpartition("/")[2] for path, _ in google.posted] == ["second:cancel"]
    assert any(one["outcome"].startswith("failed: ") for one in google.objects.values())


@pytest.mark.parametrize(
    "message",
    [message(name="of-another-stack"), message(costIntervalStart="2026-10-01T07:00:00Z")],
    ids=["another stack's", "of a month ago"],
)
def test_a_message_about_something_else_stops_nothing(google: Google, message: dict[str, Any]) -> None:
    google.job("hers", stack="small", person="eve")
    assert act(google, message)["done"] == [] and google.posted == []


def test_euros_are_not_taken_for_dollars(google: Google) -> None:
    with pytest.raises(ValueError, match="in EUR"):
        act(google, message(currencyCode="EUR"))


def test_amounts_of_an_account_in_another_currency_are_recorded_in_dollars(google: Google) -> None:
    google.job("hers", stack="small", person="eve")
    euros = {**SETTINGS, "currency": {"code": "EUR", "per_usd": 0.5}}
    found = message(300, budgetAmount=250, currencyCode="EUR")
    function.act(found, euros, Apis(google.environment, REGION), NOW)
    (record,) = google.objects.values()
    assert (record["limit_usd"], record["spent_usd"], record["outcome"]) == (500, 600, "stopped")
    with pytest.raises(ValueError, match="USD"):
        function.act(message(), euros, Apis(google.environment, REGION), NOW)


def test_a_message_arrives_as_a_cloud_event(google: Google, monkeypatch: pytest.MonkeyPatch) -> None:
    google.job("hers", stack="small", person="eve")
    for key, value in google.environment.items():
        monkeypatch.setenv(key, value)
    monkeypatch.setenv(function.SETTINGS, json.dumps(SETTINGS))
    recent = (datetime.datetime.now(datetime.UTC) - datetime.timedelta(days=3)).isoformat()
    data = base64.b64encode(json.dumps(message(costIntervalStart=recent)).encode()).decode()
    result = function.handle(SimpleNamespace(data={"message": {"data": data}}))
    assert result["over"] == ["small-person-eve-monthly"] and len(google.posted) == 1


def test_the_source_holds_all_that_the_function_imports(tmp_path: Path) -> None:
    """Run from the archive alone, by an interpreter that sees nothing else of this tree."""
    archive = tmp_path / "source.zip"
    with zipfile.ZipFile(archive, "w") as made:
        for name, text in sources(PACKAGES).items():
            made.writestr(name, text)
        # What the builder of Google adds.
        made.writestr("functions_framework.py", "def cloud_event(handler):\n    return handler\n")
    said = f"import sys; sys.path[:0] = [{str(archive)!r}]; import main; print(callable(main.{ENTRY}))"
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", said], capture_output=True, text=True, check=False
    )
    assert done.stdout.strip() == "True", done.stderr


def test_another_text_is_another_source() -> None:
    files = sources(PACKAGES)
    assert digest(files) == digest(dict(reversed(files.items())))
    assert digest(files) != digest({**files, "main.py": files["main.py"] + "\n"})
    assert all(text.strip() for text in files.values()), "an asset without a text is lost on the way"
