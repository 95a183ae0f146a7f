"""Address blocks of a stack's networks (pure arithmetic).

The range is cut into sixteen equal parts. Parts independent of the number of nodes have one part each, and
nothing moves when nodes, pods per node or pools change:

    parts 0-7    pods: a block per node, by the number of pods on it
    part  8      nodes; also the address at which they reach the control plane
    part  9      services of Kubernetes
    part  10     private service access: Cloud SQL, Managed Lustre, Filestore
    part  11     the network of the second gVNIC of A3 Ultra and A4
    parts 12-15  the networks beside GPUs: eight ranges of half a part

    /16, 32 pods per node: /17 for pods = 512 nodes, /20 for nodes, 8 x /21 beside GPUs
    /20, 32 pods per node: /21 for pods =  32 nodes, /24 for nodes, 8 x /25 beside GPUs

The last two belong to networks of their own, one set for each pool. They are not connected with each other,
so pools have the same ranges; but one machine has addresses in all of them and in the cluster's network, and
ranges of one machine must not overlap (GKE documentation, "Set up multi-network support for Pods").
"""

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass

from infra.catalog.gcp import network as limits
from infra.errors import UserError

ACCELERATOR_RANGES = 8
"""Networks or subnetworks beside the GPUs of a machine, at most."""
# A subnetwork's first two and last two addresses are Google's own (VPC documentation, "Unusable addresses in
# IPv4 subnet ranges").
_UNUSABLE = 4
_POD_PARTS = 8


@dataclass(frozen=True)
class NetworkRanges:
    """The address blocks of a stack, in CIDR notation, and their capacity."""

    nodes: str
    pods: str
    services: str
    services_access: str
    """Peered with the services that Google runs for the stack."""
    gvnic: str
    accelerators: tuple[str, ...]
    """Eight equal blocks."""
    max_nodes: int
    """Nodes that fit, of those with `pods_per_node`."""
    max_pods: int
    """Pods on all of them."""


def plan_ranges(cidr: str, *, pods_per_node: int, nodes: Mapping[int, int] | None = None) -> NetworkRanges:
    """The ranges of a stack's networks in `cidr`, /16 to /20.

    `nodes` is the most nodes by the number of pods on each. Raises UserError with every
    problem of the range, or with the arithmetic when they do not fit.
    """
    if problems := list(limits.range_problems("cidr", cidr)):
        raise UserError(problems)
    if problems := list(limits.room_problems("cidr", cidr, nodes or {})):
        raise UserError(problems)
    network = ipaddress.IPv4Network(cidr)
    (pods, _) = network.subnets(prefixlen_diff=limits.POD_BITS)
    parts = [str(part) for part in network.subnets(prefixlen_diff=limits.SERVICES_BITS)][_POD_PARTS:]
    halves = [str(half) for half in network.subnets(prefixlen_diff=limits.SERVICES_BITS + 1)]
    beside_gpus = halves[-ACCELERATOR_RANGES:]
    fitting = min(
        pods.num_addresses // limits.pod_addresses(pods_per_node),
        ipaddress.IPv4Network(beside_gpus[0]).num_addresses - _UNUSABLE,
    )
    return NetworkRanges(
        nodes=parts[0],
        pods=str(pods),
        services=parts[1],
        services_access=parts[2],
        gvnic=parts[3],
        accelerators=tuple(beside_gpus),
        max_nodes=fitting,
        max_pods=fitting * pods_per_node,
    )
