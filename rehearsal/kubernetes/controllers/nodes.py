"""Nodes that a cluster has or can get."""

from collections.abc import Callable, Mapping

from rehearsal.kubernetes import ambient
from rehearsal.kubernetes.aws.nodes import eks_nodes
from rehearsal.kubernetes.clusters import EKS_CLUSTER, GKE_CLUSTER, KubeCluster
from rehearsal.kubernetes.gcp.nodes import gke_nodes
from rehearsal.workloads.scheduling import SchedulerNode

_NODES: Mapping[str, Callable[[KubeCluster], list[SchedulerNode]]] = {
    EKS_CLUSTER: eks_nodes,
    GKE_CLUSTER: gke_nodes,
    ambient.TYPE: lambda _: ambient.nodes(),
}
_SCALED_BY_CLOUD = frozenset({GKE_CLUSTER})  # an autoscaler of its own, for the pools that have bounds


def nodes(cluster: KubeCluster) -> list[SchedulerNode]:
    """One entry per node that the pools may grow to; some may not run yet."""
    return _NODES[cluster.record.type](cluster)


def may_grow(cluster: KubeCluster) -> bool:
    """Return whether something in the cluster adds nodes when pods do not fit."""
    if cluster.record.type in _SCALED_BY_CLOUD:
        return True
    names = ("cluster-autoscaler", "karpenter")
    releases = any(
        (chart and chart.autoscaler) or any(name in str(record.inputs.get("chart")) for name in names)
        for record, chart in cluster.releases()
    )
    return releases or any(
        any(name in record.name for name in names) for record in cluster.objects("Deployment")
    )
