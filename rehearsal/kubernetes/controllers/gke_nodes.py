"""The nodes that a GKE cluster has or can get, from the emulated node pools."""

from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

from rehearsal.kubernetes.clusters import Cluster
from rehearsal.workloads.scheduling import Node, Taint

_POOL = "gcp:container/nodePool:NodePool"
_EFFECTS = {
    "NO_SCHEDULE": "NoSchedule",
    "NO_EXECUTE": "NoExecute",
    "PREFER_NO_SCHEDULE": "PreferNoSchedule",
}
_GPU = "nvidia.com/gpu"


_DEFAULT_POOL = "default-pool"


def gke_nodes(cluster: Cluster) -> list[Node]:
    """One entry per node that the pools may grow to; CPU and memory of machine types are not known here."""
    inputs = cluster.record.inputs
    if inputs.get("enableAutopilot"):
        # Autopilot adds nodes of the right size for any pod; the first stands for all.
        return [Node(name="autopilot", group="autopilot", labels={"kubernetes.io/os": "linux"})]
    found = [node for name, pool in _own_pools(cluster) for node in _members(name, pool)]
    for pool in cluster.state.find(type=_POOL):
        if pool.inputs.get("cluster") in (cluster.name, cluster.record.id):
            found += _members(str(pool.outputs.get("name") or pool.name), pool.inputs)
    return found


def _own_pools(cluster: Cluster) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The pools that the cluster's own arguments ask for; counts are per zone.

    Source: terraform-provider-google, website/docs/r/container_cluster.html.markdown: initial_node_count,
    node_config, node_pool, remove_default_node_pool.
    """
    inputs = cluster.record.inputs
    location = str(cluster.record.outputs.get("location") or "")
    zonal = location.count("-") > 1  # its other zones come on top
    zones = len(cluster.record.outputs.get("nodeLocations") or ()) + (1 if zonal else 0) or 1
    inline = inputs.get("nodePools") or ()
    for pool in inline:
        yield str(pool.get("name") or _DEFAULT_POOL), pool
    if not inline and not inputs.get("removeDefaultNodePool"):
        count = int(inputs.get("initialNodeCount") or 0) * zones
        yield _DEFAULT_POOL, {"nodeConfig": inputs.get("nodeConfig"), "nodeCount": count}


def _members(name: str, inputs: Mapping[str, Any]) -> Iterator[Node]:
    config = inputs.get("nodeConfig") or {}
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
                "kubernetes.io/os": "linux",
                "kubernetes.io/hostname": f"{name}-{index}",
            },
            taints=tuple(taints),
            extended={_GPU: Decimal(gpus)},
            running=index < running,
        )
