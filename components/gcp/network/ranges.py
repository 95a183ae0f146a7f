"""Address blocks of a stack's networks (pure arithmetic).

The range is cut into sixteen equal parts. Parts independent of the number of nodes have one part each, and
nothing moves when nodes, pods per node or pools change:

    parts 0-7    pods: a block per node, by the number of pods on it
    part  8      nodes; also the address at which they reach the control plane
    part  9      services of Kubernetes
    part  10     private service access: Cloud SQL, Managed Lustre, Filestore
    part  11     networks of machines with RDMA, for up to three zones: a sixteenth of the part for the second
                 gVNIC, and eight ranges of a thirty-second of the part for RDMA. A stack without a cluster
                 has none of them: its services of Cloud Run have the first quarter
    parts 12-15  networks of TCPX and TCPXO: eight ranges of half a part

    /16, 32 pods per node: /17 for pods = 512 nodes, /20 for nodes, 8 x /21 for TCPXO, 8 x /25 for RDMA
    /20, 32 pods per node: /21 for pods =  32 nodes, /24 for nodes, 8 x /25 for TCPXO, 8 x /29 for RDMA

The last two belong to networks of their own, which pools share (`infra.catalog.gcp.gpu_networks`). They are
not connected with each other, and yet no two of them overlap, as networks of one cluster must not.
"""

import ipaddress
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from infra.catalog.gcp import gpu_networks
from infra.catalog.gcp import network as limits
from infra.errors import UserError

ACCELERATOR_RANGES = 8
"""Networks or subnetworks beside the GPUs of a machine, at most."""
_POD_PARTS = 8


@dataclass(frozen=True)
class RdmaRanges:
    """The address blocks of machines with RDMA in a zone."""

    gvnic: str
    adapters: tuple[str, ...]
    """Eight equal blocks."""


@dataclass(frozen=True)
class NetworkRanges:
    """The address blocks of a stack, in CIDR notation, and their capacity."""

    nodes: str
    pods: str
    services: str
    services_access: str
    """Peered with the services that Google runs for the stack."""
    cloud_run: str
    """Of services of Cloud Run, in a stack without a cluster; /26 at least, as they require (Cloud Run
    documentation, "Direct VPC with a VPC network")."""
    rdma: tuple[RdmaRanges, ...]
    """By `gpu_networks.slot` of a zone."""
    accelerators: tuple[str, ...]
    """Eight equal blocks, of TCPX and TCPXO."""
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
        ipaddress.IPv4Network(beside_gpus[0]).num_addresses - gpu_networks.UNUSABLE,
    )
    return NetworkRanges(
        nodes=parts[0],
        pods=str(pods),
        services=parts[1],
        services_access=parts[2],
        cloud_run=str(next(ipaddress.IPv4Network(parts[3]).subnets(prefixlen_diff=2))),
        rdma=tuple(_rdma_ranges(parts[3])),
        accelerators=tuple(beside_gpus),
        max_nodes=fitting,
        max_pods=fitting * pods_per_node,
    )


def _rdma_ranges(part: str) -> Iterator[RdmaRanges]:
    """A quarter for gVNICs, and one for the adapters of each zone."""
    plain, *fast = ipaddress.IPv4Network(part).subnets(prefixlen_diff=2)
    for gvnic, quarter in zip(plain.subnets(prefixlen_diff=2), fast, strict=False):
        yield RdmaRanges(str(gvnic), tuple(str(one) for one in quarter.subnets(prefixlen_diff=3)))
