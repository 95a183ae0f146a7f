"""`trainstack collect`, and `trainstack audit` of an account: now, or from what was collected."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from infra.clouds.aws import login as aws_login
from infra.errors import UserError
from tests.policies.problems import rejected
from tests.trainstack.cli.command import run
from tests.trainstack.collect.cloud import REGION, Account, denied, emulated

WRITTEN = {
    "schema": "trainstack.snapshot/1", "cloud": "aws", "account": "123456789012", "region": REGION,
    "taken": "2026-11-23T20:00:00Z", "answers": {},
}  # fmt: skip


@pytest.fixture
def account(monkeypatch: pytest.MonkeyPatch) -> Iterator[Account]:
    with emulated() as service:
        service("ec2").create_volume(Size=10, AvailabilityZone="us-east-1a")
        made = Account()
        monkeypatch.setattr(aws_login, "clients", lambda attempts: made)
        yield made


def test_a_snapshot_is_judged_as_the_account_was(account: Account, tmp_path: Path) -> None:
    file = tmp_path / "snapshot.json"
    code, said = run("collect", "--live", "aws", "--region", REGION, "--out", str(file))
    assert code == 0
    assert "account 123456789012, us-east-1" in said
    code, later = run("audit", "--snapshot", str(file), "--format", "json")
    now, live = run("audit", "--live", "aws", "--region", REGION, "--format", "json")
    assert code == now == 3
    outcomes = json.loads(later)["outcomes"]
    assert outcomes == json.loads(live)["outcomes"]
    failed = {(one["rule"], one["kind"]) for one in outcomes if one["result"] == "fail" and "kind" in one}
    assert ("MLS-STO-09", "aws:ebs/volume:Volume") in failed


def test_refused_requests_are_reported_and_undetermined(account: Account, tmp_path: Path) -> None:
    account.said |= {"budgets.DescribeBudgets": denied, "ec2.DescribeVolumes": denied}
    file = tmp_path / "snapshot.json"
    _, said = run("collect", "--live", "aws", "--region", REGION, "--out", str(file))
    assert {"budgets:ViewBudget", "ec2:DescribeVolumes", "(AccessDeniedException)"} <= {*said.split()}
    _, found = run("audit", "--snapshot", str(file), "--format", "json")
    of_volumes = [one for one in json.loads(found)["outcomes"] if one["rule"] == "MLS-COST-06"]
    assert [one["result"] for one in of_volumes] == ["undetermined"]
    assert "ec2:DescribeVolumes" in of_volumes[0]["message"]


def test_an_account_needs_credentials_and_a_region(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in (
        "AWS_ACCESS_KEY_ID",
        "AWS_SECRET_ACCESS_KEY",
        "AWS_PROFILE",
        "AWS_DEFAULT_REGION",
        "AWS_REGION",
    ):
        monkeypatch.delenv(name, raising=False)
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "none"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    for options, problem in (
        (("--region", REGION), ("logged-out", "credentials")),
        ((), ("region-missing", "--region")),
    ):
        with pytest.raises(UserError) as caught:
            run("audit", "--live", "aws", *options)
        assert caught.value.codes == (problem,)


def test_a_place_is_one_of_what_is_asked() -> None:
    for words in (
        ("audit", "--live", "kubernetes", "--region", REGION),
        ("collect", "--live", "aws", "--context", "dev", "--out", "x"),
    ):
        with pytest.raises(UserError) as caught:
            run(*words)
        assert caught.value.codes == (("option-of-another-cloud", words[3]),)


def test_what_a_cluster_has_beside_a_state_is_not_imported(tmp_path: Path) -> None:
    state, snapshot, imports = (tmp_path / name for name in ("state.json", "snapshot.json", "import.json"))
    row = {"urn": "urn:pulumi:dev::app::kubernetes:core/v1:Namespace::a", "custom": True, "id": "a"}
    state.write_text(json.dumps({"version": 3, "deployment": {"resources": [row]}}))
    snapshot.write_text(json.dumps({**WRITTEN, "cloud": "kubernetes"}))
    words = ("audit", "--state", str(state), "--snapshot", str(snapshot))
    with pytest.raises(UserError) as caught:
        run(*words, "--import-file", str(imports))
    assert caught.value.codes == (("import-file-without-stack", "--import-file"),)
    assert not imports.exists()
    assert run(*words)[0] == 4


@pytest.mark.parametrize(
    ("content", "code", "path"),
    [
        (json.dumps(WRITTEN)[:-20], "input-file-invalid-json", ""),
        ('{"version": 3, "deployment": {}}', "snapshot-is-a-state", ""),
        ('{"schema": "other/1"}', "snapshot-unknown-format", ""),
        ({"schema": "trainstack.snapshot/2"}, "snapshot-unsupported-version", "schema"),
        ({"cloud": "other"}, "snapshot-unknown-cloud", "cloud"),
        ({"account": 1}, "file-value-wrong-type", "account"),
        ({"answers": {"a": {"items": [{}]}}}, "file-value-wrong-type", "answers.a.items[0]"),
        ({"answers": {"a": {"refusals": [{"code": 1}]}}}, "file-value-wrong-type",
         "answers.a.refusals[0].code"),
    ],
)  # fmt: skip
def test_a_file_that_is_no_snapshot_is_refused(
    tmp_path: Path, content: str | dict[str, Any], code: str, path: str
) -> None:
    file = tmp_path / "snapshot.json"
    file.write_text(content if isinstance(content, str) else json.dumps({**WRITTEN, **content}))
    with pytest.raises(UserError) as caught:
        run("audit", "--snapshot", str(file))
    assert (code, f"{file}: {path}" if path else str(file)) in caught.value.codes


def test_a_snapshot_that_lacks_answers_is_undetermined(tmp_path: Path) -> None:
    """One of another trainstack may not have asked what this one reads: that is no pass."""
    file = tmp_path / "snapshot.json"
    file.write_text(json.dumps(WRITTEN))
    code, found = run("audit", "--snapshot", str(file), "--format", "json")
    assert code == 4
    assert {one["result"] for one in json.loads(found)["outcomes"]} == {"undetermined", "not-applicable"}


def test_a_snapshot_that_cannot_be_written_leaves_nothing(account: Account, tmp_path: Path) -> None:
    with rejected("output-file-unwritable"):
        run("collect", "--live", "aws", "--region", REGION, "--out", str(tmp_path / "none" / "snapshot.json"))


def test_one_source_is_needed(tmp_path: Path) -> None:
    with rejected("audit-needs-one-source"):
        run("audit", "--snapshot", str(tmp_path / "a"), "--preview", str(tmp_path / "b"))
