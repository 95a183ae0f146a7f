"""The pod of the MLflow server and its network policy. Pure: arguments in, specs out."""

from collections.abc import Mapping, Sequence
from typing import Any, NotRequired, TypedDict

import pulumi
from pulumi_kubernetes.core.v1 import ContainerArgsDict, EnvVarArgsDict, PodSpecArgsDict, ProbeArgsDict
from pulumi_kubernetes.networking.v1 import (
    NetworkPolicyEgressRuleArgsDict,
    NetworkPolicyPeerArgsDict,
    NetworkPolicySpecArgsDict,
)

from agents.mlflow_server import administrator, bodies, guard, libpq, record, schema, schema_job, serve
from components.kubernetes.network_policies import out_to_dns
from components.kubernetes.programs.program import ROOT, Program, program_volume
from components.kubernetes.queueing.tenancy import TRACKING_LABEL

NAME = "mlflow"
PORT = 5000

# Resident set of MLflow 3.17.2 at rest, measured: 310 MiB without workers, 257 MiB per worker. Twice that per
# worker leaves room for requests; one that leaks meets the limit of its pod and not the memory of the node.
BASE_MEMORY_MIB = 512
WORKER_MEMORY_MIB = 512


class AgentArgs(TypedDict):
    """An agent on every node that issues cloud credentials to pods."""

    cidr: str
    """Its address."""
    port: int
    """Its TCP port."""


class GrantsArgs(TypedDict):
    """Cloud permissions of a cluster's pods, which belong to service accounts."""

    environment: Mapping[str, str]
    """Variables that the cloud's libraries read, such as its region."""
    agents: Sequence[AgentArgs]
    """The agents that issue credentials."""


class DoorArgs(TypedDict):
    """A load balancer that brings browsers to the server."""

    host: str
    """The name in the address that browsers show."""
    node_port: int
    """The port of the nodes that it connects to."""
    cidrs: Sequence[str]
    """Its own addresses only."""
    node_labels: Mapping[str, str]
    """The nodes that it connects to; the server runs on these."""


class MlflowServerArgs(TypedDict):
    """Image, size, data and secrets of the server."""

    image: pulumi.Input[str]
    """Image with MLflow's `auth` extra, psycopg2 and what `secret_store` imports, by digest."""
    replicas: pulumi.Input[int]
    workers: int
    """Worker processes per replica; each takes 512 MiB."""
    grants: GrantsArgs
    """Cloud permissions of the server."""
    database_uri: pulumi.Input[str]
    """SQLAlchemy URI without a password."""
    database_secret: NotRequired[pulumi.Input[str]]
    """Secret with the password of the database. Default: tokens, or none."""
    database_identity: NotRequired[pulumi.Input[str]]
    """Identity that connects with short-lived tokens, as the store names it. Default: none."""
    database_ca: NotRequired[pulumi.Input[str]]
    """CA certificates (PEM) of the database's certificate. Default: those of libpq."""
    secret_store: str
    """Text of `secret_store.py`, with which the program reads secrets (see `serve.CredentialStore`)."""
    snapshots_of: NotRequired[pulumi.Input[str]]
    """The cloud's name of the database, of which the store takes snapshots. Default: none are taken."""
    admin_secret: pulumi.Input[str]
    """Secret of the first user, which the Job of `MlflowSchema` fills when it is empty."""
    artifacts_destination: pulumi.Input[str]
    """URI of the object store for artifacts."""
    keep_connections: NotRequired[bool]
    """Hold database connections open between requests. Default: yes; no lets a database pause."""
    namespace: NotRequired[str]
    """Default: mlflow."""
    door: NotRequired[DoorArgs]
    """Default: none, users forward a port."""


def labels() -> dict[str, str]:
    """Selector of the server's pods."""
    return {"app.kubernetes.io/name": NAME, "app.kubernetes.io/part-of": "trainstack"}


def service_host(namespace: str) -> str:
    """DNS name of the server inside the cluster."""
    return f"{NAME}.{namespace}.svc.cluster.local"


def accepted(namespace: str, door: DoorArgs | None) -> dict[str, str]:
    """Variables with the Host headers the server accepts: its names in the cluster, a port-forward, the door.

    MLflow rejects others, so that a web page cannot reach it through a name it controls (DNS rebinding). It
    also rejects changes by a page of another origin than this machine, whatever the Host header
    (3.17.2, server/security_utils.py, should_block_cors_request), so the door is an origin, too.
    """
    names = (service_host(namespace), f"{NAME}.{namespace}.svc", f"{NAME}.{namespace}")
    hosts = [*(f"{name}:{PORT}" for name in names), "localhost:*", "127.0.0.1:*"]
    if door is None:
        return {"ALLOWED_HOSTS": ",".join(hosts)}
    return {
        "ALLOWED_HOSTS": ",".join([*hosts, door["host"]]),
        "MLFLOW_SERVER_CORS_ALLOWED_ORIGINS": f"https://{door['host']}",
    }


def environment(args: MlflowServerArgs) -> list[EnvVarArgsDict]:
    """The environment of the container; it has the names of secrets, not their values."""
    values: dict[str, pulumi.Input[str]] = {
        # A port-forward arrives on the pod's own loopback (containerd internal/cri/server,
        # sandbox_portforward_linux.go); the network policy restricts the others.
        "HOST": "0.0.0.0",  # noqa: S104
        "PORT": str(PORT),
        "WORKERS": str(args["workers"]),
        **database(args),
        "ARTIFACTS_DESTINATION": args["artifacts_destination"],
        **accepted(args.get("namespace", NAME), args.get("door")),
    }
    if not args.get("keep_connections", True):
        values["MLFLOW_SQLALCHEMYSTORE_POOLCLASS"] = "NullPool"
    return [{"name": name, "value": value} for name, value in values.items()]


def program(module: str, secret_store: str) -> Program:
    """The programs of the server's image; `module` is the one that runs."""
    modules = [
        one.__name__ for one in (administrator, bodies, guard, libpq, record, schema, schema_job, serve)
    ]
    return Program(
        module,
        imports=[name for name in modules if name != module],
        files={f"{serve.__package__}.secret_store": secret_store},
    )


def database(args: MlflowServerArgs) -> dict[str, pulumi.Input[str]]:
    """Variables of the database, its login and the cloud; they name secrets and have none."""
    found: dict[str, pulumi.Input[str]] = {
        "DATABASE_URI": args["database_uri"],
        **args["grants"]["environment"],
        "HOME": "/tmp",  # noqa: S108 - the pod's own emptyDir; the root is read-only
    }
    if "database_secret" in args:
        found["DATABASE_SECRET"] = args["database_secret"]
    if "database_identity" in args:
        found["DATABASE_IDENTITY"] = args["database_identity"]
    if "database_ca" in args:
        found["DATABASE_CA"] = args["database_ca"]
    return found


def probe(period_s: int, failures: int, timeout_s: int) -> ProbeArgsDict:
    """Probe /health, which needs neither a user nor a known host nor the database."""
    return {
        "http_get": {"path": "/health", "port": "http"},
        "period_seconds": period_s,
        "failure_threshold": failures,
        "timeout_seconds": timeout_s,
    }


def container(args: MlflowServerArgs) -> ContainerArgsDict:
    """The server's container: no privileges, nothing writable but /tmp, memory for its workers."""
    memory = f"{BASE_MEMORY_MIB + WORKER_MEMORY_MIB * args['workers']}Mi"
    return {
        "name": NAME,
        "image": args["image"],
        "working_dir": ROOT,
        "command": ["python", "-m", serve.__name__],
        "env": environment(args),
        "ports": [{"name": "http", "container_port": PORT}],
        "security_context": {
            "allow_privilege_escalation": False,
            "read_only_root_filesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "resources": {
            "requests": {"cpu": f"{250 * args['workers']}m", "memory": memory},
            "limits": {"memory": memory},
        },
        # Five minutes to start: a database may have to resume.
        "startup_probe": probe(period_s=5, failures=60, timeout_s=5),
        "readiness_probe": probe(period_s=10, failures=3, timeout_s=5),
        "liveness_probe": probe(period_s=20, failures=6, timeout_s=10),
        "volume_mounts": [
            {"name": "tmp", "mount_path": "/tmp"},  # noqa: S108 - an emptyDir of this pod
            {"name": "program", "mount_path": ROOT, "read_only": True},
        ],
    }


def pod(args: MlflowServerArgs, account: pulumi.Input[str], config: pulumi.Input[str]) -> PodSpecArgsDict:
    """The pod: `restricted` of Pod Security, spread over zones, the program from the ConfigMap `config`."""
    files: Any = program_volume(program(serve.__name__, args["secret_store"]), config)
    spec: PodSpecArgsDict = {
        "service_account_name": account,
        "automount_service_account_token": False,
        # Otherwise Kubernetes sets MLFLOW_PORT=tcp://... for the Service, which MLflow reads as its option.
        "enable_service_links": False,
        "security_context": {
            "run_as_non_root": True,
            "run_as_user": 10001,
            "run_as_group": 10001,
            "fs_group": 10001,
            "seccomp_profile": {"type": "RuntimeDefault"},
        },
        "topology_spread_constraints": [
            {
                "max_skew": 1,
                "topology_key": key,
                "when_unsatisfiable": "ScheduleAnyway",
                "label_selector": {"match_labels": labels()},
            }
            for key in ("topology.kubernetes.io/zone", "kubernetes.io/hostname")
        ],
        "containers": [container(args)],
        "volumes": [
            # An artifact sent through the server lies here before it goes to the bucket.
            {"name": "tmp", "empty_dir": {"size_limit": "10Gi"}},
            files,
        ],
    }
    if "door" in args:
        spec["node_selector"] = args["door"]["node_labels"]
    return spec


def network_policy(agents: Sequence[AgentArgs], door: DoorArgs | None) -> NetworkPolicySpecArgsDict:
    """Ingress: clients' namespaces, the door. Egress: DNS, database, HTTPS, agents of credentials."""
    database_and_cloud: NetworkPolicyEgressRuleArgsDict = {
        "to": [{"ip_block": {"cidr": "0.0.0.0/0"}}],
        "ports": [{"port": 5432, "protocol": "TCP"}, {"port": 443, "protocol": "TCP"}],
    }
    rights: list[NetworkPolicyEgressRuleArgsDict] = [
        {"to": [{"ip_block": {"cidr": agent["cidr"]}}], "ports": [{"port": agent["port"], "protocol": "TCP"}]}
        for agent in agents
    ]
    through_door: list[NetworkPolicyPeerArgsDict] = [
        {"ip_block": {"cidr": cidr}} for cidr in (door["cidrs"] if door else ())
    ]
    return {
        "pod_selector": {"match_labels": labels()},
        "policy_types": ["Ingress", "Egress"],
        "ingress": [
            {
                "from_": [
                    {"namespace_selector": {"match_labels": {TRACKING_LABEL: "allowed"}}},
                    *through_door,
                ],
                "ports": [{"port": PORT, "protocol": "TCP"}],
            }
        ],
        "egress": [*out_to_dns(), database_and_cloud, *rights],
    }
