"""Previews in both formats of the CLI: planned resources, and incomplete files."""

import json
from pathlib import Path
from typing import Any

import pytest

from policies.resource import Resource, UndeterminedError
from policies.sources import preview
from policies.stack import Stack
from tests.policies.problems import rejected

LATER = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"
URN = "urn:pulumi:dev::app::"
TEMPLATE, GROUP = "aws:ec2/launchTemplate:LaunchTemplate", "aws:eks/nodeGroup:NodeGroup"


def planned(token: str, name: str, /, **more: Any) -> dict[str, Any]:
    return {"urn": f"{URN}{token}::{name}", "type": token, "custom": True, "id": "", "inputs": {}, **more}


def step(op: str, row: dict[str, Any]) -> dict[str, Any]:
    return {"op": op, "urn": row["urn"], "newState": row}


def event(op: str, row: dict[str, Any] | None, kind: str = "resourcePreEvent") -> dict[str, Any]:
    urn = row["urn"] if row else f"{URN}{GROUP}::gone"
    return {
        "sequence": 1,
        "timestamp": 1,
        kind: {"metadata": {"op": op, "urn": urn, "new": row}, "planning": True},
    }


SUMMARY = {"sequence": 9, "timestamp": 1, "summaryEvent": {"isPreview": True, "result": "succeeded"}}
BUCKET = planned("aws:s3/bucket:Bucket", "b")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "preview.json"


def digest(file: Path, *steps: Any, **more: Any) -> list[Resource]:
    file.write_text(json.dumps({"steps": steps, "changeSummary": {"create": len(steps)}, **more}, indent=4))
    return preview.read(file)


def streamed(file: Path, *events: Any) -> list[Resource]:
    file.write_text("".join(f"{json.dumps(one)}\n" for one in events))
    return preview.read(file)


def test_the_document_has_planned_and_unknown_values(file: Path) -> None:
    (found,) = digest(file, step("create", planned(GROUP, "g", inputs={"a": 1, "nodeRoleArn": LATER})))
    assert (found.kind, found.origin, found.props["a"]) == (GROUP, "planned", 1)
    with pytest.raises(UndeterminedError, match="nodeRoleArn is not"):
        found.props.get("nodeRoleArn")
    with pytest.raises(UndeterminedError, match=r"^id is not"):
        assert found.id == ""


def test_events_have_the_same_resources_with_planned_outputs(file: Path) -> None:
    row = planned(GROUP, "g", inputs={"a": 1})
    reported = {**row, "outputs": {"a": 1, "arn": LATER, "status": "ACTIVE"}}
    (found,) = streamed(file, event("create", row), event("create", reported, "resOutputsEvent"), SUMMARY)
    assert (found.kind, found.props["status"]) == (GROUP, "ACTIVE")
    with pytest.raises(UndeterminedError, match=r"^arn is not"):
        found.props.get("arn")


@pytest.mark.parametrize(
    "op", ["delete", "delete-replaced", "discard", "discard-replaced", "remove-pending-replace"]
)
def test_what_ends_is_not_planned(file: Path, op: str) -> None:
    old = planned(GROUP, "gone")
    gone = {"op": op, "urn": old["urn"], "oldState": old}
    assert [one.name for one in digest(file, step("create", BUCKET), gone)] == ["b"]
    assert [one.name for one in streamed(file, event(op, None), event("create", BUCKET), SUMMARY)] == ["b"]


def test_what_stays_the_same_keeps_its_id_and_outputs_in_the_document(file: Path) -> None:
    """The document has a new state without both, as the CLI 3.259.0 writes it."""
    old = planned(TEMPLATE, "t", id="lt-1", outputs={"name": "t-1", "tags": {"a": "old"}})
    new = {key: value for key, value in planned(TEMPLATE, "t", inputs={"x": 1}).items() if key != "id"}
    (same,) = digest(file, {**step("same", new), "oldState": old})
    assert (same.id, same.props) == ("lt-1", {"x": 1, "name": "t-1", "tags": {"a": "old"}})
    (updated,) = digest(file, {**step("update", new), "oldState": old})
    assert (updated.id, updated.props) == ("lt-1", {"x": 1})
    (replaced,) = digest(file, {**step("replace", new), "oldState": old})
    with pytest.raises(UndeterminedError, match=r"^id is not"):
        assert replaced.id == "lt-1"


def test_a_replacement_is_one_resource(file: Path) -> None:
    new, old = planned(GROUP, "g", inputs={"a": 2}), planned(GROUP, "g", inputs={"a": 1})
    reported = [event("create-replacement", new), event("replace", new), event("delete-replaced", old)]
    assert [one.props for one in streamed(file, *reported, SUMMARY)] == [{"a": 2}]


def test_the_document_says_from_what_an_unknown_value_will_come(file: Path) -> None:
    template = planned(TEMPLATE, "t", inputs={"instanceType": "p5.48xlarge"})
    sources = {"launchTemplate": [template["urn"]]}
    group = planned(GROUP, "g", inputs={"launchTemplate": {"id": LATER}}, propertyDependencies=sources)
    stack = Stack(digest(file, step("create", template), step("create", group)))
    (user,) = stack.all(GROUP)
    (used,) = stack.users(stack.all(TEMPLATE)[0], GROUP, "launchTemplate.id")
    assert used is user
    untold = {key: value for key, value in group.items() if key != "propertyDependencies"}
    stack = Stack(streamed(file, event("create", template), event("create", untold), SUMMARY))
    with pytest.raises(UndeterminedError, match=r"launchTemplate\.id is not"):
        list(stack.users(stack.all(TEMPLATE)[0], GROUP, "launchTemplate.id"))


def test_a_preview_that_leaves_out_what_stays_is_no_stack(file: Path) -> None:
    with rejected("preview-incomplete"):
        digest(file, step("same", BUCKET), changeSummary={"same": 3})


def test_a_preview_that_failed_is_no_stack(file: Path) -> None:
    said = {"severity": "error", "message": "no zone\n"}
    with rejected("preview-failed"):
        digest(file, step("create", BUCKET), diagnostics=[said])
    failed = {**SUMMARY, "summaryEvent": {"isPreview": True, "result": "failed"}}
    with rejected("preview-failed"):
        streamed(file, event("create", BUCKET), failed)


def test_events_without_an_end_or_of_an_up_are_no_preview(file: Path) -> None:
    with rejected("preview-failed"):
        streamed(file, event("create", BUCKET))
    done = {**SUMMARY, "summaryEvent": {"isPreview": False, "result": "succeeded"}}
    with rejected("preview-of-an-update"):
        streamed(file, event("create", BUCKET), done)


BAD: dict[str, tuple[str, str]] = {
    "cut off": ('{"steps": [{"op": "create", ', "input-file-invalid-json"),
    "an event cut off": (
        '{"sequence":1,"timestamp":1,"preludeEvent":{}}\n{"sequence":2,"resou',
        "input-file-invalid-json :2",
    ),
    "an event of another form": (
        '{"sequence":1,"timestamp":1,"resourcePreEvent":7}',
        "file-value-wrong-type resourcePreEvent",
    ),
    "no event": ('{"sequence":1,"timestamp":1}\n7\n', "file-value-wrong-type line 2"),
    "a state": ('{"version": 3, "deployment": {}}', "preview-is-a-state"),
    "of Terraform": ('{"resource_changes": []}', "preview-of-terraform"),
    "a saved plan": ('{"manifest": {}, "resourcePlans": {}}', "preview-is-a-plan"),
    "a snapshot": ('{"schema": "trainstack.snapshot/1"}', "preview-unknown-format"),
    "foreign": ('{"StackId": "x", "Changes": []}', "preview-unknown-format"),
    "a list": ("[]", "preview-unknown-format"),
    "no summary": ('{"steps": []}', "preview-failed changeSummary"),
    "a step of another form": ('{"steps": [7], "changeSummary": {}}', "file-value-wrong-type steps[0]"),
    "a step without a state": (
        '{"steps": [{"op": "create"}], "changeSummary": {}}',
        "file-value-wrong-type newState",
    ),
    "nothing": ('{"steps": [], "changeSummary": {}}', "source-without-resources"),
}


@pytest.mark.parametrize("kind", BAD)
def test_files_that_are_no_preview(file: Path, kind: str) -> None:
    content, problem = BAD[kind]
    file.write_text(content)
    code, _, path = problem.partition(" ")
    with rejected(code, path):
        preview.read(file)


def test_a_default_provider_has_the_configuration_of_the_stack(file: Path) -> None:
    """The document leaves such providers out; others have their own inputs."""
    default, own = (f"{URN}pulumi:providers:aws::{name}::x" for name in ("default_7_51_1", "own"))
    rows = [planned("aws:sqs/queue:Queue", one, provider=one) for one in (default, own)]
    given = {"aws:region": "eu-west-1", "aws:defaultTags": '{"tags": {"owner": "anna"}}', "gcp:region": "x"}
    found = digest(file, *(step("create", one) for one in rows), config=given)
    assert [(one.region, dict(one.tags)) for one in found] == [("eu-west-1", {"owner": "anna"}), ("", {})]
