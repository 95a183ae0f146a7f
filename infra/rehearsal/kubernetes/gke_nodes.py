"""The nodes that a GKE cluster has or can get, from the emulated node pools."""

from collections.abc import Iterator
from decimal import Decimal

from infra.rehearsal.kubernetes.clusters import Cluster
from infra.rehearsal.state import Record
from infra.rehearsal.workloads.scheduling import Node, Taint

_POOL = "gcp:container/nodePool:NodePool"
_EFFECTS = {
    "NO_SCHEDULE": "NoSchedule",
    "NO_EXECUTE": "NoExecute",
    "PREFER_NO_SCHEDULE": "PreferNoSchedule",
}
_GPU = "nvidia.com/gpu"


def gke_nodes(cluster: Cluster) -> list[Node]:
    """One entry per node that the pools may grow to; CPU and memory of machine types are not known here."""
    pools = (
        r
        for r in cluster.state.find(type=_POOL)
        if r.inputs.get("cluster") in (cluster.name, cluster.record.id)
    )
    return [node for pool in pools for node in _members(pool)]


def _members(pool: Record) -> Iterator[Node]:
    inputs = pool.inputs
    config = inputs.get("nodeConfig") or {}
    name = str(pool.outputs.get("name") or pool.name)
    scaling = inputs.get("autoscaling") or {}
    running = int(inputs.get("nodeCount") or inputs.get("initialNodeCount") or 0)
    most = int(scaling.get("totalMaxNodeCount") or scaling.get("maxNodeCount") or running)
    gpus = sum(int(row.get("count") or 0) for row in config.get("guestAccelerators") or ())
    labels = {str(key): str(value) for key, value in (config.get("labels") or {}).items()}
    taints = [
        Taint(str(row["key"]), str(row.get("value") or ""), _EFFECTS.get(row["effect"], row["effect"]))
        for row in config.get("taints") or ()
    ]
    if gpus:
        # GKE installs the device plugin and puts this taint on GPU nodes by itself.
        # source: cloud.google.com/kubernetes-engine/docs/how-to/gpus
        taints.append(Taint(_GPU, "present", "NoSchedule"))
    for index in range(most):
        yield Node(
            name=f"{name}-{index}",
            group=name,
            labels={
                **labels,
                "cloud.google.com/gke-nodepool": name,
                "kubernetes.io/hostname": f"{name}-{index}",
            },
            taints=tuple(taints),
            extended={_GPU: Decimal(gpus)},
            running=index < running,
        )
