"""Networks beside the GPUs of a stack on Google Cloud: one set for machines that can share it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pulumi

from components.gcp.network.accelerators import (
    GcpAcceleratorNetworks,
    GcpAcceleratorNetworksArgs,
    NodeNetwork,
)
from components.gcp.network.interfaces import run_networks
from components.gcp.network.objects import GcpNetworkObjects, GcpNetworkObjectsArgs
from components.gcp.network.ranges import NetworkRanges
from infra.catalog.gcp import facts
from infra.catalog.gcp.gpu_networks import PLAIN, FastPool, first_zone, object_part, set_of, slot


@dataclass(frozen=True)
class NetworkSets:
    """The sets of a stack, by their names."""

    stack: str
    pools: Sequence[FastPool]
    """The pools whose networks the stack makes."""
    sets: Mapping[str, GcpAcceleratorNetworks]

    def attachments(self, pool: str) -> list[NodeNetwork] | None:
        """The additional networks of a pool; None where the stack makes none."""
        one = self._pool(pool)
        if one is None:
            return None
        nics = facts.gpu_networks[one.machine].total
        return list(self.sets[set_of(one.machine, one.zone)].attachments[:nics])

    def objects(self, inside: pulumi.ResourceOptions) -> list[pulumi.Resource]:
        """The networks as objects of the cluster."""
        made: list[pulumi.Resource] = []
        for name, networks in self.sets.items():
            args: GcpNetworkObjectsArgs = {"networks": networks.objects}
            opts = inside
            if name == PLAIN:
                args["formerly"] = [pool.name for pool in self.pools]
                opts = _formerly([f"{self.stack}-{pool.name}-networks" for pool in self.pools], opts)
            made.append(GcpNetworkObjects(f"{self.stack}-{name}-networks", args, opts))
        return made

    def _pool(self, name: str) -> FastPool | None:
        return next((one for one in self.pools if one.name == name), None)


def pod_networks(pools: Sequence[FastPool], first_rdma_zone: str | None) -> dict[str, list[str]]:
    """Networks that pods of a run name, by pool, of the pools whose networks the stack makes."""
    first = first_zone(pools, first_rdma_zone)
    return {pool.name: run_networks(pool.machine, _part(pool, first)) for pool in pools if pool.classic}


def gpu_networks(
    stack: str,
    pools: Sequence[FastPool],
    *,
    first_rdma_zone: str | None,
    project: str,
    region: str,
    ranges: NetworkRanges,
    opts: pulumi.ResourceOptions,
) -> NetworkSets:
    """The sets for the pools whose networks the stack makes.

    The set for TCPX and TCPXO continues the networks of the first pool that had some of its own, so that the
    nodes of that pool stay (docs/adr/0059).
    """
    classic = [pool for pool in pools if pool.classic]
    members: dict[str, list[FastPool]] = {}
    for pool in classic:
        members.setdefault(set_of(pool.machine, pool.zone), []).append(pool)
    first = first_zone(classic, first_rdma_zone)
    sets = {}
    for name, own in members.items():
        zone, plain = own[0].zone, name == PLAIN
        rdma = ranges.rdma[slot(zone)]
        args: GcpAcceleratorNetworksArgs = {
            "project": project,
            "region": region,
            "zone": zone,
            "machines": list(dict.fromkeys(pool.machine for pool in own)),
            "gvnic": rdma.gvnic,
            "accelerators": ranges.accelerators if plain else rdma.adapters,
            "part": _part(own[0], first),
        }
        former = [f"{stack}-{pool.name}" for pool in own] if plain else []
        sets[name] = GcpAcceleratorNetworks(f"{stack}-{name}", args, _formerly(former, opts))
    return NetworkSets(stack, classic, sets)


def _part(pool: FastPool, first: str | None) -> str:
    plain = set_of(pool.machine, pool.zone) == PLAIN
    return "" if plain else object_part(pool.zone, first)


def _formerly(names: Sequence[str], opts: pulumi.ResourceOptions) -> pulumi.ResourceOptions:
    former = [pulumi.Alias(name=name) for name in names]
    return pulumi.ResourceOptions.merge(opts, pulumi.ResourceOptions(aliases=[*former]))
