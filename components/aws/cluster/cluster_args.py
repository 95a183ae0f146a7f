"""Arguments of an EKS cluster, and combinations that AWS rejects or that are insecure."""

import re
from collections.abc import Mapping, Sequence
from typing import NotRequired, TypedDict

import pulumi

from components.aws.cluster.addons import addon_problems
from components.aws.pools.live_size import LiveSizeArgs, shrinking_problems
from infra.catalog.aws import access, facts, pools
from infra.catalog.aws.model import EksAddon
from infra.catalog.clients import api_access_problems
from infra.catalog.pools import order_problems
from infra.errors import Problem

# A Graviton family has a `g` right behind its generation: m7g, c7gn, g5g (EC2 instance naming conventions).
_GRAVITON = re.compile(r"[a-z]+\d+g[a-z]*\.")


class SystemPoolArgs(TypedDict):
    """The nodes that run the cluster's own services, never training."""

    machine: str
    """An EC2 type without an accelerator."""
    min_nodes: int
    """Fewest nodes, also at creation."""
    max_nodes: int
    """Most nodes."""
    subnet_ids: NotRequired[Sequence[pulumi.Input[str]]]
    """Those of the cluster's subnets in which the nodes are, such as those of the zone of their pods' disks.
    Default: all."""
    live: NotRequired[LiveSizeArgs]
    """The node group as it is now; absent before it exists."""


class AwsClusterArgs(TypedDict):
    """Arguments of an `AwsCluster`."""

    region: str
    """The provider's region."""
    name: str
    """The cluster's name, unique per account and region: at most 100 letters, digits, dashes, underscores."""
    kubernetes_version: str
    """Minor version, such as `1.34`, in EKS standard support."""
    subnet_ids: pulumi.Input[Sequence[pulumi.Input[str]]]
    """Private subnets in at least two zones, with a route to the internet."""
    endpoint_public_access_cidrs: Sequence[str]
    """Ranges that may reach the API from the internet; empty closes the public endpoint."""
    admin_principal_arns: Sequence[str]
    """IAM roles or users that administer the cluster, the one that deploys included; at least one."""
    log_retention_days: int
    """Days that control-plane logs are kept: one of the periods of CloudWatch Logs."""
    system_pool: SystemPoolArgs
    """The nodes for the cluster's own services."""
    addons: Sequence[str]
    """EKS add-ons by name."""
    addon_versions: NotRequired[Mapping[str, str]]
    """Versions of add-ons; the others get EKS's default for the cluster at their creation."""
    node_image: NotRequired[str]
    """Release of EKS's node images, such as `1.35.6-20260714`. Default: the newest when the group is made."""
    disk_key_arn: NotRequired[str]
    """Existing key of node disks and volumes. Default: that of AWS for EBS."""
    tags: NotRequired[Mapping[str, str]]
    """Tags of instances, their disks and interfaces, which the provider cannot set. A change replaces every
    system node."""
    launch_tags: NotRequired[Mapping[str, str]]
    """Tags of instances that start from now on; a change does not affect running nodes."""
    deletion_protection: NotRequired[bool]
    """Let EKS refuse to delete the cluster until this is switched off."""


def is_graviton(instance_type: str) -> bool:
    """Return whether the type has an arm64 processor."""
    return _GRAVITON.match(instance_type) is not None


def cluster_problems(args: AwsClusterArgs, known_addons: Mapping[str, EksAddon]) -> list[Problem]:
    """Everything in `args` that AWS would reject or that would leave the cluster unusable or open."""
    pool = args["system_pool"]
    least, most = pool["min_nodes"], pool["max_nodes"]
    return [
        *addon_problems(args["addons"], known_addons),
        *access.cluster_name_problems("name", args["name"]),
        *api_access_problems("endpoint_public_access_cidrs", args["endpoint_public_access_cidrs"]),
        *access.admin_problems("admin_principal_arns", args["admin_principal_arns"]),
        *facts.limits["log_retention_days"].problems("log_retention_days", args["log_retention_days"]),
        *pools.size_problems("system_pool.min_nodes", least, "system_pool.max_nodes", most),
        *order_problems("system_pool.min_nodes", least, "system_pool.max_nodes", most),
        *shrinking_problems("system_pool.max_nodes", most, [pool["live"]] if "live" in pool else []),
    ]
