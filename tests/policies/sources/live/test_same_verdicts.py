"""Recorded states, made again in an emulated account: a rule says of both the same."""

import datetime
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from infra.collect.aws import collect
from policies.evaluate import Outcome, evaluate
from policies.rules import CATALOGUE
from policies.settings import Settings
from policies.sources import state
from policies.sources.live.records import account
from policies.stack import Stack
from tests.infra.collect.cloud import REGION, Account, emulated
from tests.policies.recording.example import recorded, rule_of

SETTINGS = Settings(today=datetime.date(2026, 11, 23))
BUCKET = "aws:s3/bucket:Bucket"


def _bucket(service: Any, one: Mapping[str, Any]) -> str:
    service("s3").create_bucket(Bucket=one["bucket"])
    tags = [{"Key": key, "Value": value} for key, value in (one.get("tags") or {}).items()]
    if tags:
        service("s3").put_bucket_tagging(Bucket=one["bucket"], Tagging={"TagSet": tags})
    return str(one["bucket"])


def _versioning(service: Any, one: Mapping[str, Any]) -> str:
    status = {"Status": one["versioningConfiguration"]["status"]}
    service("s3").put_bucket_versioning(Bucket=one["bucket"], VersioningConfiguration=status)
    return str(one["bucket"])


def _blocks(service: Any, one: Mapping[str, Any]) -> str:
    names = ("blockPublicAcls", "blockPublicPolicy", "ignorePublicAcls", "restrictPublicBuckets")
    given = {f"{name[0].upper()}{name[1:]}": one.get(name, False) for name in names}
    service("s3").put_public_access_block(Bucket=one["bucket"], PublicAccessBlockConfiguration=given)
    return str(one["bucket"])


def _lifecycle(service: Any, one: Mapping[str, Any]) -> str:
    rules = []
    for rule in one["rules"]:
        made = {"ID": rule["id"], "Status": rule["status"]}
        made["Filter"] = {"Prefix": (rule.get("filter") or {}).get("prefix", "")}
        if "abortIncompleteMultipartUpload" in rule:
            days = rule["abortIncompleteMultipartUpload"]["daysAfterInitiation"]
            made["AbortIncompleteMultipartUpload"] = {"DaysAfterInitiation": days}
        if "expiration" in rule:
            made["Expiration"] = {"Days": rule["expiration"]["days"]}
        if "noncurrentVersionExpiration" in rule:
            days = rule["noncurrentVersionExpiration"]["noncurrentDays"]
            made["NoncurrentVersionExpiration"] = {"NoncurrentDays": days}
        rules.append(made)
    given = {"Rules": rules}
    service("s3").put_bucket_lifecycle_configuration(Bucket=one["bucket"], LifecycleConfiguration=given)
    return str(one["bucket"])


def _volume(service: Any, one: Mapping[str, Any]) -> str:
    given = {"AvailabilityZone": one["availabilityZone"], "Size": one["size"], "VolumeType": one["type"]}
    return str(service("ec2").create_volume(**given)["VolumeId"])


def _log_group(service: Any, one: Mapping[str, Any]) -> str:
    service("logs").create_log_group(logGroupName=one["name"])
    if one.get("retentionInDays"):
        given = {"logGroupName": one["name"], "retentionInDays": one["retentionInDays"]}
        service("logs").put_retention_policy(**given)
    return str(one["name"])


def _policy(service: Any, one: Mapping[str, Any]) -> str:
    made = service("iam").create_policy(PolicyName=one["name"], PolicyDocument=one["policy"])
    return str(made["Policy"]["Arn"])


def _repository(service: Any, one: Mapping[str, Any]) -> str:
    scan = {"scanOnPush": (one.get("imageScanningConfiguration") or {}).get("scanOnPush", False)}
    service("ecr").create_repository(
        repositoryName=one["name"],
        imageTagMutability=one.get("imageTagMutability", "MUTABLE"),
        imageScanningConfiguration=scan,
    )
    return str(one["name"])


MAKERS: Mapping[str, Callable[[Any, Mapping[str, Any]], str]] = {
    BUCKET: _bucket,
    "aws:s3/bucketVersioning:BucketVersioning": _versioning,
    "aws:s3/bucketPublicAccessBlock:BucketPublicAccessBlock": _blocks,
    "aws:s3/bucketLifecycleConfiguration:BucketLifecycleConfiguration": _lifecycle,
    "aws:ebs/volume:Volume": _volume,
    "aws:cloudwatch/logGroup:LogGroup": _log_group,
    "aws:iam/policy:Policy": _policy,
    "aws:ecr/repository:Repository": _repository,
}


def examples() -> list[str]:
    """Those of which everything can be made."""
    found = []
    for file in sorted(recorded("x").parent.glob("*.json")):
        rows = [row for kept in ("pass", "fail") for row in _rows(file, kept)]
        if rows and all(row["type"] in MAKERS for row in rows):
            found.append(file.name.removesuffix(".json"))
    return found


def _rows(file: Path, verdict: str) -> list[Any]:
    rows = json.loads(file.read_text())[verdict]["deployment"]["resources"]
    return [row for row in rows if not row["type"].startswith("pulumi:")]


EXAMPLES = examples()


def test_the_kinds_that_can_be_made_are_of_several_groups() -> None:
    assert {key.split("-")[1] for key in EXAMPLES} >= {"COST", "IAM", "REP", "STO", "TAG"}


@pytest.mark.parametrize("verdict", ["pass", "fail"])
@pytest.mark.parametrize("key", EXAMPLES)
def test_a_rule_says_of_an_account_what_it_says_of_the_state(key: str, verdict: str, tmp_path: Path) -> None:
    file = tmp_path / "state.json"
    file.write_text(json.dumps(json.loads(recorded(key).read_text())[verdict]))
    kept, rule = state.read(file), CATALOGUE.rules[rule_of(key)]
    with emulated() as service:
        ids = {(one.kind, MAKERS[one.kind](service, one.props)): one.urn for one in kept}
        told = account(collect(REGION, Account()))
    by_state = _results(evaluate(Stack(kept, SETTINGS), [rule]), {(o.kind, o.id): o.urn for o in kept})
    by_account = _results(evaluate(Stack(told.resources, SETTINGS, told.coverage), [rule]), ids)
    assert by_account.keys() >= by_state.keys()
    for urn, results in by_state.items():
        assert by_account[urn] == results


def _results(outcomes: list[Outcome], ids: Mapping[tuple[str, Any], str]) -> dict[str, set[str]]:
    """By URN, without what the account has besides."""
    found: dict[str, set[str]] = {}
    for one in outcomes:
        urn = ids.get((one.resource.kind, one.resource.id), "") if one.resource else "the stack"
        if urn:
            found.setdefault(urn, set()).add(one.result)
    return found
