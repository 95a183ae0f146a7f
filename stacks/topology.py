"""Where the queue places jobs by the layers of the network: the pools for which it can."""

from collections.abc import Sequence

from infra.catalog.kubernetes.kueue import HOSTNAME_LABEL
from infra.stackspec.layouts import PoolSpec


def topology_of(pool: PoolSpec, layers: Sequence[str]) -> Sequence[str]:
    """The levels by which the queue places jobs of a pool whose nodes have these labels; empty: it does not.

    Kueue sees only nodes that exist, so that a pool has a fixed size: a job for nodes that are to come would
    wait for ever. In a queue of several pools, one with levels takes only jobs that ask for a level, and
    those are given no other pool; so it has a queue of its own, where every job is placed by them
    (sigs.k8s.io/kueue@v0.19.2 pkg/scheduler/flavorassigner/tas_flavorassigner.go,
    `checkPodSetAndFlavorMatchForTAS`).
    """
    fits = pool.rdma and pool.own_queue and pool.min_nodes == pool.max_nodes
    return [*layers, HOSTNAME_LABEL] if fits and layers else []
