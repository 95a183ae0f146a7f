"""A pool of the spec as the flavor that queues hand out."""

from collections.abc import Sequence

from components.kubernetes.accelerators import POOL_LABEL
from components.kubernetes.offers import NodeOffer
from components.kubernetes.queueing.quotas import FlavorArgs
from infra.catalog.kubernetes.kueue import HOSTNAME_LABEL
from infra.stackspec.layouts import PoolSpec
from infra.stackspec.purchases import CapacityBlock, Reserved
from stacks.windows import window_of


def flavor_of(
    pool: PoolSpec, offer: NodeOffer, usd_per_hour: float | None, *, layers: Sequence[str], drain_minutes: int
) -> FlavorArgs:
    """The flavor of a pool whose nodes offer `offer`, at an expected price of one node.

    `layers` are the node labels of the cloud's network layers, from the widest one. Jobs leave a Capacity
    Block `drain_minutes` before its end.
    """
    made: FlavorArgs = {
        **offer,  # type: ignore[typeddict-item]  # the keys that are not required follow
        "name": pool.name,
        "node_labels": {POOL_LABEL: pool.name},
        "max_nodes": pool.max_nodes,
        "preference": pool.preference,
        "own_queue": pool.own_queue,
    }
    if pool.teams is not None:
        made["teams"] = pool.teams
    if isinstance(pool.purchase, Reserved | CapacityBlock):
        made["usd_per_hour"] = 0.0  # paid whether a node runs or not
    elif usd_per_hour is not None:
        made["usd_per_hour"] = usd_per_hour
    topology = topology_of(pool, layers)
    if topology:
        made["topology"], made["fixed_size"] = topology, True
    window = window_of(pool, drain_minutes)
    if window is not None:
        made["window"] = window
    return made


def topology_of(pool: PoolSpec, layers: Sequence[str]) -> Sequence[str]:
    """The levels by which the queue places jobs of a pool whose nodes have these labels; empty: it does not.

    Kueue sees only nodes that exist, so the pool must have a fixed size: a job for future nodes would wait
    for ever. In a queue of several pools, one with levels takes only jobs that ask for a level, and those
    get no other pool; so it must have a queue of its own, where every job is placed by levels
    (sigs.k8s.io/kueue@v0.19.2 pkg/scheduler/flavorassigner/tas_flavorassigner.go,
    `checkPodSetAndFlavorMatchForTAS`).
    """
    fits = pool.rdma and pool.own_queue and pool.min_nodes == pool.max_nodes
    return [*layers, HOSTNAME_LABEL] if fits and layers else []
