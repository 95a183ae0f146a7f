"""Exports of stacks: what becomes of their resources, and files that are none."""

import datetime
import json
from pathlib import Path
from typing import Any

import pytest

from infra.errors import UserError
from policies.resource import Resource, UndeterminedError, is_unknown
from policies.sources import files, state
from tests.policies.problems import rejected

KEY = "4dabf18193072939515e22adb298388d"
SECRET = {KEY: "1b47061264138c4ac30d75fd1eb44270", "ciphertext": "v1:abc"}
SHOWN = {KEY: "1b47061264138c4ac30d75fd1eb44270", "plaintext": '"hunter2"'}
URN = "urn:pulumi:dev::app::"
PROVIDER = f"{URN}pulumi:providers:aws::default"


def row(name: str, /, **more: Any) -> dict[str, Any]:
    token = "aws:s3/bucket:Bucket"
    made = {
        "urn": f"{URN}{token}::{name}",
        "type": token,
        "custom": True,
        "id": name,
        "inputs": {},
        "outputs": {},
    }
    return {**made, **more}


def provider(**inputs: Any) -> dict[str, Any]:
    return {"urn": PROVIDER, "type": "pulumi:providers:aws", "custom": True, "id": "1", "inputs": inputs}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "state.json"


def read(file: Path, *rows: Any) -> list[Resource]:
    file.write_text(json.dumps({"version": 3, "deployment": {"resources": rows}}))
    return state.read(file)


def test_outputs_come_before_inputs_and_inputs_where_there_are_none(file: Path) -> None:
    (found,) = read(file, row("b", inputs={"a": 1, "b": 1}, outputs={"b": 2, "__defaults": []}))
    assert found.props == {"a": 1, "b": 2}
    assert (found.kind, found.name, found.id, found.origin) == ("aws:s3/bucket:Bucket", "b", "b", "state")


def test_place_account_and_tags_come_from_the_provider_too(file: Path) -> None:
    own = provider(region="eu-west-1", allowedAccountIds='["1234"]', defaultTags='{"tags": {"owner": "me"}}')
    tagged = row("b", provider=f"{PROVIDER}::1", inputs={"tags": {"a": "b"}})
    (found,) = read(file, own, tagged)
    assert (found.region, found.account, found.tags) == ("eu-west-1", "1234", {"owner": "me", "a": "b"})
    arn = "arn:aws:eks:us-east-2:77:cluster/x"
    (found,) = read(
        file, own, {**tagged, "outputs": {"region": "us-east-2", "arn": arn, "tagsAll": {"c": "d"}}}
    )
    assert (found.region, found.account, found.tags) == ("us-east-2", "77", {"c": "d"})


@pytest.mark.parametrize("value", [SECRET, SHOWN, "[secret]"])
def test_secrets_are_not_known_whatever_the_export_shows(file: Path, value: Any) -> None:
    (found,) = read(file, row("b", outputs={"policy": value, "below": {"list": [value]}}))
    with pytest.raises(UndeterminedError, match="policy is a"):
        found.props.get("policy")
    assert is_unknown(found.props["below"]["list"][0])
    assert "hunter2" not in repr(found)


def test_values_in_a_form_of_the_future_are_not_known(file: Path) -> None:
    (found,) = read(file, row("b", outputs={"x": {KEY: "of tomorrow", "value": 1}}))
    with pytest.raises(UndeterminedError, match="a format that"):
        found.props.get("x")


def test_what_the_engine_noted_of_the_last_change_is_kept(file: Path) -> None:
    noted = {"initErrors": ["timed out"], "modified": "2026-11-23T21:00:00.123456789+01:00"}
    (found,) = read(file, row("b", **noted))
    assert found.init_errors == ("timed out",)
    assert found.modified == datetime.datetime(2026, 11, 23, 20, 0, 0, 123456, tzinfo=datetime.UTC)


def test_what_is_no_resource_of_a_cloud_is_left_out(file: Path) -> None:
    component = {"urn": f"{URN}app:index:Thing::t", "type": "app:index:Thing"}
    assert [one.name for one in read(file, provider(), component, row("gone", delete=True), row("b"))] == [
        "b"
    ]


def test_kind_and_name_come_from_the_urn_with_its_parents(file: Path) -> None:
    urn = f"{URN}app:index:Thing$aws:s3/bucket:Bucket::a::b"
    (found,) = read(file, {"urn": urn, "custom": True})
    assert (found.kind, found.name) == ("aws:s3/bucket:Bucket", "a::b")


BAD: dict[str, tuple[bytes, str]] = {
    "empty": (b" \n", "input-file-empty"),
    "truncated": (b'{"version": 3, "deployment": {"resources": [{"urn"', "input-file-invalid-json"),
    "text": (b"Updating (dev)\n", "input-file-invalid-json"),
    "bytes": (b"\xff\xff\xfe", "input-file-not-text"),
    "foreign": (b'{"terraform_version": "1.5", "resources": []}', "state-unknown-format"),
    "a list": (b"[]", "state-unknown-format"),
    "a preview": (b'{"steps": []}', "state-is-a-preview"),
    "of the past": (b'{"version": 2, "deployment": {}}', "state-unsupported-version version"),
    "of the future": (b'{"version": 5, "deployment": {}}', "state-unsupported-version version"),
    "no version": (b'{"version": true, "deployment": {}}', "state-unsupported-version version"),
    "wrong deployment": (b'{"version": 3, "deployment": 7}', "file-value-wrong-type deployment"),
    "wrong list": (
        b'{"version": 3, "deployment": {"resources": {}}}',
        "file-value-wrong-type deployment.resources",
    ),
    "deep": (
        b'{"version": 3, "deployment": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        "input-file-nested-too-deeply",
    ),
    "nothing": (b'{"version": 3, "deployment": {"resources": []}}', "source-without-resources"),
    "null": (b'{"version": 3, "deployment": null}', "source-without-resources"),
}


@pytest.mark.parametrize("kind", BAD)
def test_files_that_are_no_state(file: Path, kind: str) -> None:
    content, problem = BAD[kind]
    file.write_bytes(content)
    code, _, path = problem.partition(" ")
    with rejected(code, f"state.json: {path}" if path else "state.json"):
        state.read(file)


_TYPE = "file-value-wrong-type"
WRONG: dict[str, tuple[Any, str, str]] = {
    "no object": (7, _TYPE, ""),
    "no urn": ({"type": "x"}, "state-invalid-urn", ".urn"),
    "urn": (row("b", urn=3), _TYPE, ".urn"),
    "inputs": (row("b", inputs=[]), _TYPE, ".inputs"),
    "delete": (row("b", delete="no"), _TYPE, ".delete"),
    "dependencies": (row("b", dependencies=[1]), _TYPE, ".dependencies"),
    "errors": (row("b", initErrors="no"), _TYPE, ".initErrors"),
    "time": (row("b", modified="yesterday"), "state-invalid-time", ".modified"),
    "of properties": (row("b", propertyDependencies={"a": "b"}), _TYPE, ".propertyDependencies.a"),
}


@pytest.mark.parametrize("kind", WRONG)
def test_rows_that_are_no_resource_are_named(file: Path, kind: str) -> None:
    bad, code, path = WRONG[kind]
    with pytest.raises(UserError) as caught:
        read(file, row("a"), bad)
    assert (code, f"{file}: deployment.resources[1]{path}") in caught.value.codes


def test_every_wrong_row_is_named_at_once(file: Path) -> None:
    with pytest.raises(UserError) as error:
        read(file, 1, 2, 3)
    assert len(error.value.problems) == 3


def test_a_value_nested_more_deeply_than_python_can_follow(file: Path) -> None:
    deep = "[" * 900 + "]" * 900
    made = json.dumps(row("b", inputs={"x": "DEEP"})).replace('"DEEP"', deep)
    file.write_text('{"version": 3, "deployment": {"resources": [' + made + "]}}")
    with rejected("input-file-nested-too-deeply"):
        state.read(file)


def test_a_file_that_is_too_large_is_not_parsed(file: Path) -> None:
    with file.open("wb") as stream:
        stream.truncate(files.MOST_BYTES + 1)
    with rejected("input-file-too-large"):
        state.read(file)


@pytest.mark.parametrize("name", ["missing.json", "."])
def test_a_path_without_a_file(tmp_path: Path, name: str) -> None:
    with rejected("input-file-unreadable"):
        state.read(tmp_path / name)


def test_empty_can_be_allowed(file: Path) -> None:
    file.write_text('{"version": 3, "deployment": {}}')
    assert state.read(file, allow_empty=True) == []
