"""Experiment tracking without a cluster: MLflow on Cloud Run, behind Google's login, with Cloud SQL."""

from collections.abc import Mapping
from typing import NotRequired, TypedDict

import pulumi
import pulumi_gcp as gcp

from components.base import Component, Options
from components.gcp import iam
from components.gcp.jobs.program import START, VARIABLE, zipped
from components.gcp.propagation import settled
from components.gcp.tracking.artifacts import ARTIFACT_PREFIX, artifact_folder
from components.gcp.tracking.database import DATABASE, POSTGRES_PORT, GcpDatabase
from components.gcp.tracking.login import ACCOUNT_LENGTH, database_uri, database_user
from components.ordering import after
from infra.naming import sanitize
from smoke_training.names import IAP as PLUGIN

IAP = "iap.googleapis.com"
ASKED_BY = {"MLFLOW_TRACKING_AUTH": PLUGIN}
"""Settings of jobs of ours that use the server."""
VISITS = "roles/iap.httpsResourceAccessor"
_NAME = 40  # a service has a name of at most 49 characters, of which Pulumi takes eight
_MODULES = (
    "agents.gcp.cloud_run_mlflow.server",
    "agents.gcp.cloud_run_mlflow.metadata",
    "agents.mlflow_server.administrator",
    "agents.mlflow_server.bodies",
    "agents.mlflow_server.guard",
    "agents.mlflow_server.libpq",
    "agents.mlflow_server.record",
    "agents.mlflow_server.schema",
    "agents.mlflow_server.serve",
)
# Importing MLflow and checking the schema takes a quarter of a minute on one processor.
_PROBE_S, _PROBES = 10, 24


class OAuthClientArgs(TypedDict):
    """An OAuth client that Identity-Aware Proxy uses for browsers."""

    client_id: str
    """Id of the client."""
    client_secret: str
    """Its secret in Secret Manager, `projects/<project>/secrets/<name>`; the newest version."""


class GcpJobTrackingArgs(TypedDict):
    """Location of the server, and its storage."""

    project: str
    """Id of the project."""
    region: str
    """Region of server and database."""
    network: pulumi.Input[str]
    """Id of the network."""
    subnetwork: pulumi.Input[str]
    """Id of the subnetwork of the server's address."""
    services_network: pulumi.Input[str]
    """Id of the network, known once private service access exists."""
    artifact_bucket: pulumi.Input[str]
    """Name of the bucket, with uniform access."""
    key_id: pulumi.Input[str]
    """Key of the region; the database uses it."""
    project_number: pulumi.Input[str]
    """Number of the project."""
    login: OAuthClientArgs | None
    """OAuth client of the login; None: that of Google, for users of the project's organization."""
    image: pulumi.Input[str]
    """Image with MLflow, psycopg2 and google-cloud-storage, by digest."""
    replicas: int
    """Most instances at a time; none runs without requests."""
    workers: int
    """Worker processes of an instance, each with its own database connections."""
    tier: str
    """Machine tier of the database."""
    availability: str
    """`zonal`, or `regional` for a standby of the database in another zone."""
    disk_gib: int
    """First size of the database's disk in GiB; it grows automatically."""
    backup_retention_days: NotRequired[int]
    """Days of backups of the database, 1 to 365. Default: 7."""
    deletion_protection: NotRequired[bool]
    """Refuse to delete server and database. Default: yes."""
    last_backup: NotRequired[bool]
    """Take a backup of the database when it is deleted after all. Default: yes."""


class GcpJobTracking(Component):
    """An MLflow server that costs nothing without requests, and a small database that always runs.

    Every request passes Identity-Aware Proxy first: people log in with Google, jobs with a token that their
    account signed (`GcpTrackingVisitors` lists them). There is no load balancer: Cloud Run's own address is
    behind the proxy, so it is reachable from everywhere with a login, and from nowhere without. It cannot be
    limited to the network (`internal`): jobs run in a network of Google's, and people at home, both outside.
    MLflow has no users of its own then, and all admitted accounts see and change all runs of the stack.

    The server logs in to PostgreSQL as its own account, with tokens that its program renews
    (ADR 27); there is no password. So its processor is kept between requests as long as an instance
    exists; an instance without requests ends after some fifteen minutes. The first request after that waits
    while MLflow starts, some 20 seconds.

    Artifacts are read and written through the server, and not deleted; Cloud Storage counts replacing an
    object as deleting it. *Untested in a real project.*
    """

    url: pulumi.Output[str]
    """Address for browsers and clients."""
    service: pulumi.Output[str]
    """Name of the Cloud Run service."""

    def __init__(self, name: str, args: GcpJobTrackingArgs, opts: Options = None) -> None:
        super().__init__(name, opts)
        database = self._database(f"{name}-mlflow", args)
        account = iam.service_account(self, f"{name}-account", name, f"MLflow of {name}", most=ACCOUNT_LENGTH)
        user, ready = database_user(self, name, args["project"], database.instance, account)
        ready += artifact_folder(self, name, args["artifact_bucket"], account.member)
        uri = pulumi.Output.all(user=user, address=database.address).apply(
            lambda known: database_uri(**known, port=POSTGRES_PORT, database=DATABASE)
        )
        environment: dict[str, pulumi.Input[str]] = {
            "ARTIFACTS_DESTINATION": pulumi.Output.concat(
                "gs://", args["artifact_bucket"], f"/{ARTIFACT_PREFIX}"
            ),
            "DATABASE_CA": database.authorities,
            "DATABASE_IDENTITY": account.email,
            "DATABASE_URI": uri,
            "GOOGLE_CLOUD_PROJECT": args["project"],
            "WORKERS": str(args["workers"]),
            VARIABLE: zipped(_MODULES[0], _MODULES),
        }
        service = self._service(name, args, account.email, environment, ready)
        self.url = after(service.uri, [self._proxy(name, args, service), *self._login(name, args, service)])
        self.service = service.name
        self.register_declared()

    def _database(self, name: str, args: GcpJobTrackingArgs) -> GcpDatabase:
        return GcpDatabase(
            name,
            {
                "region": args["region"],
                "network_id": args["services_network"],
                "key_id": args["key_id"],
                "tier": args["tier"],
                "shared_core": True,
                "availability": args["availability"],
                "disk_gib": args["disk_gib"],
                "backup_retention_days": args.get("backup_retention_days", 7),
                "deletion_protection": args.get("deletion_protection", True),
                "last_backup": args.get("last_backup", True),
            },
            self.child(),
        )

    def _service(
        self,
        name: str,
        args: GcpJobTrackingArgs,
        email: pulumi.Output[str],
        environment: Mapping[str, pulumi.Input[str]],
        ready: list[pulumi.Resource],
    ) -> gcp.cloudrunv2.Service:
        return gcp.cloudrunv2.Service(
            sanitize(f"{name}-mlflow", max_length=_NAME),
            location=args["region"],
            description="MLflow, behind Identity-Aware Proxy",
            ingress="INGRESS_TRAFFIC_ALL",
            iap_enabled=True,
            invoker_iam_disabled=False,
            deletion_protection=args.get("deletion_protection", True),
            template={
                "service_account": email,
                "execution_environment": "EXECUTION_ENVIRONMENT_GEN2",
                "max_instance_request_concurrency": 80,
                "timeout": "300s",
                "scaling": {"min_instance_count": 0, "max_instance_count": args["replicas"]},
                "vpc_access": {
                    # Only to private addresses: Google's APIs are reached at their usual ones.
                    "egress": "PRIVATE_RANGES_ONLY",
                    "network_interfaces": [{"network": args["network"], "subnetwork": args["subnetwork"]}],
                },
                "containers": [
                    {
                        "image": args["image"],
                        "commands": ["python3"],
                        "args": ["-c", START],
                        "envs": [{"name": key, "value": value} for key, value in sorted(environment.items())],
                        "ports": {"container_port": 8080},
                        "resources": {
                            "limits": {"cpu": "1", "memory": "2Gi"},
                            "cpu_idle": False,
                            "startup_cpu_boost": True,
                        },
                        "startup_probe": {
                            "http_get": {"path": "/health"},
                            "period_seconds": _PROBE_S,
                            "timeout_seconds": _PROBE_S,
                            "failure_threshold": _PROBES,
                        },
                    }
                ],
            },
            opts=self.child(pulumi.ResourceOptions(depends_on=ready)),
        )

    def _proxy(
        self, name: str, args: GcpJobTrackingArgs, service: gcp.cloudrunv2.Service
    ) -> gcp.cloudrunv2.ServiceIamMember:
        """Only the proxy may call the service; the console would grant it this."""
        proxy = gcp.projects.ServiceIdentity(f"{name}-iap", service=IAP, opts=self.child())
        return gcp.cloudrunv2.ServiceIamMember(
            f"{name}-from-iap",
            location=args["region"],
            name=service.name,
            role="roles/run.invoker",
            member=proxy.member,
            opts=settled(self.child(), proxy.member),
        )

    def _login(
        self, name: str, args: GcpJobTrackingArgs, service: gcp.cloudrunv2.Service
    ) -> list[gcp.iap.Settings]:
        """The client of the proxy for this service, if it has its own.

        Google's admits users of the project's organization alone; a project without one has none, and
        answers "Empty Google Account OAuth client ID(s)/secret(s)" (Identity-Aware Proxy documentation, "Use
        custom OAuth clients"). Jobs log in with tokens of their accounts, without a client.
        """
        client = args["login"]
        if client is None:
            return []
        _, project, _, secret = client["client_secret"].split("/")
        read = gcp.secretmanager.get_secret_version_access_output(
            project=project, secret=secret, opts=pulumi.InvokeOutputOptions(parent=self)
        )
        place = f"/iap_web/cloud_run-{args['region']}/services/"
        return [
            gcp.iap.Settings(
                f"{name}-login",
                name=pulumi.Output.concat("projects/", args["project_number"], place, service.name),
                access_settings={
                    "oauth_settings": {
                        "client_id": client["client_id"],
                        "client_secret": pulumi.Output.secret(read.secret_data),
                    }
                },
                opts=self.child(),
            )
        ]


class GcpTrackingVisitorsArgs(TypedDict):
    """The visitors."""

    region: str
    """Region of the service."""
    service: pulumi.Input[str]
    """Name of the Cloud Run service."""
    members: Mapping[str, pulumi.Input[str]]
    """IAM members by a short name of each: people, and the accounts of their jobs."""


class GcpTrackingVisitors(Component):
    """The permission to pass Identity-Aware Proxy, one for each visitor.

    *Untested in a real project.*
    """

    ready: list[pulumi.Resource]

    def __init__(self, name: str, args: GcpTrackingVisitorsArgs, opts: Options = None) -> None:
        super().__init__(name, opts)
        self.ready = [
            gcp.iap.WebCloudRunServiceIamMember(
                f"{name}-{who}",
                location=args["region"],
                cloud_run_service_name=args["service"],
                role=VISITS,
                member=member,
                opts=self.child(),
            )
            for who, member in args["members"].items()
        ]
        self.register_outputs({})
