"""Arguments and rules that pools with and without GPUs share."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NotRequired, TypedDict

import pulumi

from infra.catalog.gcp import facts, pools
from infra.catalog.pools import order_problems
from infra.errors import Problem


class PoolArgs(TypedDict):
    """Arguments of every pool."""

    pool: str
    """The pool's name: the value of the label `trainstack.dev/pool` on its nodes."""
    purpose: str
    """Purpose of the pool, such as `training`; a label on its nodes."""
    cluster: pulumi.Input[str]
    """The GKE cluster to join, by its name."""
    location: pulumi.Input[str]
    """Region of the cluster."""
    zones: Sequence[str]
    """Zones the nodes may be in."""
    machine: str
    """A machine type of Compute Engine."""
    node_service_account: pulumi.Input[str]
    """E-mail of the account of nodes: it writes logs and metrics and pulls images, no more."""
    boot_disk_key: NotRequired[pulumi.Input[str]]
    """Key of Cloud KMS for boot disks, which Compute Engine's agent may use. Default: Google's own keys."""
    disk_gib: int
    """Boot disk; it holds container images."""
    purchase: str
    """Kind of purchase of the nodes."""
    min_nodes: int
    """Fewest nodes; 0 lets the pool cost nothing when idle."""
    max_nodes: int
    """Most nodes, of all zones together."""
    pods_per_node: int
    """Most pods of a node; its range of addresses has twice as many. A change replaces the pool."""
    resource_labels: Mapping[str, str]
    """Labels of machines and disks, for cost reports. A change does not affect running nodes."""


def common_problems(args: PoolArgs) -> Iterator[Problem]:
    """Problems of any pool."""
    pool, least, most = args["pool"], args["min_nodes"], args["max_nodes"]
    yield from order_problems(f"{pool}.min_nodes", least, f"{pool}.max_nodes", most)
    yield from pools.size_problems(f"{pool}.min_nodes", least, f"{pool}.max_nodes", most)
    yield from facts.limits["pods_per_node"].problems(f"{pool}.pods_per_node", args["pods_per_node"])
    yield from facts.limits["boot_disk_gib"].problems(f"{pool}.disk_gib", args["disk_gib"])
    if not args["zones"]:
        yield Problem(f"{pool}.zones", [], "needs a zone", "Name one.", code="pool-without-zones")
