"""Snapshots of AWS accounts: pages, errors and redaction."""

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from botocore.awsrequest import AWSResponse

from infra.clouds.aws import login as aws_login
from infra.clouds.aws.login import LoggedOutError
from policies.sources.live import snapshot
from policies.sources.live.records import account
from policies.sources.live.tables import tables
from tests.trainstack.collect.cloud import KEYS, REGION, Account, denied, emulated
from trainstack.collect.aws.account import collect
from trainstack.collect.redaction import redacted

BUCKET = "train-checkpoints"


@pytest.fixture
def service() -> Iterator[Callable[[str], Any]]:
    with emulated() as made:
        yield made


def kinds(found: snapshot.Snapshot) -> set[str]:
    return {one.kind for one in account(found).resources}


def test_a_snapshot_has_the_resources_of_an_account(service: Any, tmp_path: Path) -> None:
    service("s3").create_bucket(Bucket=BUCKET)
    service("s3").put_bucket_versioning(Bucket=BUCKET, VersioningConfiguration={"Status": "Enabled"})
    service("ec2").create_volume(Size=10, AvailabilityZone="us-east-1a", Encrypted=True)
    found = collect(REGION, Account())
    assert (found.cloud, found.account, found.region) == ("aws", "123456789012", REGION)
    file = tmp_path / "snapshot.json"
    snapshot.write(found, file)
    assert file.stat().st_mode & 0o777 == 0o600
    assert [one.name for one in tmp_path.iterdir()] == ["snapshot.json"]
    again = snapshot.read(file)
    assert kinds(again) == kinds(found) >= {"aws:ebs/volume:Volume", "aws:s3/bucket:Bucket"}
    assert not account(again).coverage.refused
    (volume,) = [one for one in account(again).resources if one.kind == "aws:ebs/volume:Volume"]
    assert volume.props["encrypted"] is True
    assert volume.region == REGION


def test_answers_of_several_pages_are_whole(service: Any) -> None:
    """By a paginator of the SDK (logs: 50 a page), and by a token where it has none (FSx)."""
    for number in range(60):
        service("logs").create_log_group(logGroupName=f"/train/{number:02}")
    tokens = []

    def associations(params: Mapping[str, Any]) -> Any:
        given = json.loads(params["body"]).get("NextToken", "")
        tokens.append(given)
        rows = [{"AssociationId": f"dra-{len(tokens)}", "FileSystemId": "fs-1"}]
        return 200, {"Associations": rows, **({} if len(tokens) == 3 else {"NextToken": f"t{len(tokens)}"})}

    found = collect(REGION, Account({"fsx.DescribeDataRepositoryAssociations": associations}))
    assert len(found.answers["logs.DescribeLogGroups"].items) == 60
    assert tokens == ["", "t1", "t2"]
    assert len(found.answers["fsx.DescribeDataRepositoryAssociations"].items) == 3


def test_what_is_refused_is_written_down_with_the_right_that_it_takes(service: Any) -> None:
    """Of every question that is not about the items of another."""
    asked = [one for one in tables("aws").queries.values() if not one.of]
    found = collect(REGION, Account({one.name.partition("/")[0]: denied for one in asked}))
    for question in asked:
        answered = found.answers[question.name]
        assert not answered.items
        (refusal,) = answered.refusals
        assert refusal.code == "AccessDeniedException"
        assert refusal.action.count(":") == 1
    assert account(found).resources == []


@pytest.mark.parametrize(
    "refused", ["s3.GetBucketVersioning", "s3.GetBucketLogging", "s3.GetPublicAccessBlock"]
)
def test_what_is_refused_of_one_bucket_is_known_of_others(service: Any, refused: str) -> None:
    service("s3").create_bucket(Bucket=BUCKET)
    service("s3").create_bucket(Bucket="other")

    def answer(params: Mapping[str, Any]) -> Any:
        if BUCKET in params["url"]:
            return 403, {"Error": {"Code": "AccessDenied", "Message": "Access Denied"}}
        return 200, {}

    found = account(collect(REGION, Account({refused: answer})))
    (kind,) = found.coverage.refused
    assert found.coverage.gap(kind, BUCKET)
    assert not found.coverage.gap(kind, "other")


def test_an_item_without_a_parameter_is_not_asked_about(service: Any) -> None:
    """Of node groups, only those with a launch template are asked for the version that they run."""

    def groups(params: Mapping[str, Any]) -> Any:
        name = params["url_path"].rpartition("/")[2]
        own = {"launchTemplate": {"id": "lt-1", "version": "2"}} if name == "own" else {}
        return 200, {"nodegroup": {"nodegroupName": name, "clusterName": "dev", **own}}

    said = {
        "eks.ListClusters": lambda _: (200, {"clusters": ["dev"]}),
        "eks.ListNodegroups": lambda _: (200, {"nodegroups": ["own", "plain"]}),
        "eks.DescribeNodegroup": groups,
        "ec2.DescribeLaunchTemplateVersions": lambda params: (200, {"LaunchTemplateVersions": [
            {"LaunchTemplateId": params["body"]["LaunchTemplateId"], "VersionNumber": 2}
        ]}),
    }  # fmt: skip
    answered = collect(REGION, Account(said)).answers["ec2.DescribeLaunchTemplateVersions/running"]
    (item,) = answered.items
    assert item.asked == {"LaunchTemplateId": "lt-1", "Versions": ["2"]}
    assert not answered.refusals


def test_what_is_gone_between_two_questions_is_no_refusal(service: Any) -> None:
    service("s3").create_bucket(Bucket=BUCKET)
    gone = {"Error": {"Code": "NoSuchBucket", "Message": "gone"}}
    found = collect(REGION, Account({"s3.GetBucketVersioning": lambda _: (404, gone)}))
    assert not found.answers["s3.GetBucketVersioning"].refusals


def test_a_question_is_asked_again_where_it_was_throttled(
    service: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The SDK waits longer each time; the waits are left out here."""
    waits: list[float] = []
    # Its own clock: other threads of this process go on sleeping.
    clock = SimpleNamespace(sleep=waits.append)
    monkeypatch.setattr("botocore.endpoint.time", clock)
    for name, value in KEYS.items():
        monkeypatch.setenv(name.upper(), value)
    refusals = iter(range(5))
    asked = Account()

    def clients(name: str, region: str) -> Any:
        client = asked(name, region) if name != "kms" else aws_login.clients(10)(name, region)
        if name == "kms":
            client.meta.events.register_first("before-send.kms.ListKeys", throttle)
        return client

    def throttle(request: Any, **_: Any) -> Any:
        if next(refusals, None) is None:
            return None
        body = b'{"__type": "ThrottlingException", "message": "Rate exceeded"}'
        raw = type("Raw", (), {"stream": lambda self, **_: iter([body])})()
        return AWSResponse(request.url, 400, {"Content-Type": "application/x-amz-json-1.1"}, raw)

    service("kms").create_key()
    found = collect(REGION, clients)
    assert len(found.answers["kms.ListKeys"].items) == 1
    assert len(waits) == 5
    assert next(refusals, None) is None


@pytest.mark.parametrize("code", ["ExpiredToken", "InvalidClientTokenId"])
def test_credentials_that_end_end_the_whole(service: Any, code: str) -> None:
    expired = {"Error": {"Code": code, "Message": "The security token is expired"}}
    for operation in ("sts.GetCallerIdentity", "ec2.DescribeVolumes"):
        with pytest.raises(LoggedOutError, match=code):
            collect(REGION, Account({operation: lambda _: (403, expired)}))


def test_secrets_are_not_kept(service: Any) -> None:
    """User data of nodes; the values of secrets are not even asked for."""
    data = "IyEvYmluL2Jhc2gKZWNobyBqb2luLXRva2VuIHMzY3IzdA=="  # echo join-token s3cr3t
    service("ec2").create_launch_template(LaunchTemplateName="t", LaunchTemplateData={"UserData": data})
    service("secretsmanager").create_secret(Name="login", SecretString="s3cr3t")
    asked = Account()
    found = collect(REGION, asked)
    assert "s3cr3t" not in snapshot.document(found)
    assert data not in snapshot.document(found)
    assert {"secretsmanager.DescribeSecret"} <= {*asked.asked}
    assert "secretsmanager.GetSecretValue" not in asked.asked
    (template,) = [one for one in account(found).resources if one.kind.endswith(":LaunchTemplate")]
    assert "is not kept" in repr(template.raw("userData"))


def test_settings_lose_values_and_keep_what_rules_read() -> None:
    settings = {
        "enableNetworkPolicy": "true",
        "env": [{"name": "API_TOKEN", "value": "s3cr3t"}, {"name": "LEVEL", "value": "debug"}],
        "auth": {"password": "s3cr3t", "api-key": "s3cr3t"},
    }
    kept = redacted({"configurationValues": json.dumps(settings), "UserData": "register-with-taints=x"})
    assert json.loads(kept["configurationValues"]) == {
        "enableNetworkPolicy": "true",
        "env": [{"name": "API_TOKEN", "value": "(redacted)"}, {"name": "LEVEL", "value": "debug"}],
        "auth": {"password": "(redacted)", "api-key": "(redacted)"},
    }
    assert kept["UserData"] == {"words": ["register-with-taints"]}
    assert redacted({"configurationValues": "auth:\n  password: x"}) == {"configurationValues": "(redacted)"}
