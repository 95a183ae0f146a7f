"""AWS Secrets Manager for the program of the tracking pods; runs beside `serve` in the server's image.

Implements `agents.mlflow_server.administrator.CredentialStore`, and takes snapshots for `schema` there.
AWS_REGION names the region of both.
"""

import importlib
import json
from collections.abc import Mapping
from typing import Any

# Secrets Manager keeps one value per request token. Replicas that start together all use this token, so only
# the first write succeeds and the others read its value. 32 to 64 characters.
FIRST_VALUE = "trainstack-mlflow-admin-first-value"


# A snapshot of Aurora takes minutes, whatever the size: it is taken from the storage.
_SNAPSHOT_S, _POLL_S = 1800, 15
# Of a snapshot's identifier (RDS API, CreateDBClusterSnapshot), and the part of it that names the cluster.
_MOST_CHARACTERS, _CLUSTER_CHARACTERS = 63, 28


def snapshots_of(database: str) -> str:
    """The first characters of all identifiers of snapshots of a cluster."""
    return f"{database[:_CLUSTER_CHARACTERS].rstrip('-')}-"


class AwsSecrets:
    """Secrets by ARN, and snapshots of Aurora clusters by name."""

    def __init__(self, client: Any, databases: Any = None) -> None:
        self._client, self._databases = client, databases

    def read(self, secret: str) -> tuple[dict[str, str], str] | None:
        """The fields and the version id of the current value; None while there is none."""
        try:
            answer = self._client.get_secret_value(SecretId=secret)
        except self._client.exceptions.ResourceNotFoundException:
            return None
        return json.loads(answer["SecretString"]), answer["VersionId"]

    def store_first(self, secret: str, fields: Mapping[str, str]) -> bool:
        """Store the first value; False when another replica stored one."""
        try:
            self._client.put_secret_value(
                SecretId=secret, ClientRequestToken=FIRST_VALUE, SecretString=json.dumps(dict(fields))
            )
        except self._client.exceptions.ResourceExistsException:
            return False
        return True

    def snapshot(self, database: str, name: str) -> str:
        """Take a snapshot of a cluster and wait until it is complete; returns its identifier."""
        identifier = f"{snapshots_of(database)}{name}"[:_MOST_CHARACTERS].rstrip("-")
        self._databases.create_db_cluster_snapshot(
            DBClusterIdentifier=database, DBClusterSnapshotIdentifier=identifier
        )
        # A request with the name of the cluster, too, is refused (RDS API, DescribeDBClusterSnapshots).
        self._databases.get_waiter("db_cluster_snapshot_available").wait(
            DBClusterSnapshotIdentifier=identifier,
            WaiterConfig={"Delay": _POLL_S, "MaxAttempts": _SNAPSHOT_S // _POLL_S},
        )
        return identifier


def connect(environment: Mapping[str, str]) -> AwsSecrets:
    """The store of the region in AWS_REGION. Raises ValueError when that is not set."""
    if not environment.get("AWS_REGION"):
        raise ValueError("AWS_REGION is not set")
    boto3: Any = importlib.import_module("boto3")
    region = environment["AWS_REGION"]
    return AwsSecrets(
        boto3.client("secretsmanager", region_name=region), boto3.client("rds", region_name=region)
    )
