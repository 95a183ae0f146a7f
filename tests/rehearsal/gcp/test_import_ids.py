"""Types whose import takes another id than that of the state, by the provider's documentation."""

from typing import Any

import pytest

from tests.rehearsal.driver import refused
from tests.rehearsal.gcp.harness import Driver

_ROLE, _EVE = "roles/viewer", "user:eve@example.com"
_WORK = {"title": "work hours", "expression": 'resource.name == "x"'}
_MEMBER: Any = {"project": "research", "role": _ROLE, "member": _EVE}
_BOTH: dict[str, Any] = {"under": {"condition": _WORK}, "always": {}}
_LOGS = {"logType": "DATA_READ"}


@pytest.mark.parametrize(
    ("token", "inputs", "form", "error"),
    [
        ("projects/iAMMember:IAMMember", _MEMBER, f"research {_ROLE} {_EVE}", "Member id"),
        (
            "projects/iAMMember:IAMMember",
            {**_MEMBER, "condition": _WORK},
            f"research {_ROLE} {_EVE} work hours",
            "Member id",
        ),
        (
            "projects/iAMAuditConfig:IAMAuditConfig",
            {"project": "research", "service": "storage.googleapis.com", "auditLogConfigs": [_LOGS]},
            "research storage.googleapis.com",
            "AuditConfig id",
        ),
    ],
)
def test_it_is_imported_by_the_documented_id_alone(
    google: Driver, token: str, inputs: dict[str, Any], form: str, error: str
) -> None:
    key = google.create(token, "made", **inputs)["id"]
    assert google.imported(token, "again", form, **inputs).changed == ()
    assert google.made["again"][1] == key
    refused(error, google.get, token, "research")
    assert google.refresh("made") is not None


def test_members_of_a_role_with_a_condition_and_without_one_are_two(google: Driver) -> None:
    keys = {
        google.create("projects/iAMMember:IAMMember", name, **_MEMBER, **more)["id"]
        for name, more in _BOTH.items()
    }
    assert len(keys) == 2
    for form, there in ((f"research {_ROLE} {_EVE} work hours", True), (f"research {_ROLE} {_EVE}", False)):
        google.imported("projects/iAMMember:IAMMember", "again", form, **_MEMBER)
        assert ("work" in google.made["again"][1]) is there


def test_a_user_of_a_database_is_imported_by_its_project_and_instance(google: Driver) -> None:
    settings = {"tier": "db-custom-2-7680", "edition": "ENTERPRISE"}
    where: Any = {
        "name": "db",
        "databaseVersion": "POSTGRES_16",
        "region": "us-central1",
        "settings": settings,
    }
    google.create("sql/databaseInstance:DatabaseInstance", "db", **where)
    inputs: Any = {"name": "ml", "instance": "db", "password": "x"}
    key = google.create("sql/user:User", "made", **inputs)["id"]
    google.imported("sql/user:User", "again", "research/db/ml", **inputs)
    assert google.made["again"][1] == key
    refused("Expecting {project}/{instance}/{name}", google.get, "sql/user:User", "ml")


def test_a_member_of_another_project_is_imported_and_names_its_topic_once(google: Driver) -> None:
    topic = google.create("pubsub/topic:Topic", "t", name="alerts")["id"]
    inputs: Any = {"topic": topic, "role": "roles/pubsub.publisher", "member": _EVE}
    key = google.create("pubsub/topicIAMMember:TopicIAMMember", "made", **inputs)["id"]
    google.config["project"] = "other"
    form = f"projects/research/topics/alerts roles/pubsub.publisher {_EVE}"
    inputs["project"] = "research"
    google.imported("pubsub/topicIAMMember:TopicIAMMember", "again", form, **inputs)
    assert google.made["again"][1] == key == form.replace(" ", "/")
