"""Drift: changed properties are reported, equivalent values are not."""

import copy
from typing import Any

import pytest

from policies.resource import Resource
from policies.sources.live.join import joined
from policies.sources.live.queries import AnswerItem, Answers
from policies.sources.live.records import account
from policies.sources.live.snapshot import Snapshot
from policies.sources.live.tables import tables

ACCOUNT, REGION = "123456789012", "us-east-1"
KEY = f"arn:aws:kms:{REGION}:{ACCOUNT}:key/0f-1"

Case = tuple[str, str, dict[str, Any], dict[str, Any], dict[str, Any]]
"""Id, question, its parameters, what the service answers, and what the program asked for."""

INGRESS = "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule"
ENCRYPTION = "aws:s3/bucketServerSideEncryptionConfiguration:BucketServerSideEncryptionConfiguration"
NODES, TEMPLATE = "aws:eks/nodeGroup:NodeGroup", "aws:ec2/launchTemplate:LaunchTemplate"
CASES: dict[str, Case] = {
    INGRESS: (
        "sgr-1", "ec2.DescribeSecurityGroupRules", {},
        {"SecurityGroupRuleId": "sgr-1", "GroupId": "sg-1", "IsEgress": False, "IpProtocol": "tcp",
         "FromPort": 443, "ToPort": 443, "CidrIpv4": "10.0.0.0/16"},
        {"securityGroupId": "sg-1", "ipProtocol": "tcp", "fromPort": 443, "toPort": 443,
         "cidrIpv4": "10.0.0.0/16"},
    ),
    ENCRYPTION: (
        "data", "s3.GetBucketEncryption", {"Bucket": "data"},
        {"Rules": [{"ApplyServerSideEncryptionByDefault": {"SSEAlgorithm": "aws:kms", "KMSMasterKeyID": KEY},
                    "BucketKeyEnabled": True}]},
        {"bucket": "data", "rules": [
            {"applyServerSideEncryptionByDefault": {"sseAlgorithm": "aws:kms", "kmsMasterKeyId": KEY},
             "bucketKeyEnabled": True, "blockedEncryptionTypes": ["SSE-C"]}]},
    ),
    "aws:s3/bucketVersioning:BucketVersioning": (
        "data", "s3.GetBucketVersioning", {"Bucket": "data"}, {"Status": "Enabled"},
        {"bucket": "data", "versioningConfiguration": {"status": "Enabled"}},
    ),
    "aws:s3/bucketPublicAccessBlock:BucketPublicAccessBlock": (
        "data", "s3.GetPublicAccessBlock", {"Bucket": "data"},
        {"BlockPublicAcls": True, "BlockPublicPolicy": True, "IgnorePublicAcls": True,
         "RestrictPublicBuckets": True},
        {"bucket": "data", "blockPublicAcls": True, "blockPublicPolicy": True, "ignorePublicAcls": True,
         "restrictPublicBuckets": True},
    ),
    "aws:rds/instance:Instance": (
        "db", "rds.DescribeDBInstances", {},
        {"DBInstanceIdentifier": "db", "DBInstanceStatus": "available", "Engine": "postgres",
         "PubliclyAccessible": False, "StorageEncrypted": True, "KmsKeyId": KEY, "DeletionProtection": True,
         "AllocatedStorage": 100, "BackupRetentionPeriod": 7},
        {"identifier": "db", "engine": "postgres", "publiclyAccessible": False, "storageEncrypted": True,
         "kmsKeyId": KEY, "deletionProtection": True, "allocatedStorage": 100, "backupRetentionPeriod": 7,
         "skipFinalSnapshot": False},
    ),
    "aws:rds/cluster:Cluster": (
        "db", "rds.DescribeDBClusters", {},
        {"DBClusterIdentifier": "db", "Engine": "aurora-postgresql", "StorageEncrypted": True,
         "DeletionProtection": True, "BackupRetentionPeriod": 7},
        {"clusterIdentifier": "db", "engine": "aurora-postgresql", "storageEncrypted": True,
         "deletionProtection": True, "backupRetentionPeriod": 7},
    ),
    NODES: (
        "dev:gpu", "eks.DescribeNodegroup", {"clusterName": "dev", "nodegroupName": "gpu"},
        {"nodegroupName": "gpu", "clusterName": "dev", "capacityType": "ON_DEMAND", "subnets": ["subnet-a"],
         "scalingConfig": {"minSize": 0, "maxSize": 4, "desiredSize": 2},
         "nodeRepairConfig": {"enabled": True, "maxParallelNodesRepairedCount": 3},
         "launchTemplate": {"id": "lt-1", "name": "gpu", "version": "3"},
         "taints": [{"key": "nvidia.com/gpu", "effect": "NO_SCHEDULE"}]},
        {"nodeGroupName": "gpu", "clusterName": "dev", "capacityType": "ON_DEMAND",
         "subnetIds": ["subnet-a"], "scalingConfig": {"minSize": 0, "maxSize": 4, "desiredSize": 0},
         "nodeRepairConfig": {"enabled": True, "maxParallelNodesRepairedCount": 1},
         "launchTemplate": {"id": "lt-1", "version": "3"},
         "taints": [{"key": "nvidia.com/gpu", "effect": "NO_SCHEDULE"}]},
    ),
    "aws:eks/cluster:Cluster": (
        "dev", "eks.DescribeCluster", {"name": "dev"},
        {"name": "dev", "status": "ACTIVE", "deletionProtection": True,
         "resourcesVpcConfig": {"endpointPublicAccess": False, "endpointPrivateAccess": True,
                                "subnetIds": ["subnet-b", "subnet-a"]},
         "logging": {"clusterLogging": [{"types": ["api", "audit"], "enabled": True}]},
         "encryptionConfig": [{"resources": ["secrets"], "provider": {"keyArn": KEY}}]},
        {"name": "dev", "deletionProtection": True, "enabledClusterLogTypes": ["audit", "api"],
         "vpcConfig": {"endpointPublicAccess": False, "endpointPrivateAccess": True,
                       "subnetIds": ["subnet-a", "subnet-b"]},
         "encryptionConfig": {"resources": ["secrets"], "provider": {"keyArn": KEY}}},
    ),
    "aws:kms/key:Key": (
        "0f-1", "kms.DescribeKey", {"KeyId": "0f-1"},
        {"KeyId": "0f-1", "KeyManager": "CUSTOMER", "KeyState": "Enabled", "Enabled": True,
         "Description": "data"},
        {"description": "data", "isEnabled": True, "deletionWindowInDays": 30},
    ),
    "aws:cloudwatch/logGroup:LogGroup": (
        "/eks", "logs.DescribeLogGroups", {}, {"logGroupName": "/eks", "retentionInDays": 90},
        {"name": "/eks", "retentionInDays": 90, "skipDestroy": False},
    ),
    "aws:fsx/lustreFileSystem:LustreFileSystem": (
        "fs-1", "fsx.DescribeFileSystems", {},
        {"FileSystemId": "fs-1", "FileSystemType": "LUSTRE", "StorageCapacity": 4800, "KmsKeyId": KEY,
         "SubnetIds": ["subnet-a"], "LustreConfiguration": {"AutomaticBackupRetentionDays": 0}},
        {"storageCapacity": 4800, "kmsKeyId": KEY, "subnetIds": "subnet-a",
         "automaticBackupRetentionDays": 0},
    ),
    "aws:efs/fileSystem:FileSystem": (
        "fs-2", "efs.DescribeFileSystems", {},
        {"FileSystemId": "fs-2", "Encrypted": True, "KmsKeyId": KEY, "ThroughputMode": "elastic"},
        {"encrypted": True, "kmsKeyId": KEY, "throughputMode": "elastic",
         "lifecyclePolicies": [{"transitionToIa": "AFTER_30_DAYS"}]},
    ),
}  # fmt: skip


def drifts(kind: str, answer: dict[str, Any], asked: dict[str, Any]) -> list[str]:
    """The paths that are otherwise than asked for."""
    name, question, parameters, _, _ = CASES[kind]
    silent = dict.fromkeys(tables("aws").queries, Answers())
    answered = {**silent, question: Answers((AnswerItem(answer, parameters),))}
    reported = account(Snapshot("aws", ACCOUNT, REGION, "2026-11-23T00:00:00Z", answered))
    urn = f"urn:pulumi:dev::app::{kind}::one"
    found = joined([Resource(kind, urn, "one", id=name, region=REGION, props=asked, asked=asked)], reported)
    assert {one.resource.urn for one in found.differences} <= {urn}
    assert {one.what for one in found.differences} <= {"drifted"}
    return [one.path for one in found.differences]


def otherwise(value: Any, path: str) -> Any:
    """The same with another value at a path such as `rules[0].days`."""
    made = copy.deepcopy(value)
    *before, last = [
        int(one) if one.isdigit() else one for one in path.replace("[", ".").replace("]", "").split(".")
    ]
    holder = made
    for step in before:
        holder = holder[step]
    now = holder[last]
    holder[last] = not now if isinstance(now, bool) else now + 1 if isinstance(now, int) else f"other-{now}"
    return made


@pytest.mark.parametrize("kind", CASES)
def test_what_is_as_asked_for_has_not_drifted(kind: str) -> None:
    """In another order, with what the program left to the service, and with what the tables do not read."""
    *_, answer, asked = CASES[kind]
    assert drifts(kind, answer, asked) == []
    assert drifts(kind, answer, {**asked, "tags": {"a": "b"}, "tagsAll": {"a": "c"}, "notRead": 1}) == []


@pytest.mark.parametrize(
    ("kind", "changed", "path"),
    [
        (INGRESS, "CidrIpv4", "cidrIpv4"),
        (INGRESS, "ToPort", "toPort"),
        (INGRESS, "GroupId", "securityGroupId"),
        (ENCRYPTION, "Rules[0].ApplyServerSideEncryptionByDefault.SSEAlgorithm",
         "rules[0].applyServerSideEncryptionByDefault.sseAlgorithm"),
        (ENCRYPTION, "Rules[0].BucketKeyEnabled", "rules[0].bucketKeyEnabled"),
        ("aws:s3/bucketVersioning:BucketVersioning", "Status", "versioningConfiguration.status"),
        ("aws:s3/bucketPublicAccessBlock:BucketPublicAccessBlock", "BlockPublicPolicy", "blockPublicPolicy"),
        ("aws:rds/instance:Instance", "PubliclyAccessible", "publiclyAccessible"),
        ("aws:rds/instance:Instance", "BackupRetentionPeriod", "backupRetentionPeriod"),
        ("aws:rds/instance:Instance", "KmsKeyId", "kmsKeyId"),
        ("aws:rds/cluster:Cluster", "DeletionProtection", "deletionProtection"),
        (NODES, "scalingConfig.maxSize", "scalingConfig.maxSize"),
        (NODES, "capacityType", "capacityType"),
        (NODES, "launchTemplate.version", "launchTemplate.version"),
        (NODES, "taints[0].effect", "taints[0].effect"),
        (NODES, "nodeRepairConfig.enabled", "nodeRepairConfig.enabled"),
        ("aws:eks/cluster:Cluster", "resourcesVpcConfig.endpointPublicAccess",
         "vpcConfig.endpointPublicAccess"),
        ("aws:eks/cluster:Cluster", "encryptionConfig[0].provider.keyArn",
         "encryptionConfig.provider.keyArn"),
        ("aws:eks/cluster:Cluster", "deletionProtection", "deletionProtection"),
        ("aws:kms/key:Key", "Enabled", "isEnabled"),
        ("aws:cloudwatch/logGroup:LogGroup", "retentionInDays", "retentionInDays"),
        ("aws:fsx/lustreFileSystem:LustreFileSystem", "StorageCapacity", "storageCapacity"),
        ("aws:fsx/lustreFileSystem:LustreFileSystem", "LustreConfiguration.AutomaticBackupRetentionDays",
         "automaticBackupRetentionDays"),
        ("aws:efs/fileSystem:FileSystem", "Encrypted", "encrypted"),
    ],
)  # fmt: skip
def test_manual_changes_are_drift(kind: str, changed: str, path: str) -> None:
    *_, answer, asked = CASES[kind]
    assert drifts(kind, otherwise(answer, changed), asked) == [path]


@pytest.mark.parametrize(
    "changed", ["scalingConfig.desiredSize", "nodeRepairConfig.maxParallelNodesRepairedCount"]
)
def test_changes_by_autoscalers_and_unread_properties_are_no_drift(changed: str) -> None:
    *_, answer, asked = CASES[NODES]
    assert drifts(NODES, otherwise(answer, changed), asked) == []


def test_what_was_taken_away_or_added_has_drifted() -> None:
    *_, answer, asked = CASES[NODES]
    assert drifts(NODES, {**answer, "taints": []}, asked) == ["taints"]
    more = [*answer["taints"], {"key": "other", "effect": "NO_EXECUTE"}]
    assert drifts(NODES, {**answer, "taints": more}, asked) == ["taints"]
    group = "aws:eks/cluster:Cluster"
    *_, answer, asked = CASES[group]
    assert drifts(group, {**answer, "logging": {}}, asked) == ["enabledClusterLogTypes"]
