"""Experiment tracking: an MLflow server in the cluster, its database, its secrets and its permissions."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NotRequired, TypedDict

import pulumi
import pulumi_aws as aws

from agents.aws.mlflow_server import secret_store
from components.aws import iam
from components.aws.pod_role import AwsPodRole, pod_identity, secret_reader
from components.aws.tracking.database import POSTGRES_PORT, USER, AwsDatabase
from components.base import Component, Options
from components.kubernetes.tracking import logins, schema
from components.kubernetes.tracking.pod import NAME, DoorArgs, MlflowServerArgs
from components.kubernetes.tracking.server import MlflowServer
from components.ordering import after

# The module with which pods read secrets.
SECRET_STORE = Path(secret_store.__file__).read_text(encoding="utf-8")
# Everything the server stores is below this folder of the artifact bucket.
ARTIFACT_PREFIX = "mlflow"


class AwsTrackingArgs(TypedDict):
    """Cluster of the server, sizes of server and database, and protection of data."""

    region: str
    """The provider's region."""
    cluster_name: pulumi.Input[str]
    """EKS cluster of the server's pods."""
    cluster_arn: pulumi.Input[str]
    """ARN of the cluster."""
    vpc_id: pulumi.Input[str]
    """The VPC of the subnets."""
    subnet_ids: Sequence[pulumi.Input[str]]
    """Private subnets in at least two zones, for the database."""
    client_security_group_ids: Sequence[pulumi.Input[str]]
    """Security groups of the nodes that run the server."""
    artifact_bucket: pulumi.Input[str]
    """Name of the bucket of artifacts."""
    artifact_bucket_arn: pulumi.Input[str]
    """ARN of the bucket of artifacts."""
    kms_key_arn: pulumi.Input[str]
    """Key of the artifact bucket; database and secrets use it, too."""
    image: pulumi.Input[str]
    """Image with MLflow's `auth` extra, psycopg2 and boto3, by digest."""
    replicas: pulumi.Input[int]
    """Pods of the server; with 2 it survives the loss of a node."""
    workers: int
    """Worker processes per replica."""
    min_acu: float
    """Smallest capacity of the database in Aurora capacity units; 0 lets it pause after half an hour."""
    max_acu: float
    """Largest capacity of the database in Aurora capacity units."""
    log_retention_days: int
    """Days for which the database's log is kept."""
    backup_retention_days: NotRequired[int]
    """Days of continuous backup of the database, 1 to 35. Default: 7."""
    namespace: NotRequired[str]
    """Namespace of the server. Default: mlflow."""
    deletion_protection: NotRequired[bool]
    """Refuse to delete the database; keep deleted secrets restorable for a month. Default: yes."""
    door: NotRequired[DoorArgs]
    """The load balancer in front of the server. Default: none."""
    last_snapshot: NotRequired[bool]
    """Take a snapshot of the database when it is deleted after all. Default: yes."""


class AwsTracking(Component):
    """MLflow with users and permissions, PostgreSQL behind it, artifacts in S3.

    Needs an AWS and a Kubernetes provider (`providers=[aws, kubernetes]`).

    The server's service account has one role, by EKS Pod Identity: its folder of the artifact bucket (to
    read and write, not to delete: the artifacts of a run stay), the key they are encrypted with, and the
    secret of its database. The Job that upgrades the tables has another: the same secret, snapshots of the
    database, and the secret of the first user, which it fills.

    A database that may pause (`min_acu` 0) makes the first request after a pause wait 15 seconds or more. The
    server then closes connections after each request, since an open one keeps the database awake.
    """

    url: pulumi.Output[str]
    """Address of the server inside the cluster."""
    namespace: pulumi.Output[str]
    """Namespace of the server."""
    admin_secret_arn: pulumi.Output[str]
    """Secret with the name and password of the first user."""
    artifact_uri: pulumi.Output[str]
    """Address below which the server stores artifacts."""

    def __init__(self, name: str, args: AwsTrackingArgs, opts: Options = None) -> None:
        super().__init__(name, opts)
        protected = args.get("deletion_protection", True)
        database = AwsDatabase(f"{name}-mlflow", args, self.child())
        admin = aws.secretsmanager.Secret(
            f"{name}-mlflow-admin",
            description=f"First user of the MLflow server of {name}: username, password",
            kms_key_id=args["kms_key_arn"],
            recovery_window_in_days=30 if protected else 0,
            opts=self.child(),
        )
        known = {"key_arn": args["kms_key_arn"], "secret_arn": database.secret_arn}
        role = self._role(
            f"{name}-mlflow",
            args,
            (args.get("namespace", NAME), NAME),
            pulumi.Output.all(**known, bucket_arn=args["artifact_bucket_arn"]).apply(
                lambda arns: server_rights(region=args["region"], **arns)
            ),
        )
        upgrades = self._role(
            f"{name}-schema",
            args,
            (schema.NAMESPACE, schema.ACCOUNT),
            pulumi.Output.all(**known, admin_arn=admin.arn, cluster_arn=database.arn).apply(
                lambda arns: schema_rights(region=args["region"], **arns)
            ),
        )
        reads = pulumi.Output.all(secret_arn=admin.arn, key_arn=args["kms_key_arn"]).apply(
            lambda arns: secret_reader(region=args["region"], **arns)
        )
        reader = self._role(f"{name}-logins", args, (logins.NAMESPACE, logins.ACCOUNT), reads)
        # Readers of this output may read the secret.
        self.admin_secret_arn = after(admin.arn, [reader])
        self.artifact_uri = pulumi.Output.concat("s3://", args["artifact_bucket"], f"/{ARTIFACT_PREFIX}")
        wanted: MlflowServerArgs = {
            "image": args["image"],
            "replicas": args["replicas"],
            "workers": args["workers"],
            "grants": pod_identity(args["region"]),
            "secret_store": SECRET_STORE,
            # EKS grants a pod its permissions at its creation: they must exist before.
            "database_uri": after(database_uri(database.endpoint), [role, upgrades]),
            "database_secret": database.secret_arn,
            "snapshots_of": database.identifier,
            "admin_secret": admin.arn,
            "artifacts_destination": self.artifact_uri,
            "keep_connections": args["min_acu"] > 0,
            "namespace": args.get("namespace", NAME),
        }
        if "door" in args:
            wanted["door"] = args["door"]
        server = MlflowServer(f"{name}-mlflow-server", wanted, self.child())
        self.url = server.url
        self.namespace = server.namespace
        self.register_outputs(
            {"url": self.url, "admin_secret_arn": self.admin_secret_arn, "artifact_uri": self.artifact_uri}
        )

    def _role(
        self, name: str, args: AwsTrackingArgs, account: tuple[str, str], policy: pulumi.Output[str]
    ) -> AwsPodRole:
        """A role of a service account, by namespace and name."""
        return AwsPodRole(
            name,
            {
                "cluster_name": args["cluster_name"],
                "cluster_arn": args["cluster_arn"],
                "namespace": account[0],
                "service_account": account[1],
                "policy": policy,
            },
            self.child(),
        )


def database_uri(endpoint: pulumi.Input[str]) -> pulumi.Output[str]:
    """The URI without the password; the database requires TLS."""
    return pulumi.Output.concat(
        f"postgresql+psycopg2://{USER}@", endpoint, f":{POSTGRES_PORT}/mlflow?sslmode=require"
    )


def server_rights(*, region: str, bucket_arn: str, key_arn: str, secret_arn: str) -> str:
    """The servers' policy. The key works only through S3 and Secrets Manager."""
    listing = {
        **iam.allow(["s3:ListBucket"], [bucket_arn]),
        "Condition": {"StringLike": {"s3:prefix": [ARTIFACT_PREFIX, f"{ARTIFACT_PREFIX}/*"]}},
    }
    artifacts = iam.allow(
        ["s3:AbortMultipartUpload", "s3:GetObject", "s3:ListMultipartUploadParts", "s3:PutObject"],
        [f"{bucket_arn}/{ARTIFACT_PREFIX}/*"],
    )
    reading = iam.allow(["secretsmanager:GetSecretValue"], [secret_arn])
    return iam.document(listing, artifacts, _key(key_arn, region, "s3", "secretsmanager"), reading)


def schema_rights(*, region: str, key_arn: str, secret_arn: str, admin_arn: str, cluster_arn: str) -> str:
    """The policy of the Job that upgrades the tables: both secrets, and snapshots, which it cannot delete."""
    place, _, cluster = cluster_arn.rpartition(":cluster:")
    snapshots = f"{place}:cluster-snapshot:{secret_store.snapshots_of(cluster)}before-*"
    return iam.document(
        _key(key_arn, region, "secretsmanager"),
        iam.allow(["secretsmanager:GetSecretValue"], [admin_arn, secret_arn]),
        iam.allow(["secretsmanager:PutSecretValue"], [admin_arn]),
        iam.allow(
            ["rds:CreateDBClusterSnapshot", "rds:DescribeDBClusterSnapshots"], [cluster_arn, snapshots]
        ),
        # As the cluster copies its tags to its snapshots.
        iam.allow(["rds:AddTagsToResource"], [snapshots]),
    )


def _key(key_arn: str, region: str, *services: str) -> Mapping[str, object]:
    through = [f"{service}.{region}.amazonaws.com" for service in services]
    return {
        **iam.allow(["kms:Decrypt", "kms:GenerateDataKey"], [key_arn]),
        "Condition": {"StringEquals": {"kms:ViaService": through}},
    }
