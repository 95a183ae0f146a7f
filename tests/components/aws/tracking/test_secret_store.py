"""Snapshots of the tables, by the model and the documented limits of RDS."""

import fnmatch
import importlib
import json
import re
from typing import Any

import pytest

from agents.aws.mlflow_server.secret_store import AwsSecrets
from components.aws.tracking.server import schema_rights
from tests.components.recorder import ACCOUNT, REGION

ARN = f"arn:aws:rds:{REGION}:{ACCOUNT}"
# CreateDBClusterSnapshot: 1 to 63 letters, numbers, hyphens; a letter first, single hyphens, none at the end.
IDENTIFIER = re.compile(r"(?=.{1,63}\Z)[a-zA-Z](?:-?[a-zA-Z0-9])*")
NAME = "before-1a2b3c4d5e6f-20261128000000"


def snapshot(database: str) -> str:
    """The identifier after the two requests, which botocore's model of RDS accepted."""
    boto3: Any = importlib.import_module("boto3")
    stub: Any = importlib.import_module("botocore.stub")
    keys = {"aws_access_key_id": "test", "aws_secret_access_key": "test"}
    databases = boto3.client("rds", region_name=REGION, **keys)
    with stub.Stubber(databases) as answers:
        given = {"DBClusterIdentifier": database, "DBClusterSnapshotIdentifier": stub.ANY}
        answers.add_response("create_db_cluster_snapshot", {}, given)
        # The two names of a request exclude each other.
        answers.add_response(
            "describe_db_cluster_snapshots",
            {"DBClusterSnapshots": [{"Status": "available"}]},
            {"DBClusterSnapshotIdentifier": stub.ANY},
        )
        made = AwsSecrets(None, databases).snapshot(database, NAME)
        answers.assert_no_pending_responses()
    return made


@pytest.mark.parametrize(
    "stack", ["a", "acme-research", "a-twelve-chr", "team-x-production-eu-central-1-b", "x" * 32]
)
def test_a_snapshot_has_an_identifier_that_rds_takes_and_the_job_may_make(stack: str) -> None:
    cluster = f"{stack}-tracking-mlflow"
    made = snapshot(cluster)
    assert IDENTIFIER.fullmatch(made) and made.endswith(NAME)
    arn = f"{ARN}:cluster:{cluster}"
    policy = json.loads(
        schema_rights(region=REGION, key_arn="k", secret_arn="s", admin_arn="a", cluster_arn=arn)
    )

    def allowed(action: str, resource: str) -> bool:
        return any(
            action in one["Action"] and any(fnmatch.fnmatch(resource, mine) for mine in one["Resource"])
            for one in policy["Statement"]
        )

    for action in ("rds:CreateDBClusterSnapshot", "rds:DescribeDBClusterSnapshots"):
        assert allowed(action, arn) and allowed(action, f"{ARN}:cluster-snapshot:{made}")
    assert allowed("rds:AddTagsToResource", f"{ARN}:cluster-snapshot:{made}")
    assert not allowed("rds:AddTagsToResource", arn)
