"""Device plugins and the DCGM exporter of nodes with accelerators."""

from collections.abc import Mapping, Sequence
from typing import Any, NotRequired, TypedDict

import pulumi

from components.base import Component, Options
from components.kubernetes import gpu_metrics
from components.kubernetes.charts import release
from components.kubernetes.gpu_sharing import SharingArgs, plugin_values
from components.kubernetes.queueing.quotas import GPU

POOL_LABEL = "trainstack.dev/pool"
TOLERATIONS = [{"key": GPU, "operator": "Exists", "effect": "NoSchedule"}]


class AcceleratorsArgs(TypedDict):
    """Arguments of `Accelerators`."""

    gpu_pools: Sequence[str]
    """Pools with NVIDIA GPUs: values of the node label `trainstack.dev/pool`."""
    drivers: NotRequired[Mapping[str, Mapping[str, Any]]]
    """Charts of a fabric's device drivers: their values by the chart's key. Default: none."""
    managed: NotRequired[bool]
    """True where the cloud installs NVIDIA's device plugin and exports the metrics of DCGM itself: a second
    plugin would allocate the same GPUs, and profiling is exclusive. Default False."""
    sharing: NotRequired[Sequence[SharingArgs]]
    """Ways in which pools share their GPUs; nodes have the label `nvidia.com/device-plugin.config` with the
    name of theirs. Default: none."""
    host_engine_port: NotRequired[int]
    """Port of a DCGM host engine on every node of these pools. Default: the exporter starts its own."""


class Accelerators(Component):
    """The NVIDIA device plugin, the DCGM exporter and the drivers of fabrics, on the pools with the devices.

    Neither of the first two where the cloud has its own. Nodes must have GPU driver and container toolkit, as
    the GPU images of managed clusters do.
    """

    releases: pulumi.Output[Sequence[str]]
    """Helm releases installed."""

    def __init__(self, name: str, args: AcceleratorsArgs, opts: Options = None) -> None:
        super().__init__(name, opts)
        chosen = {**gpu_charts(args), **args.get("drivers", {})}
        installed = [
            release(f"{name}-{chart}", chart, values, self.child()) for chart, values in chosen.items()
        ]
        self.releases = pulumi.Output.all(*(each.name for each in installed))
        self.register_declared()


def gpu_charts(args: AcceleratorsArgs) -> dict[str, Mapping[str, Any]]:
    """Values by chart key, for the charts that GPU pools need."""
    if not args["gpu_pools"] or args.get("managed", False):
        return {}
    affinity = _on_pools(args["gpu_pools"])
    exporter: dict[str, Any] = {
        "affinity": affinity,
        "tolerations": TOLERATIONS,
        # The chart's 512Mi are too few on nodes with eight GPUs (pytorch/ci-infra#1011, dcgm-exporter#609).
        "resources": {"requests": {"cpu": "100m", "memory": "512Mi"}, "limits": {"memory": "1Gi"}},
        "customMetrics": gpu_metrics.csv(),
        # Whether there is a Prometheus, and how it scrapes this: `monitoring/scrapes.py`.
        "serviceMonitor": {"enabled": False},
    }
    if "host_engine_port" in args:
        exporter["extraEnv"] = _remote_engine(args["host_engine_port"])
    # Replaces an affinity to labels of node-feature-discovery, which is not installed.
    plugin: dict[str, Any] = {"affinity": affinity, "tolerations": TOLERATIONS}
    if args.get("sharing"):
        plugin |= plugin_values(args["sharing"])
    return {"nvidia-device-plugin": plugin, "dcgm-exporter": exporter}


def _remote_engine(port: int) -> list[dict[str, Any]]:
    """The exporter reads the node's engine: profiling is exclusive per GPU, so a second engine would fail.

    Source: NVIDIA/dcgm-exporter 691c927 pkg/cmd/app.go (`remote-hostengine-info`); issues 7 and 61.
    """
    return [
        {"name": "NODE_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.hostIP"}}},
        {"name": "DCGM_REMOTE_HOSTENGINE_INFO", "value": f"$(NODE_IP):{port}"},
    ]


def _on_pools(pools: Sequence[str]) -> dict[str, Any]:
    term = {"matchExpressions": [{"key": POOL_LABEL, "operator": "In", "values": list(pools)}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}
