"""Arguments of a GKE cluster, and combinations that GKE rejects or that are insecure."""

from collections.abc import Mapping, Sequence
from typing import NotRequired, TypedDict

import pulumi

from infra.catalog.gcp import access, clusters, facts, network, pools
from infra.catalog.gcp.gke import maintenance_problems
from infra.catalog.pools import cpu_type_problems, once_problems, order_problems
from infra.errors import Problem

_ENDPOINTS = ("dns", "ip")
_CHANNELS = ("rapid", "regular", "stable", "extended")


class MaintenanceArgs(TypedDict):
    """Maintenance windows for upgrades."""

    days: Sequence[str]
    """Days of the week, such as `SA`."""
    start: str
    """Start of windows, in UTC, such as `02:00`."""
    hours: int
    """Length of a window in hours."""
    hold_nodes: bool
    """Whether nodes keep their version, and the control plane its minor version, until its support ends."""


class SystemPoolArgs(TypedDict):
    """The nodes that run the cluster's own services, never training."""

    machine: str
    """Machine type without an accelerator, such as `e2-standard-4`."""
    min_nodes: int
    """Fewest nodes, over all zones."""
    max_nodes: int
    """Most nodes, over all zones."""


class GcpClusterArgs(TypedDict):
    """Arguments of a `GcpCluster`."""

    project: str
    """The project's id."""
    project_number: pulumi.Input[str]
    """The project's number, which is part of the names of Google's own service accounts."""
    region: str
    """The region of control plane and nodes; the provider's."""
    name: str
    """The cluster's name, unique per project and region: at most 40 characters."""
    kubernetes_version: str
    """Least minor version of the control plane, such as `1.35`."""
    channel: str
    """Release channel: `rapid`, `regular`, `stable` or `extended`."""
    network: pulumi.Input[str]
    """The VPC network's id."""
    subnetwork: pulumi.Input[str]
    """The id of the subnetwork of nodes, with a route to the internet."""
    pod_range_name: pulumi.Input[str]
    """The subnetwork's secondary range for pods."""
    service_range_name: pulumi.Input[str]
    """The subnetwork's secondary range for services."""
    zones: Sequence[str]
    """Zones of nodes, unless a pool has its own."""
    pods_per_node: int
    """Most pods of a node, 8 to 256; cannot be changed."""
    endpoint: str
    """`dns` (a name, for those that IAM admits) or `ip` (a public address, for `api_access`)."""
    api_access: Sequence[str]
    """Ranges that reach the public address; empty with `dns`."""
    admins: Sequence[str]
    """IAM members that administer the cluster, the one that deploys included; at least one."""
    own_bindings: NotRequired[str]
    """Title of their bindings, which no other stack has (`components.gcp.iam.on_project`), for several stacks
    of one project with the same administrators. Default: bindings without a condition."""
    maintenance: MaintenanceArgs
    """Its maintenance windows."""
    log_retention_days: int
    """Days that logs of the control plane are kept, 1 to 3650."""
    system_pool: SystemPoolArgs
    """The nodes for the cluster's own services."""
    multi_networking: NotRequired[bool]
    """Whether pods may have interfaces besides `eth0` by Network objects: for pools with networks of ours.
    Cannot be changed. Default: no."""
    default_class: NotRequired[bool]
    """Whether the ComputeClass `default` applies to pools and pods without another. Default: no."""
    checkpoint_addon: NotRequired[bool]
    """Whether multi-tier checkpointing is installed. Default: no."""
    readiness_addon: NotRequired[bool]
    """Whether the Node Readiness Controller is installed. Default: no."""
    groups: NotRequired[str]
    """`gke-security-groups@DOMAIN`: Google groups that RBAC may name. Default: users alone."""
    notifications: NotRequired[pulumi.Input[str]]
    """The id of a Pub/Sub topic for upgrades and security bulletins. Default: none."""
    labels: NotRequired[Mapping[str, str]]
    """Labels of machines and disks of the system pool, which the provider's default labels do not reach."""
    deletion_protection: NotRequired[bool]
    """Refuse to delete the cluster until this is switched off. Default: no."""


def cluster_problems(args: GcpClusterArgs) -> list[Problem]:
    """Everything in `args` that GKE would reject or that would leave the cluster unusable or open."""
    pool, maintenance = args["system_pool"], args["maintenance"]
    least_path, least = "system_pool.min_nodes", pool["min_nodes"]
    most_path, most = "system_pool.max_nodes", pool["max_nodes"]
    problems = [
        *clusters.name_problems("name", args["name"]),
        *network.zone_problems("zones", args["region"], args["zones"]),
        *once_problems("zones", args["zones"]),
        *_one_of("channel", args["channel"], _CHANNELS),
        *_one_of("endpoint", args["endpoint"], _ENDPOINTS),
        *network.api_problems("endpoint", args["endpoint"], "api_access", args["api_access"]),
        *access.admin_problems("admins", args["admins"]),
        *maintenance_problems(
            "maintenance.days", maintenance["days"], "maintenance.hours", maintenance["hours"]
        ),
        *cpu_type_problems("system_pool.machine", pool["machine"], facts.cpu_types),
        *order_problems(least_path, least, most_path, most),
        *pools.size_problems(least_path, least, most_path, most),
    ]
    if "groups" in args:
        problems += clusters.group_problems("groups", args["groups"])
    return problems


def _one_of(path: str, value: str, known: Sequence[str]) -> list[Problem]:
    if value in known:
        return []
    return [Problem(path, value, "unknown", f"Choose from {', '.join(known)}.", code="unknown-gke-choice")]
