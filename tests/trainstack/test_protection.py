"""Resources for which a destroy is refused."""

from typing import Any

import pytest

from trainstack.protection import protected


def resource(name: str, **more: Any) -> dict[str, Any]:
    return {"urn": f"urn:pulumi:prod::trainstack::aws:rds/cluster:Cluster::{name}", **more}


@pytest.mark.parametrize(
    ("found", "path"),
    [
        ({"protect": True}, "mlflow.protect"),
        ({"outputs": {"deletionProtection": True}}, "mlflow.deletionProtection"),
        ({"outputs": {"enableDeletionProtection": True}}, "mlflow.enableDeletionProtection"),
        (
            {"outputs": {"settings": [{"deletionProtectionEnabled": True}]}},
            "mlflow.settings[0].deletionProtectionEnabled",
        ),
    ],
)
def test_a_protected_resource_is_named_with_its_switch(found: dict[str, Any], path: str) -> None:
    (problem,) = protected([resource("other", outputs={"name": "x"}), resource("mlflow", **found)])
    assert problem.path == path
    assert "data.protect" in problem.fix


@pytest.mark.parametrize(
    "found",
    [
        {},
        {"protect": False, "outputs": None},
        {"outputs": {"deletionProtection": False, "deletionProtectionReason": "", "settings": []}},
        {"inputs": {"deletionProtection": True}, "outputs": {"deletionProtection": False}},
    ],
)
def test_what_can_be_deleted_is_no_problem(found: dict[str, Any]) -> None:
    assert list(protected([resource("mlflow", **found)])) == []
