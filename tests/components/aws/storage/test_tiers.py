"""The storage tiers: which exist, who reaches them, what is linked to what."""

import json
from typing import Any, cast

import pulumi
import pytest

from components.aws.storage.tiers import AwsStorage, AwsStorageArgs
from tests.components.recorder import REGION, Recorder, deploy, rules, statements

SIZE = {"capacity_gib": 4800, "throughput_mb_s_per_tib": 250, "subnet_id": "subnet-a"}
LUSTRE = "aws:fsx/lustreFileSystem:LustreFileSystem"
LINK = "aws:fsx/dataRepositoryAssociation:DataRepositoryAssociation"

DEFAULTS = {
    "region": REGION,
    "vpc_id": "vpc-1",
    "subnet_ids": ["subnet-a", "subnet-b", "subnet-c"],
    "client_security_group_ids": ["sg-nodes", "sg-efa"],
    "checkpoint_retention_days": 60,
    "noncurrent_days": 14,
    "log_retention_days": 30,
}


def made(**more: Any) -> tuple[Recorder, dict[str, Any]]:
    def program() -> dict[str, pulumi.Output[Any]]:
        storage = AwsStorage("dev-aws", cast(AwsStorageArgs, DEFAULTS | more))
        outputs: dict[str, pulumi.Output[Any]] = {
            "checkpoint_bucket": storage.checkpoint_bucket,
            "dataset_bucket": storage.dataset_bucket,
            "artifact_bucket": storage.artifact_bucket,
            "kms_key_arn": storage.kms_key_arn,
        }
        if storage.lustre:
            outputs["mount_name"] = storage.lustre.mount_name
            outputs["lustre_id"] = storage.lustre.file_system_id
            outputs["lustre_group"] = storage.lustre.security_group_id
        if storage.homes:
            outputs["homes_id"] = storage.homes.file_system_id
            outputs["homes_group"] = storage.homes.security_group_id
        return outputs

    return deploy(
        program, {LUSTRE: lambda args: {"mountName": "abcdefgh", "dnsName": f"{args.name}.fsx.amazonaws.com"}}
    )


def test_three_buckets_and_one_rotating_key_without_file_systems() -> None:
    cloud, outputs = made()
    key = cloud.one("aws:kms/key:Key")
    assert key.properties["enableKeyRotation"] is True
    encryption = "aws:s3/bucketServerSideEncryptionConfiguration:BucketServerSideEncryptionConfiguration"
    used = {
        asked.properties["bucket"]: asked.properties["rules"][0]["applyServerSideEncryptionByDefault"][
            "kmsMasterKeyId"
        ]
        for asked in cloud.of_type(encryption)
    }
    buckets = {outputs[f"{kind}_bucket"] for kind in ("checkpoint", "dataset", "artifact")}
    assert len(buckets) == 3
    assert used == dict.fromkeys(buckets, outputs["kms_key_arn"])
    assert not [kind for kind in cloud.types() if kind.startswith(("aws:fsx", "aws:efs"))]


def test_each_bucket_keeps_its_data_as_its_purpose_asks() -> None:
    cloud, _ = made()
    lifecycle = "aws:s3/bucketLifecycleConfiguration:BucketLifecycleConfiguration"
    checkpoints = cloud.one(lifecycle, "checkpoints-lifecycle").properties["rules"]
    assert [rule.get("expiration") for rule in checkpoints] == [{"days": 60}]
    datasets = cloud.one(lifecycle, "datasets-lifecycle").properties["rules"]
    assert datasets[1]["transitions"][0]["storageClass"] == "INTELLIGENT_TIERING"
    artifacts = cloud.one(lifecycle, "artifacts-lifecycle").properties["rules"]
    assert all("days" not in rule.get("expiration", {}) and "transitions" not in rule for rule in artifacts)
    assert cloud.one("aws:s3/bucket:Bucket", "artifacts").properties["objectLockEnabled"] is True


def test_checkpoints_move_to_cheaper_classes_that_are_read_at_once_when_asked() -> None:
    lifecycle = "aws:s3/bucketLifecycleConfiguration:BucketLifecycleConfiguration"
    cloud, _ = made(checkpoint_retention_days=300, checkpoint_cool_days=40, checkpoint_cold_days=100)
    (rule,) = cloud.one(lifecycle, "checkpoints-lifecycle").properties["rules"]
    assert rule["expiration"] == {"days": 300}
    assert rule["transitions"] == [
        {"days": 40, "storageClass": "STANDARD_IA"},
        {"days": 100, "storageClass": "GLACIER_IR"},
    ]
    artifacts = cloud.one(lifecycle, "artifacts-lifecycle").properties["rules"]
    assert all("transitions" not in each for each in artifacts)


def test_deletions_among_checkpoints_reach_the_bucket_only_when_asked() -> None:
    cloud, _ = made(lustre=SIZE, delete_checkpoints=True)
    links = {asked.properties["fileSystemPath"]: asked.properties for asked in cloud.of_type(LINK)}
    assert links["/checkpoints"]["s3"]["autoExportPolicy"]["events"] == ["NEW", "CHANGED", "DELETED"]


def test_key_lets_only_lustre_links_of_this_account_through_s3() -> None:
    cloud, _ = made()
    linked = statements(cloud.one("aws:kms/key:Key").properties["policy"])["LustreLinksReadAndWriteBuckets"]
    equals = linked["Condition"]["StringEquals"]
    assert equals == {"kms:CallerAccount": "111122223333", "kms:ViaService": "s3.eu-central-1.amazonaws.com"}
    assert linked["Condition"]["ArnLike"]["aws:PrincipalArn"].startswith(
        "arn:aws:iam::111122223333:role/aws-service-role/s3.data-source.lustre.fsx.amazonaws.com/"
    )
    assert "kms:*" not in linked["Action"]


def test_lustre_is_what_was_asked_and_links_both_buckets() -> None:
    cloud, outputs = made(lustre=SIZE)
    system = cloud.one(LUSTRE).properties
    assert system["deploymentType"] == "PERSISTENT_2"
    assert system["subnetIds"] == "subnet-a"
    assert (system["storageCapacity"], system["perUnitStorageThroughput"]) == (4800, 250)
    assert system["kmsKeyId"] == outputs["kms_key_arn"]
    assert "efaEnabled" not in system
    assert system["automaticBackupRetentionDays"] == 0, "FSx refuses backups of linked file systems"
    links = {asked.properties["fileSystemPath"]: asked.properties for asked in cloud.of_type(LINK)}
    assert links["/checkpoints"]["dataRepositoryPath"] == f"s3://{outputs['checkpoint_bucket']}"
    assert links["/datasets"]["dataRepositoryPath"] == f"s3://{outputs['dataset_bucket']}"
    assert "DELETED" not in links["/checkpoints"]["s3"]["autoExportPolicy"]["events"]
    assert "autoImportPolicy" not in links["/checkpoints"]["s3"]
    assert "autoExportPolicy" not in links["/datasets"]["s3"]
    assert outputs["mount_name"] == "abcdefgh"


def test_lustre_logs_where_fsx_allows_and_the_key_covers_it() -> None:
    cloud, outputs = made(lustre=SIZE)
    group = cloud.one("aws:cloudwatch/logGroup:LogGroup")
    assert group.properties["name"].startswith("/aws/fsx/")
    assert group.properties["kmsKeyId"] == outputs["kms_key_arn"]
    allowed = statements(cloud.one("aws:kms/key:Key").properties["policy"])["CloudWatchLogsEncryptsThisGroup"]
    covered = allowed["Condition"]["ArnEquals"]["kms:EncryptionContext:aws:logs:arn"]
    assert covered.endswith(":log-group:" + group.properties["name"])


@pytest.mark.parametrize("efa", [False, True])
def test_lustre_ports_are_open_both_ways_between_servers_and_every_client(efa: bool) -> None:
    cloud, outputs = made(lustre={**SIZE, "efa": efa})
    servers = outputs["lustre_group"]
    pairs = {(servers, servers)}
    for client in ("sg-nodes", "sg-efa"):
        pairs |= {(servers, client), (client, servers)}
    traffic = {("-1", None, None)} if efa else {("tcp", 988, 988), ("tcp", 1018, 1023)}
    expected = {(*pair, *kind) for pair in pairs for kind in traffic}
    assert set(rules(cloud, "Ingress")) == expected
    assert set(rules(cloud, "Egress")) == expected
    assert cloud.one(LUSTRE).properties.get("efaEnabled", False) is efa


def test_homes_are_encrypted_elastic_backed_up_and_mounted_over_tls_in_every_zone() -> None:
    cloud, outputs = made(homes_mounted_by="driver-role")
    system = cloud.one("aws:efs/fileSystem:FileSystem").properties
    assert (system["encrypted"], system["kmsKeyId"]) == (True, outputs["kms_key_arn"])
    assert system["throughputMode"] == "elastic"
    assert all(len(policy) == 1 for policy in system["lifecyclePolicies"]), "EFS takes one per entry"
    assert cloud.one("aws:efs/backupPolicy:BackupPolicy").properties["backupPolicy"] == {"status": "ENABLED"}
    targets = cloud.of_type("aws:efs/mountTarget:MountTarget")
    assert sorted(asked.properties["subnetId"] for asked in targets) == ["subnet-a", "subnet-b", "subnet-c"]
    policy = statements(cloud.one("aws:efs/fileSystemPolicy:FileSystemPolicy").properties["policy"])
    assert {statement["Effect"] for statement in policy.values()} == {"Deny"}, "a grant would be everybody's"
    assert policy["TlsOnly"]["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}
    past = policy["ThroughAccessPoints"]
    assert past["Condition"] == {"Null": {"elasticfilesystem:AccessPointArn": "true"}}
    assert past["Action"] == ["elasticfilesystem:ClientMount", "elasticfilesystem:ClientWrite"]
    assert policy["NeverAsRoot"]["Action"] == "elasticfilesystem:ClientRootAccess"
    assert "Condition" not in policy["NeverAsRoot"]
    mounting = cloud.one("aws:iam/rolePolicy:RolePolicy").properties
    (allowed,) = json.loads(mounting["policy"])["Statement"]
    assert mounting["role"] == "driver-role"
    # No condition but these is known for clients, and one that is not known allows nothing (EFS user guide).
    assert set(allowed) == {"Effect", "Action", "Resource"}
    assert (allowed["Action"], allowed["Resource"]) == (past["Action"], [past["Resource"]])
    into = {(outputs["homes_group"], client, "tcp", 2049, 2049) for client in ("sg-nodes", "sg-efa")}
    assert set(rules(cloud, "Ingress")) == into


def test_buckets_with_objects_survive_a_destroy_by_default() -> None:
    kept = made()[0].of_type("aws:s3/bucket:Bucket")
    assert not any(asked.properties.get("forceDestroy", False) for asked in kept)
    given_up = made(force_destroy=True)[0].of_type("aws:s3/bucket:Bucket")
    assert all(asked.properties["forceDestroy"] for asked in given_up)
