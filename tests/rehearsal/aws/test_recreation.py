"""Resources created again under the same name: reserved names, and removed data."""

import time
from typing import Any

import pytest

from rehearsal.client import Rehearsal
from rehearsal.core.journal import Journal, Journaled
from rehearsal.core.model import RefusalError
from rehearsal.dataplane import folders
from tests.rehearsal.aws.harness import Driver
from tests.rehearsal.aws.rules.world import trust
from tests.rehearsal.driver import refused

SECRET, BUCKET, DATABASE = "secretsmanager/secret:Secret", "s3/bucket:Bucket", "rds/cluster:Cluster"
GROUP = "cloudwatch/logGroup:LogGroup"
FUNCTION = "lambda/function:Function"
DAY_S = 86_400


def test_a_secret_that_can_be_restored_keeps_its_name(aws: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    aws.create(SECRET, "s", name="admin")
    aws.delete("s")
    now = time.time()
    until = time.strftime("%Y-%m-%d", time.gmtime(now + 30 * DAY_S))
    message = f"InvalidRequestException: .*already scheduled for deletion.*restored until {until}"
    for preview in (True, False):
        refused(message, aws.create, SECRET, "s", name="admin", preview=preview)
    aws.create(SECRET, "other", name="admin2")
    aws.create(SECRET, "elsewhere", name="admin", region="eu-west-1")
    monkeypatch.setattr(time, "time", lambda: now + 31 * DAY_S)
    aws.create(SECRET, "s", name="admin")


def test_a_secret_without_a_recovery_window_is_gone_at_once(aws: Driver) -> None:
    for _ in range(2):
        aws.create(SECRET, "s", name="admin", recoveryWindowInDays=0)
        aws.delete("s")
    for life in ("a", "b"):  # an automatic name is another one each time; here it follows from the resource's
        aws.create(SECRET, life, namePrefix="admin-", recoveryWindowInDays=7)
        aws.delete(life)


def test_the_window_is_the_one_at_the_deletion(aws: Driver) -> None:
    aws.create(SECRET, "s", name="admin")
    aws.update("s", name="admin", recoveryWindowInDays=0)
    aws.delete("s")
    aws.create(SECRET, "s", name="admin")


def test_a_deleted_unconfirmed_create_reserves_no_name(aws: Driver) -> None:
    aws.cloud = Journaled(aws.cloud, Journal(aws.state))
    aws.create(SECRET, "s", name="admin")
    aws.create(SECRET, "s", name="admin")  # unconfirmed: the same URN again
    aws.delete("s")
    refused("already scheduled for deletion", aws.create, SECRET, "s", name="admin")


def test_a_bucket_with_files_of_pods_is_deleted_only_when_forced(aws: Driver) -> None:
    home = Rehearsal(aws.state.path.parent)
    aws.create(BUCKET, "b", bucket="example-runs")
    written = home.local_path("s3://example-runs/smoke/result.json")
    written.parent.mkdir(parents=True)
    aws.delete("b")  # a folder is no object
    aws.create(BUCKET, "b", bucket="example-runs")
    written.parent.mkdir(parents=True)
    written.write_text("{}")
    refused(r"BucketNotEmpty: .*example-runs holds smoke/result\.json", aws.delete, "b")
    aws.create("s3/bucketObjectv2:BucketObjectv2", "o", bucket="example-runs", key="k", content="v")
    aws.update("b", bucket="example-runs", forceDestroy=True)
    aws.delete("b")
    assert not written.exists() and aws.state.find(type="aws:s3/bucketObjectv2:BucketObjectv2") == []


def test_a_repository_holds_the_image_that_a_function_was_made_of(aws: Driver) -> None:
    url = aws.create("ecr/repository:Repository", "r", name="apps/train")["repositoryUrl"]
    aws.delete("r")
    aws.create("ecr/repository:Repository", "r", name="apps/train")
    role = aws.create("iam/role:Role", "role", assumeRolePolicy=trust("lambda.amazonaws.com"))["arn"]
    aws.create(FUNCTION, "f", name="f", packageType="Image", imageUri=f"{url}:1", role=role)
    aws.delete("f")
    refused(r"RepositoryNotEmptyException: .*'apps/train'.*train:1 was started", aws.delete, "r")
    aws.update("r", name="apps/train", forceDelete=True)
    aws.delete("r")
    aws.create("ecr/repository:Repository", "r", name="apps/train")
    aws.delete("r")


LOGS = "/aws/eks/dev/cluster"


def test_a_cluster_deleted_after_its_log_group_recreates_the_group(aws: Driver) -> None:
    for order in (("cluster", "logs"), ("logs", "cluster")):
        aws.create(GROUP, "logs", name=LOGS)
        aws.cluster(enabledClusterLogTypes=["api"])
        for name in order:
            aws.delete(name)
        for name in ("role", "subnet-a", "subnet-b", "vpc"):
            aws.delete(name)
    with pytest.raises(RefusalError, match=f"ResourceAlreadyExistsException: .*{LOGS}.*went on logging"):
        aws.create(GROUP, "logs", name=LOGS)


def test_a_cluster_without_logs_leaves_no_log_group(aws: Driver) -> None:
    aws.cluster()
    aws.delete("cluster")
    aws.create(GROUP, "logs", name=LOGS)


def _database(aws: Driver, **more: Any) -> None:
    inputs = {"engine": "aurora-postgresql", "masterUsername": "mlflow", "manageMasterUserPassword": True}
    aws.create(
        DATABASE, "db", clusterIdentifier="dev-mlflow", **{**inputs, "skipFinalSnapshot": True, **more}
    )


def test_a_recreated_database_is_empty(aws: Driver) -> None:
    _database(aws)
    users = folders.database(aws.state.path.parent, "dev-mlflow") / "mlflow.db"
    users.parent.mkdir(parents=True)
    users.write_text("of the first life")
    aws.create(
        "rds/clusterInstance:ClusterInstance",
        "writer",
        clusterIdentifier="dev-mlflow",
        engine="aurora-postgresql",
        instanceClass="db.r6g.large",
    )
    refused("still contains DB instances", aws.delete, "db")
    assert users.exists()
    aws.delete("writer")
    aws.delete("db")
    _database(aws)
    assert not users.exists()


def test_the_last_snapshot_of_a_former_life_keeps_its_name(aws: Driver) -> None:
    last = {"skipFinalSnapshot": False, "finalSnapshotIdentifier": "dev-mlflow-last"}
    _database(aws, **last)
    aws.delete("db")
    _database(aws, **last)
    refused(r"DBClusterSnapshotAlreadyExistsFault: .*dev-mlflow-last already", aws.delete, "db")
    aws.update("db", **{**aws.made["db"][2], "finalSnapshotIdentifier": "dev-mlflow-last-2"})
    aws.delete("db")
