"""Exported states, made ready for a rehearsal."""

import json
from pathlib import Path
from typing import Any

import pytest

from infra.engine.plan import PlannedStep
from infra.errors import UserError
from rehearsal.core.schema import sdk_version
from rehearsal.projects.recorded import emulated, of_export, of_file, without_secrets
from trainstack.replay.report import Replay, counts

URN = "urn:pulumi:acme-dev::acme::"
SECRET = {"4dabf18193072939515e22adb298388d": "1b47061264138c4ac30d75fd1eb44270", "ciphertext": "canary"}
PLAIN = {**SECRET, "plaintext": '"canary"'}
LOGIN = f"{URN}aws:rds/cluster:Cluster::db"


def export(**more: Any) -> dict[str, Any]:
    resources = [
        {"urn": f"{URN}pulumi:pulumi:Stack::acme-acme-dev", "type": "pulumi:pulumi:Stack"},
        {
            "urn": f"{URN}pulumi:providers:aws::default_7_0_0",
            "type": "pulumi:providers:aws",
            "inputs": {"version": "7.0.0"},
            "outputs": {"version": "7.0.0"},
        },
        {
            "urn": LOGIN,
            "type": "aws:rds/cluster:Cluster",
            "inputs": {"name": "db", "users": [{"password": SECRET}], "token": PLAIN},
            "outputs": {"endpoint": "db.example", "password": SECRET},
        },
        {"urn": f"{URN}aws:s3/bucket:Bucket::old", "type": "aws:s3/bucket:Bucket", "delete": True},
    ]
    return {"version": 3, "deployment": {"resources": resources, "secrets_providers": {"type": "x"}, **more}}


def test_secrets_are_left_out_and_their_places_kept() -> None:
    found = of_export(export(pending_operations=[{"type": "creating"}]))
    assert found and (found.stack, found.project, found.resources) == ("acme-dev", "acme", 3)
    assert "canary" not in json.dumps(found.deployment)
    assert found.secrets[LOGIN] == ("users[0].password", "token")
    assert {"secrets_providers", "pending_operations"}.isdisjoint(found.deployment)
    assert "db.example" in json.dumps(found.deployment)


def test_providers_have_the_installed_version() -> None:
    found = of_export(export())
    assert found
    provider = found.deployment["resources"][1]
    assert provider["inputs"]["version"] == provider["outputs"]["version"] == sdk_version("aws")


def test_secret_outputs_of_google_cloud_have_the_form_that_programs_read() -> None:
    database = {
        "urn": f"{URN}gcp:sql/databaseInstance:DatabaseInstance::db",
        "type": "gcp:sql/databaseInstance:DatabaseInstance",
        "outputs": {"serverCaCerts": SECRET, "effectiveLabels": SECRET, "pulumiLabels": {"a": "b"}},
    }
    found = of_export({"deployment": {"resources": [database]}})
    assert found
    outputs = found.deployment["resources"][0]["outputs"]
    assert outputs.keys() == {"serverCaCerts", "pulumiLabels"}
    assert "cert" in json.loads(outputs["serverCaCerts"]["plaintext"])[0]


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[]",
        "{}",
        '{"deployment": null}',
        '{"deployment": {"resources": []}}',
        '{"deployment": {"resources": [1]}}',
        '{"deployment": {"resources": [{"urn": "x"}]}}',
        json.dumps(
            {"deployment": {"resources": [{"urn": f"{URN}a::b"}, {"urn": "urn:pulumi:b::acme::a::b"}]}}
        ),
    ],
)
def test_a_file_that_is_no_state_of_one_stack_is_refused(content: str, tmp_path: Path) -> None:
    (tmp_path / "state.json").write_text(content)
    with pytest.raises(UserError) as refused:
        of_file(tmp_path / "state.json")
    (problem,) = refused.value.problems
    assert problem.code in {"state-file-invalid", "state-file-unreadable"}


def step(operation: str, kind: str, name: str, *changed: str, retained: bool = False) -> PlannedStep:
    return PlannedStep(operation, kind, name, changed, {}, {}, retained)


def test_the_end_of_data_needs_an_approval_by_name() -> None:
    bucket, files = "aws:s3/bucket:Bucket", "aws:efs/fileSystem:FileSystem"
    steps = [
        step("replace", bucket, "runs", "bucket"),
        step("delete", files, "homes"),
        step("delete", bucket, "left", retained=True),
        step("replace", "aws:iam/role:Role", "role", "name"),
        step("update", bucket, "tags", "tags"),
    ]
    replay = Replay("acme-dev", 9, steps[3:4], steps)
    assert replay.approvals == ["acme-dev:replace:runs", "acme-dev:delete:homes"]
    assert replay.missing(["acme-dev:replace:runs", "acme-prod:delete:homes"]) == ["acme-dev:delete:homes"]
    assert [one.name for one in replay.pending] == ["role"]
    assert counts(replay.caused) == {"create": 0, "update": 1, "replace": 1, "delete": 2}
    assert [kind for kind, _ in replay.effects] == ["data is deleted", "data is deleted", "data stays"]


def test_steps_that_only_a_secret_causes_are_unknown() -> None:
    secrets = {LOGIN: ("users[0].password", "token")}
    kind = "aws:rds/cluster:Cluster"
    only, also = step("update", kind, "db", "token"), step("update", kind, "db", "token", "name")
    assert without_secrets([only], secrets) == ([], ["db"])
    assert without_secrets([also], secrets) == ([also], [])
    below = step("replace", kind, "db", "users[0].password.length")
    assert without_secrets([below, step("create", kind, "new")], secrets)[1] == ["db"]


def test_resources_of_unknown_types_are_counted_and_nothing_refers_to_them() -> None:
    picture, dynamic = "docker:index/image:Image", "pulumi-python:dynamic:Resource"
    image, docker = f"{URN}{picture}::web", f"{URN}pulumi:providers:docker::default_4_5_0"
    queue, nothing = f"{URN}aws:sqs/queue:Queue::jobs", f"{URN}aws:old/thing:Thing::thing"
    made, component = {"custom": True, "id": "x"}, f"{URN}my:index:App::app"
    rows = [
        {"urn": component, "type": "my:index:App"},
        {"urn": docker, "type": "pulumi:providers:docker", **made},
        {"urn": image, "type": picture, "parent": component, "provider": f"{docker}::x", **made},
        {"urn": nothing, "type": "aws:old/thing:Thing", "parent": image, **made},
        {
            "urn": queue, "type": "aws:sqs/queue:Queue", "parent": nothing, "deletedWith": image, **made,
            "dependencies": [image, component],
            "propertyDependencies": {"name": [image], "tags": [component]},
        },
        {"urn": f"{URN}{dynamic}::own", "type": dynamic, **made},
    ]  # fmt: skip
    state = of_export({"deployment": {"resources": rows}})
    assert state
    found = emulated(state)
    assert found.unknown == {"aws:old/thing:Thing": 1, "docker:index/image:Image": 1}
    assert found.resources == 3
    (left,) = (one for one in found.deployment["resources"] if one["urn"] == queue)
    assert left["parent"] == component and "deletedWith" not in left
    assert left["dependencies"] == [component]
    assert left["propertyDependencies"] == {"name": [], "tags": [component]}
