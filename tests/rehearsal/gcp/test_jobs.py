"""Resources that Google's services create beside functions, and access behind a proxy."""

from typing import Any

import pytest

from rehearsal.core.model import RefusalError
from rehearsal.gcp import iam_delay
from tests.rehearsal.gcp.harness import Driver
from tests.rehearsal.gcp.rules.examples.jobs import EVENTARC

FUNCTION, SERVICE = "cloudfunctionsv2/function:Function", "cloudrunv2/service:Service"
PLACE: dict[str, Any] = {"location": "us-central1"}
INVOKER: dict[str, Any] = {**PLACE, "role": "roles/run.invoker", "member": "user:ada@example.com"}


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Triggers are possible in the project."""
    monkeypatch.setattr(iam_delay, "DELAY_S", 0.0)


def function(google: Driver, **more: Any) -> dict[str, Any]:
    google.create("pubsub/topic:Topic", "topic", name="topic")
    for kind, name, inputs in EVENTARC:
        google.create(kind, name, **inputs)
    trigger = {
        "eventType": "google.cloud.pubsub.topic.v1.messagePublished",
        "pubsubTopic": "projects/research/topics/topic",
    }
    return google.create(FUNCTION, "stop", name="stop", eventTrigger=trigger, **PLACE, **more)


def test_a_function_has_a_service_that_is_deleted_with_it(google: Driver) -> None:
    made = function(google)
    assert made["serviceConfig"]["service"] == "projects/research/locations/us-central1/services/stop"
    assert made["eventTrigger"]["trigger"].endswith("/triggers/stop")
    google.create("cloudrunv2/serviceIamMember:ServiceIamMember", "may", name="stop", **INVOKER)
    google.delete("may")
    google.delete("stop")
    assert google.state.find(type=f"gcp:{SERVICE}") == []


def test_access_to_a_missing_service_is_refused(google: Driver) -> None:
    with pytest.raises(RefusalError, match="does not exist"):
        google.create("cloudrunv2/serviceIamMember:ServiceIamMember", "may", name="stop", **INVOKER)


def test_a_function_needs_the_topic_that_wakes_it(google: Driver) -> None:
    trigger = {"eventType": "e", "pubsubTopic": "projects/research/topics/none"}
    with pytest.raises(RefusalError, match="topics/none"):
        google.create(FUNCTION, "stop", name="stop", eventTrigger=trigger, **PLACE)


def test_the_name_of_a_custom_role_is_free_again_and_no_two_have_it(google: Driver) -> None:
    role: dict[str, Any] = {
        "roleId": "jobs",
        "title": "Run jobs",
        "permissions": ["aiplatform.customJobs.create"],
    }
    made = google.create("projects/iAMCustomRole:IAMCustomRole", "jobs", **role)
    assert made["name"] == "projects/research/roles/jobs"
    with pytest.raises(RefusalError, match="already exists and must be imported"):
        google.create("projects/iAMCustomRole:IAMCustomRole", "again", **role)
    google.delete("jobs")
    google.create("projects/iAMCustomRole:IAMCustomRole", "jobs", **role)


def test_a_binding_of_the_role_lets_a_trigger_be_made_as_a_member_does(google: Driver) -> None:
    (identity, member) = EVENTARC
    google.create(identity[0], identity[1], **identity[2])
    given = {name: value for name, value in member[2].items() if name != "member"}
    trigger = {"eventType": "e"}
    google.create("projects/iAMBinding:IAMBinding", "other", **given | {"members": ["user:ada@example.com"]})
    with pytest.raises(RefusalError, match="Eventarc Service Agent"):
        google.create(FUNCTION, "stop", name="stop", eventTrigger=trigger, **PLACE)
    google.update("other", **given, members=["user:ada@example.com", member[2]["member"]])
    google.create(FUNCTION, "stop", name="stop", eventTrigger=trigger, **PLACE)
