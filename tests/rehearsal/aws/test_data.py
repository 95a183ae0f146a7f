"""File systems, databases and secrets."""

from typing import Any

import pytest

from rehearsal.core.model import RefusalError
from tests.rehearsal.aws.harness import Driver
from tests.rehearsal.driver import refused


def test_lustre_sizes_come_from_the_table(aws: Driver) -> None:
    token = "fsx/lustreFileSystem:LustreFileSystem"
    common = {"subnetIds": "subnet-1", "deploymentType": "PERSISTENT_2", "perUnitStorageThroughput": 250}
    assert aws.check(token, **common, storageCapacity=4800) == {}
    assert "storageCapacity" in aws.check(token, **common, storageCapacity=1300)
    assert "perUnitStorageThroughput" in aws.check(
        token, subnetIds="s", deploymentType="PERSISTENT_2", storageCapacity=1200
    )


def test_a_file_system_has_one_mount_target_per_zone(aws: Driver) -> None:
    _, subnets = aws.network()
    system = aws.create("efs/fileSystem:FileSystem", "homes")["id"]
    aws.create("efs/mountTarget:MountTarget", "one", fileSystemId=system, subnetId=subnets[0])
    with pytest.raises(RefusalError, match="MountTargetConflict"):
        aws.create("efs/mountTarget:MountTarget", "two", fileSystemId=system, subnetId=subnets[0])
    refused("FileSystemInUse", aws.delete, "homes")


def test_a_managed_password_is_in_a_secret_that_is_deleted_with_the_cluster(aws: Driver) -> None:
    _, subnets = aws.network()
    group = aws.create("rds/subnetGroup:SubnetGroup", "group", subnetIds=subnets)
    database = aws.create(
        "rds/cluster:Cluster",
        "db",
        engine="aurora-postgresql",
        masterUsername="mlflow",
        manageMasterUserPassword=True,
        skipFinalSnapshot=True,
        dbSubnetGroupName=group["name"],
    )
    arn = database["masterUserSecrets"][0]["secretArn"]
    value = aws.state.document("secret", arn)
    assert value["username"] == "mlflow" and len(value["password"]) == 28
    refused("InvalidDBSubnetGroupStateFault", aws.delete, "group")
    aws.delete("db")
    assert aws.state.document("secret", arn) is None and aws.state.issued(arn) == []


def test_a_cluster_without_a_final_snapshot_is_created_but_not_deleted(aws: Driver) -> None:
    managed: Any = {
        "engine": "aurora-postgresql",
        "masterUsername": "mlflow",
        "manageMasterUserPassword": True,
    }
    aws.create("rds/cluster:Cluster", "db", **managed)
    refused("final_snapshot_identifier is required", aws.delete, "db")


def test_the_value_of_a_secret_is_kept(aws: Driver) -> None:
    secret = aws.create("secretsmanager/secret:Secret", "s")
    aws.create(
        "secretsmanager/secretVersion:SecretVersion", "v", secretId=secret["id"], secretString='{"a": 1}'
    )
    assert aws.state.document("secret", secret["arn"]) == {"a": 1}
