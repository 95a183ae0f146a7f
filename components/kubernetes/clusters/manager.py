"""Pools and guarantees of the manager of several clusters: those of its workers, side by side.

Quotas add up by construction, and a job that fits no single cluster gets none.
"""

from collections.abc import Sequence
from typing import Any, TypedDict

from agents.clusters.dispatch import CLUSTER_LABEL
from components.kubernetes.queueing.quotas import FlavorArgs, TeamArgs
from infra.naming import cluster_pool

# Decided by the worker: requests of nodes, which Kueue refuses beside MultiKueue, and hours.
_OF_WORKERS = ("provisioning_class", "window")


class ClusterArgs(TypedDict):
    """A cluster to which the manager sends jobs."""

    name: str
    """Name of the cluster, and of the Secret with its kubeconfig."""
    flavors: Sequence[FlavorArgs]
    """Its pools, as its own queues have them."""


def flavors(clusters: Sequence[ClusterArgs]) -> list[FlavorArgs]:
    """The pools of the manager: one for each pool of each cluster, with the same quota, price and preference.

    A job that requests the label `trainstack.dev/cluster` stays on that cluster.
    """
    found: list[FlavorArgs] = []
    for cluster in clusters:
        for flavor in cluster["flavors"]:
            kept: Any = {key: value for key, value in flavor.items() if key not in _OF_WORKERS}
            kept["name"] = cluster_pool(cluster["name"], flavor["name"])
            kept["node_labels"] = {**flavor["node_labels"], CLUSTER_LABEL: cluster["name"]}
            found.append(kept)
    return found


def teams(clusters: Sequence[ClusterArgs], args: Sequence[TeamArgs]) -> list[TeamArgs]:
    """The teams with their guarantees: those of a pool's name hold on every cluster that has the pool."""
    found: list[TeamArgs] = []
    for team in args:
        gpus = {
            cluster_pool(cluster["name"], flavor["name"]): team["gpus"][flavor["name"]]
            for cluster in clusters
            for flavor in cluster["flavors"]
            if flavor["name"] in team.get("gpus", {})
        }
        found.append({**team, "gpus": gpus} if "gpus" in team else team)
    return found
