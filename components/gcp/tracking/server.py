"""Experiment tracking: an MLflow server in the cluster, its database, its secret and its permissions."""

from pathlib import Path
from typing import NotRequired, TypedDict

import pulumi
import pulumi_gcp as gcp

from agents.gcp.mlflow_server import secret_store
from components.base import Component, Options
from components.gcp import iam
from components.gcp.pod_account import metadata_grants, pod_principal
from components.gcp.tracking.agents import may_use_key
from components.gcp.tracking.artifacts import ARTIFACT_PREFIX, artifact_folder
from components.gcp.tracking.database import DATABASE, POSTGRES_PORT, GcpDatabase
from components.gcp.tracking.login import GcpDatabaseLogin, database_uri
from components.kubernetes.tracking import logins, schema
from components.kubernetes.tracking.pod import NAME, GrantsArgs, MlflowServerArgs
from components.kubernetes.tracking.server import MlflowServer
from components.ordering import after
from infra.naming import sanitize

# The module with which pods read secrets.
SECRET_STORE = Path(secret_store.__file__).read_text(encoding="utf-8")
# URN of the former owner of the same folder, and of the permission on the key, when there was no cluster.
_OF_JOBS = "trainstack:index:GcpJobTracking"
_READS_SECRETS, _ADDS_VALUES = (
    "roles/secretmanager.secretAccessor",
    "roles/secretmanager.secretVersionAdder",
)


class GcpTrackingArgs(TypedDict):
    """Cluster of the server, sizes of server and database, and protection of data."""

    project: str
    """The project's id."""
    project_number: pulumi.Input[str]
    """The project's number."""
    region: str
    """The region of the database; the provider's."""
    workload_pool: pulumi.Input[str]
    """The cluster's workload pool, `<project>.svc.id.goog`; permissions are granted once it exists."""
    network_id: pulumi.Input[str]
    """The network, known once private service access exists: the database gets an address there."""
    artifact_bucket: pulumi.Input[str]
    """Name of the bucket, with uniform access."""
    key_id: pulumi.Input[str]
    """Key of the region; database and secret use it."""
    image: pulumi.Input[str]
    """Image with MLflow's `auth` extra, psycopg2 and google-cloud-storage, by digest."""
    replicas: pulumi.Input[int]
    """Pods of the server; with 2 it survives the loss of a node."""
    workers: int
    """Worker processes per replica."""
    tier: str
    """Machine tier of the database, `db-custom-<CPUs>-<MiB>`."""
    availability: str
    """`zonal`, or `regional` for a standby of the database in another zone."""
    disk_gib: int
    """First size of the database's disk in GiB; it grows automatically."""
    backup_retention_days: NotRequired[int]
    """Days of backups of the database, 1 to 365. Default: 7."""
    namespace: NotRequired[str]
    """Namespace of the server. Default: mlflow."""
    deletion_protection: NotRequired[bool]
    """Refuse to delete database and secret. Default: yes."""
    last_backup: NotRequired[bool]
    """Take a backup of the database when it is deleted after all. Default: yes."""


class GcpTracking(Component):
    """MLflow with users and permissions, PostgreSQL behind it, artifacts in Cloud Storage.

    Needs a Google Cloud and a Kubernetes provider (`providers=[gcp, kubernetes]`).

    The permissions belong to the server's pods themselves (Workload Identity Federation for GKE): their
    folder of the artifact bucket, and tokens of their database account. The Job that upgrades the tables has
    others: the same tokens, backups, and the secret of the first user, which it fills.

    Artifacts are read and written, and not deleted: those of a run stay. Cloud Storage counts replacing an
    object as deleting it, so a second artifact of the same name in a run is denied. Runs that rewrite one
    (`mlflow.log_table` does) need the role `roles/storage.objectUser` on the folder.

    Untested in a real project.
    """

    url: pulumi.Output[str]
    """Address of the server inside the cluster."""
    namespace: pulumi.Output[str]
    """Namespace of the server."""
    admin_secret: pulumi.Output[str]
    """`projects/<project>/secrets/<secret>`; dependents come after the permission of `logins` to read it."""
    artifact_uri: pulumi.Output[str]
    """Address below which the server stores artifacts."""

    def __init__(self, name: str, args: GcpTrackingArgs, opts: Options = None) -> None:
        super().__init__(name, opts)
        server = self._principal(args, args.get("namespace", NAME), NAME)
        upgrades = self._principal(args, schema.NAMESPACE, schema.ACCOUNT)
        before = pulumi.create_urn(name, _OF_JOBS)
        database = self._database(f"{name}-mlflow", args, before)
        login = GcpDatabaseLogin(
            f"{name}-mlflow",
            {
                "project": args["project"],
                "instance": database.instance,
                "principals": {"pods": server, "schema": upgrades},
            },
            self.child(),
        )
        admin = self._secret(f"{name}-mlflow-admin", args)
        rights = [
            *artifact_folder(
                self,
                f"{name}-mlflow",
                args["artifact_bucket"],
                server,
                [pulumi.Alias(name=f"{name}-artifacts", parent=before)],
            ),
            iam.on_secret(self, f"{name}-schema-reads", admin.id, _READS_SECRETS, upgrades),
            iam.on_secret(self, f"{name}-schema-fills", admin.id, _ADDS_VALUES, upgrades),
            self._backups(name, args["project"], upgrades),
        ]
        pods = self._principal(args, logins.NAMESPACE, logins.ACCOUNT)
        reader = iam.on_secret(self, f"{name}-logins-reads", admin.id, _READS_SECRETS, pods)
        # Readers of this output may read the secret.
        self.admin_secret = after(admin.id, [reader])
        self.artifact_uri = pulumi.Output.concat("gs://", args["artifact_bucket"], f"/{ARTIFACT_PREFIX}")
        uri = pulumi.Output.all(user=login.user, address=database.address).apply(
            lambda known: database_uri(**known, port=POSTGRES_PORT, database=DATABASE)
        )
        wanted: MlflowServerArgs = {
            "image": args["image"],
            "replicas": args["replicas"],
            "workers": args["workers"],
            "grants": grants(args["project"]),
            "secret_store": SECRET_STORE,
            # Pods that start before their permissions wait for these; so they may start later.
            "database_uri": after(uri, rights),
            "database_identity": login.email,
            "database_ca": database.authorities,
            "snapshots_of": pulumi.Output.concat(f"projects/{args['project']}/instances/", database.instance),
            "admin_secret": admin.id,
            "artifacts_destination": self.artifact_uri,
            "namespace": args.get("namespace", NAME),
        }
        made = MlflowServer(f"{name}-mlflow-server", wanted, self.child())
        self.url, self.namespace = made.url, made.namespace
        self.register_outputs(
            {"url": self.url, "admin_secret": self.admin_secret, "artifact_uri": self.artifact_uri}
        )

    def _backups(self, name: str, project: str, member: pulumi.Output[str]) -> gcp.projects.IAMMember:
        """A role to take backups of databases and wait for them; not to delete or restore one."""
        role = gcp.projects.IAMCustomRole(
            f"{name}-backups-role",
            role_id=sanitize(f"{name}-backups").replace("-", "_"),
            title=f"Back up the database of {name}",
            permissions=[
                "cloudsql.backupRuns.create",
                "cloudsql.backupRuns.list",
                "cloudsql.instances.get",
            ],
            opts=self.child(),
        )
        return iam.on_project(self, f"{name}-schema-backups", project, role.name, member)

    def _principal(self, args: GcpTrackingArgs, namespace: str, account: str) -> pulumi.Output[str]:
        """The pods of a service account; a valid IAM member once the cluster's workload pool exists."""
        known = pulumi.Output.all(number=args["project_number"], pool=args["workload_pool"])
        return known.apply(lambda of: pod_principal(args["project"], str(of["number"]), namespace, account))

    def _database(self, name: str, args: GcpTrackingArgs, before: pulumi.Input[str]) -> GcpDatabase:
        return GcpDatabase(
            name,
            {
                "region": args["region"],
                "formerly_below": before,
                "network_id": args["network_id"],
                "key_id": args["key_id"],
                "tier": args["tier"],
                "availability": args["availability"],
                "disk_gib": args["disk_gib"],
                "backup_retention_days": args.get("backup_retention_days", 7),
                "deletion_protection": args.get("deletion_protection", True),
                "last_backup": args.get("last_backup", True),
            },
            self.child(),
        )

    def _secret(self, name: str, args: GcpTrackingArgs) -> gcp.secretmanager.Secret:
        """A secret without a value, which stays in the region."""
        key_use = may_use_key(self, f"{name}-key", "secretmanager.googleapis.com", args["key_id"])
        return gcp.secretmanager.Secret(
            name,
            replication={
                "user_managed": {
                    "replicas": [
                        {
                            "location": args["region"],
                            "customer_managed_encryption": {"kms_key_name": args["key_id"]},
                        }
                    ]
                }
            },
            # A deleted secret is gone at once, and with it the login of MLflow's administrator.
            deletion_protection=args.get("deletion_protection", True),
            opts=self.child(pulumi.ResourceOptions(depends_on=[key_use])),
        )


def grants(project: str) -> GrantsArgs:
    """Access of pods to credentials; Google's libraries read the project from the variable."""
    usual = metadata_grants()
    return {
        "environment": {**usual["environment"], "GOOGLE_CLOUD_PROJECT": project},
        "agents": usual["agents"],
    }
