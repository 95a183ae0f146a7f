"""What makes the devices of nodes visible to pods, and the state of GPUs visible to people."""

from collections.abc import Mapping, Sequence
from typing import Any, NotRequired, TypedDict

import pulumi

from components.base import Component
from components.kubernetes.charts import release
from components.kubernetes.queueing.quotas import GPU

POOL_LABEL = "trainstack.dev/pool"
TOLERATIONS = [{"key": GPU, "operator": "Exists", "effect": "NoSchedule"}]


class AcceleratorsArgs(TypedDict):
    """Arguments of `Accelerators`."""

    gpu_pools: Sequence[str]
    """Pools with NVIDIA GPUs: values of the node label `trainstack.dev/pool`."""
    drivers: NotRequired[Mapping[str, Mapping[str, Any]]]
    """Charts that hand out the devices of a fabric: their values by the chart's key. Default: none."""
    service_monitor: NotRequired[bool]
    """True when the cluster has the Prometheus operator's ServiceMonitor; default False."""


class Accelerators(Component):
    """The NVIDIA device plugin, the DCGM exporter and the drivers of fabrics, on the pools with the devices.

    Nodes are expected to bring GPU driver and container toolkit, as the GPU images of managed clusters do.
    """

    releases: pulumi.Output[Sequence[str]]
    """Helm releases installed."""

    def __init__(self, name: str, args: AcceleratorsArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(name, opts)
        chosen = {**gpu_charts(args), **args.get("drivers", {})}
        installed = [
            release(f"{name}-{chart}", chart, values, self.child()) for chart, values in chosen.items()
        ]
        self.releases = pulumi.Output.all(*(each.name for each in installed))
        self.register_outputs({"releases": self.releases})


def gpu_charts(args: AcceleratorsArgs) -> dict[str, Mapping[str, Any]]:
    """Values by chart key, for the charts that GPU pools need."""
    if not args["gpu_pools"]:
        return {}
    affinity = _on_pools(args["gpu_pools"])
    return {
        # Replaces an affinity to labels of node-feature-discovery, which is not installed.
        "nvidia-device-plugin": {"affinity": affinity, "tolerations": TOLERATIONS},
        "dcgm-exporter": {
            "affinity": affinity,
            "tolerations": TOLERATIONS,
            # Without honorLabels Prometheus renames the pod and namespace of the job to exported_*.
            "serviceMonitor": {"enabled": args.get("service_monitor", False), "honorLabels": True},
        },
    }


def _on_pools(pools: Sequence[str]) -> dict[str, Any]:
    term = {"matchExpressions": [{"key": POOL_LABEL, "operator": "In", "values": list(pools)}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}
