"""Checkpoints stay, reads of datasets are written down, budgets see machines: in every way of saying it."""

from typing import Any

import pytest

from policies.resource import Resource
from tests.policies.rules.kubernetes.test_pods import results

ARN = "arn:aws:s3:::vision-datasets"


def s3(name: str, **props: Any) -> Resource:
    kind = "aws:s3/bucketV2:BucketV2"
    return Resource(kind, name, name, id=name, props={"bucket": name, "arn": f"arn:aws:s3:::{name}", **props})


def about(kind: str, bucket: str, **props: Any) -> Resource:
    token = f"aws:s3/{kind[0].lower()}{kind[1:]}:{kind}"
    return Resource(token, kind, kind, props={"bucket": bucket, **props})


VERSIONS = about("BucketVersioning", "ckpt", versioningConfiguration={"status": "Enabled"})


LATER = {"noncurrentVersionExpiration": {"noncurrentDays": 2}}


def rules(*found: Any) -> Resource:
    enabled = [{"status": "Enabled", **rule} for rule in found]
    return about("BucketLifecycleConfiguration", "ckpt", rules=enabled)


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        ([rules({"expiration": {"days": 14}})], "pass"),
        ([rules({"expiration": {"days": 13}})], "fail"),
        ([rules({"expiration": {"days": 3}, "status": "Disabled"})], "pass"),
        ([rules({"expiration": {"days": 3}}), VERSIONS], "pass"),
        ([rules({"expiration": {"days": 3}}, LATER), VERSIONS], "fail"),
        ([], "pass"),
    ],
)
def test_checkpoints_stay(found: list[Resource], expected: str) -> None:
    assert results("MLS-STO-12", s3("ckpt"), *found) == {expected}


def test_rules_within_the_bucket_count() -> None:
    inline = [{"enabled": True, "expirations": [{"days": 3}]}]
    assert results("MLS-STO-12", s3("ckpt", lifecycleRules=inline)) == {"fail"}
    assert results("MLS-STO-12", s3("ckpt", lifecycleRules=inline, versionings=[{"enabled": True}])) == {
        "pass"
    }
    assert results("MLS-STO-12", s3("models", lifecycleRules=inline)) == {"not-applicable"}


def trail(**props: Any) -> Resource:
    return Resource("aws:cloudtrail/trail:Trail", "trail", "trail", props=props)


def events(*values: str, kind: str = "All") -> Any:
    return [{"readWriteType": kind, "dataResources": [{"type": "AWS::S3::Object", "values": values}]}]


def chosen(**more: Any) -> Any:
    fields = [{"field": "resources.type", "equals": ["AWS::S3::Object"]}]
    return [{"fieldSelectors": [*fields, *({"field": key, **said} for key, said in more.items())]}]


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        ([trail(eventSelectors=events("arn:aws:s3"))], "pass"),
        ([trail(eventSelectors=events(f"{ARN}/"))], "pass"),
        ([trail(eventSelectors=events(f"{ARN}/", kind="WriteOnly"))], "fail"),
        ([trail(eventSelectors=events("arn:aws:s3:::other/"))], "fail"),
        ([trail(eventSelectors=events("arn:aws:s3"), enableLogging=False)], "fail"),
        ([trail(advancedEventSelectors=chosen())], "pass"),
        ([trail(advancedEventSelectors=chosen(readOnly={"equals": ["false"]}))], "fail"),
        ([trail(advancedEventSelectors=chosen(**{"resources.ARN": {"startsWiths": [f"{ARN}/"]}}))], "pass"),
        ([about("BucketLoggingV2", "vision-datasets", targetBucket="logs")], "pass"),
        ([about("BucketLogging", "other", targetBucket="logs")], "fail"),
    ],
)
def test_reads_are_written_down(found: list[Resource], expected: str) -> None:
    assert results("MLS-STO-13", s3("vision-datasets"), *found) == {expected}


def test_google_writes_reads_down_where_an_audit_configuration_says_so() -> None:
    bucket = Resource("gcp:storage/bucket:Bucket", "b", "b", props={"name": "datasets"})
    config = {"service": "storage.googleapis.com", "auditLogConfigs": [{"logType": "DATA_READ"}]}
    audit = Resource("gcp:projects/iAMAuditConfig:IAMAuditConfig", "a", "a", props=config)
    assert results("MLS-STO-13", bucket, audit) == {"pass"}
    assert results("MLS-STO-13", bucket) == {"fail"}
    # Members that any configuration exempts leave no log.
    exempt = {"logType": "DATA_READ", "exemptedMembers": ["serviceAccount:a@p.iam.gserviceaccount.com"]}
    every = {"service": "allServices", "auditLogConfigs": [exempt]}
    other = Resource("gcp:projects/iAMAuditConfig:IAMAuditConfig", "e", "e", props=every)
    assert results("MLS-STO-13", bucket, other) == {"fail"}
    assert results("MLS-STO-13", bucket, audit, other) == {"fail"}


def budget(*filters: Any, **props: Any) -> Resource:
    said = {"budgetType": "COST", "costFilters": list(filters), **props}
    return Resource("aws:budgets/budget:Budget", "budget", "budget", props=said)


def tagged(*values: str) -> Any:
    return {"name": "TagKeyValue", "values": list(values)}


POOL = Resource("aws:eks/nodeGroup:NodeGroup", "pool", "pool", props={"clusterName": "train"})


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        ([budget()], "pass"),
        ([budget(tagged("aws:eks:cluster-name$train"))], "pass"),
        ([budget(tagged("aws:eks:cluster-name$other"))], "fail"),
        ([budget(tagged("user:stack$train"))], "fail"),
        ([budget(tagged("user:stack$train")), budget()], "pass"),
        ([budget({"name": "Service", "values": ["Amazon Simple Storage Service"]})], "fail"),
        ([budget(budgetType="USAGE")], "fail"),
        ([budget(filterExpression={"tags": {"key": "stack"}})], "undetermined"),
        ([], "not-applicable"),
    ],
)
def test_budgets_see_machines(found: list[Resource], expected: str) -> None:
    assert results("MLS-COST-09", POOL, *found) == {expected}


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ({"chart": "kueue", "version": "0.19.2"}, "pass"),
        ({"chart": "kueue", "version": "v0.5.30"}, "pass"),
        ({"chart": "kueue"}, "fail"),
        ({"chart": "kueue", "version": "~0.19.2"}, "fail"),
        ({"chart": "./charts/own"}, "not-applicable"),
        (None, "not-applicable"),
    ],
)
def test_a_chart_has_a_version(asked: Any, expected: str) -> None:
    taken = {"chart": "kueue", "version": "0.19.2"}
    release = Resource("kubernetes:helm.sh/v3:Release", "r", "r", props=taken, asked=asked)
    assert results("MLS-K8S-11", release) == {expected}
