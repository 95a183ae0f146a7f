"""Choose the cluster of a job of the manager: that of its quota; pure, standard library only.

On the manager every pool of every cluster is a flavor of its own, so Kueue's scheduler chooses the cluster
together with the pool, by preference, price, quota and share. Kueue's two dispatchers do not use that: one
asks all clusters at once, the other one after the other, with five minutes between (kueue v0.19.2
pkg/controller/workloaddispatcher/incrementaldispatcher.go, `incrementalDispatcherRoundTimeout`).
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

Object = Mapping[str, Any]

DISPATCHER = "trainstack.dev/flavor-dispatcher"
CHECK = "clusters"
"""The AdmissionCheck of jobs that run on another cluster."""
CLUSTER_LABEL = "trainstack.dev/cluster"
"""Label of a flavor of the manager, and of nodes of the worker: the name of the cluster."""
LOST_TAINT = {"key": "trainstack.dev/cluster-lost", "value": "true", "effect": "NoSchedule"}
"""Taint of flavors of a cluster that cannot be reached: no job is admitted to them."""
GPU = "nvidia.com/gpu"
PENDING, RETRY = "Pending", "Retry"


@dataclass(frozen=True)
class Nominated:
    """A job goes to a cluster."""

    cluster: str


@dataclass(frozen=True)
class Returned:
    """A job gives its quota back and is queued again."""

    why: str


def decide(
    workload: Object, clusters: Mapping[str, str], lost: Collection[str]
) -> Nominated | Returned | None:
    """Decide about a Workload; None: nothing changes.

    `clusters`: the cluster of each flavor. `lost`: clusters that cannot be reached.
    """
    status = workload.get("status") or {}
    conditions = {row["type"] for row in status.get("conditions") or () if row["status"] == "True"}
    states = {row["name"]: row["state"] for row in status.get("admissionChecks") or ()}
    if "QuotaReserved" not in conditions or conditions & {"Finished", "Evicted"}:
        return None
    if states.get(CHECK) != PENDING or status.get("clusterName"):
        return None
    cluster = chosen(status.get("admission") or {}, clusters)
    if cluster is None:
        return None
    if cluster in lost:
        return Returned(f"cluster {cluster} cannot be reached")
    return None if status.get("nominatedClusterNames") == [cluster] else Nominated(cluster)


def chosen(admission: Object, clusters: Mapping[str, str]) -> str | None:
    """The cluster of an admission; of parts on several clusters, that with the most GPUs counts.

    A part without GPUs, such as a launcher, then runs beside the others: the worker finds it a pool itself.
    """
    gpus: dict[str, int] = {}
    for part in admission.get("podSetAssignments") or ():
        used = int((part.get("resourceUsage") or {}).get(GPU, 0))
        for flavor in set((part.get("flavors") or {}).values()):
            if flavor in clusters:
                gpus[clusters[flavor]] = gpus.get(clusters[flavor], 0) + used
    return max(gpus, key=lambda name: gpus[name]) if gpus else None


def cluster_of(flavor: Object) -> str:
    """The cluster of a ResourceFlavor; empty for one of no cluster."""
    return str((flavor["spec"].get("nodeLabels") or {}).get(CLUSTER_LABEL, ""))


def is_active(cluster: Object) -> bool:
    """Return whether Kueue is connected to a MultiKueueCluster."""
    rows = (cluster.get("status") or {}).get("conditions") or ()
    return any(row["type"] == "Active" and row["status"] == "True" for row in rows)


def taints(flavor: Object, *, lost: bool) -> list[Mapping[str, str]] | None:
    """The taints that a flavor should have; None where it has them."""
    has = list(flavor["spec"].get("nodeTaints") or ())
    others = [taint for taint in has if taint["key"] != LOST_TAINT["key"]]
    wanted = [*others, LOST_TAINT] if lost else others
    return wanted if len(wanted) != len(has) else None
