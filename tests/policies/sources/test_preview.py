"""Previews in both forms that the CLI writes: what is planned, and files that do not tell all of it."""

import json
from pathlib import Path
from typing import Any

import pytest

from infra.errors import UserError
from policies.resource import Resource, UndeterminedError
from policies.sources import preview
from policies.stack import Stack

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


def test_the_document_tells_what_is_planned_and_what_is_awaited(file: Path) -> None:
    (found,) = digest(file, step("create", planned(GROUP, "g", inputs={"a": 1, "nodeRoleArn": LATER})))
    assert (found.kind, found.origin, found.props["a"]) == (GROUP, "planned", 1)
    with pytest.raises(UndeterminedError, match="nodeRoleArn is not known before the deployment"):
        found.props.get("nodeRoleArn")
    with pytest.raises(UndeterminedError, match="id is not known before the deployment"):
        assert found.id == ""


def test_events_tell_the_same_with_what_the_provider_plans(file: Path) -> None:
    row = planned(GROUP, "g", inputs={"a": 1})
    told = {**row, "outputs": {"a": 1, "arn": LATER, "status": "ACTIVE"}}
    (found,) = streamed(file, event("create", row), event("create", told, "resOutputsEvent"), SUMMARY)
    assert (found.kind, found.props["status"]) == (GROUP, "ACTIVE")
    with pytest.raises(UndeterminedError, match="arn is not known"):
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
    """The document tells a new state without both, as the CLI 3.259.0 writes it."""
    old = planned(TEMPLATE, "t", id="lt-1", outputs={"name": "t-1", "tags": {"a": "old"}})
    new = {key: value for key, value in planned(TEMPLATE, "t", inputs={"x": 1}).items() if key != "id"}
    (same,) = digest(file, {**step("same", new), "oldState": old})
    assert (same.id, same.props) == ("lt-1", {"x": 1, "name": "t-1", "tags": {"a": "old"}})
    (updated,) = digest(file, {**step("update", new), "oldState": old})
    assert (updated.id, updated.props) == ("lt-1", {"x": 1})
    (replaced,) = digest(file, {**step("replace", new), "oldState": old})
    with pytest.raises(UndeterminedError, match="id is not known before the deployment"):
        assert replaced.id == "lt-1"


def test_a_replacement_is_one_resource(file: Path) -> None:
    new, old = planned(GROUP, "g", inputs={"a": 2}), planned(GROUP, "g", inputs={"a": 1})
    told = [event("create-replacement", new), event("replace", new), event("delete-replaced", old)]
    assert [one.props for one in streamed(file, *told, SUMMARY)] == [{"a": 2}]


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
    with pytest.raises(UndeterminedError, match=r"launchTemplate\.id is not known"):
        list(stack.users(stack.all(TEMPLATE)[0], GROUP, "launchTemplate.id"))


def test_a_preview_that_leaves_out_what_stays_is_no_stack(file: Path) -> None:
    with pytest.raises(UserError, match="leaves out 2 resources that stay as they are") as error:
        digest(file, step("same", BUCKET), changeSummary={"same": 3})
    assert "--show-sames" in str(error.value)


def test_a_preview_that_failed_is_no_stack(file: Path) -> None:
    said = {"severity": "error", "message": "no zone\n"}
    with pytest.raises(UserError, match="the preview did not succeed: no zone"):
        digest(file, step("create", BUCKET), diagnostics=[said])
    failed = {**SUMMARY, "summaryEvent": {"isPreview": True, "result": "failed"}}
    with pytest.raises(UserError, match="the preview did not succeed"):
        streamed(file, event("create", BUCKET), failed)


def test_events_without_an_end_or_of_an_up_are_no_preview(file: Path) -> None:
    with pytest.raises(UserError, match="its events were cut off"):
        streamed(file, event("create", BUCKET))
    done = {**SUMMARY, "summaryEvent": {"isPreview": False, "result": "succeeded"}}
    with pytest.raises(UserError, match="an operation that changed the stack"):
        streamed(file, event("create", BUCKET), done)


BAD: dict[str, tuple[str, str]] = {
    "cut off": ('{"steps": [{"op": "create", ', "is not valid JSON, or was cut off"),
    "an event cut off": (
        '{"sequence":1,"timestamp":1,"preludeEvent":{}}\n{"sequence":2,"resou',
        ":2: is not valid JSON",
    ),
    "an event of another form": (
        '{"sequence":1,"timestamp":1,"resourcePreEvent":7}',
        "resourcePreEvent: must be an object",
    ),
    "no event": ('{"sequence":1,"timestamp":1}\n7\n', "line 2: must be an event"),
    "a state": ('{"version": 3, "deployment": {}}', "is the export of a stack"),
    "foreign": ('{"resource_changes": []}', "is not what `pulumi preview --json` writes"),
    "no summary": ('{"steps": []}', "it has no summary"),
    "a step of another form": ('{"steps": [7], "changeSummary": {}}', "steps[0]: must be an object"),
    "a step without a state": (
        '{"steps": [{"op": "create"}], "changeSummary": {}}',
        "newState: must be an object",
    ),
    "nothing": ('{"steps": [], "changeSummary": {}}', "holds no resource of a cloud"),
}


@pytest.mark.parametrize("kind", BAD)
def test_files_that_are_no_preview(file: Path, kind: str) -> None:
    content, said = BAD[kind]
    file.write_text(content)
    with pytest.raises(UserError) as error:
        preview.read(file)
    assert said in str(error.value)
