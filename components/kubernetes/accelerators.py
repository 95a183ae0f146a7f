"""What makes GPUs and EFA devices of nodes visible to pods, and their state visible to people."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NotRequired, TypedDict

import pulumi

from components.base import Component
from components.kubernetes.charts import release
from components.kubernetes.queueing.quotas import GPU
from infra.catalog.aws.pools import efa_driver_problems
from infra.errors import Problem, UserError

POOL_LABEL = "trainstack.dev/pool"
EFA_DRIVERS = ("device_plugin", "dra", "none")
TOLERATIONS = [{"key": GPU, "operator": "Exists", "effect": "NoSchedule"}]


class AcceleratorsArgs(TypedDict):
    """Arguments of `Accelerators`."""

    gpu_pools: Sequence[str]
    """Pools with NVIDIA GPUs: values of the node label `trainstack.dev/pool`."""
    efa_pools: Sequence[str]
    """Those of them with EFA devices."""
    efa_driver: str
    """How EFA devices reach pods: "device_plugin", "dra" (see the catalog) or "none"."""
    kubernetes_version: str
    """The cluster's version, like "1.34"."""
    service_monitor: NotRequired[bool]
    """True when the cluster has the Prometheus operator's ServiceMonitor; default False."""


class Accelerators(Component):
    """The NVIDIA device plugin, one EFA driver, and the DCGM exporter, on the pools that have the devices.

    Nodes are expected to bring driver and container toolkit, as AL2023_x86_64_NVIDIA nodes of EKS do. The EFA
    device plugin and the EFA DRA driver both hand out the same devices, so that only one is ever installed.
    Raises UserError, with every problem, when pools and driver do not fit together.
    """

    releases: pulumi.Output[Sequence[str]]
    """Helm releases installed."""

    def __init__(self, name: str, args: AcceleratorsArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(name, opts)
        problems = list(_problems(args))
        if problems:
            raise UserError(problems)
        chosen = chart_values(args)
        installed = [
            release(f"{name}-{chart}", chart, values, self.child()) for chart, values in chosen.items()
        ]
        self.releases = pulumi.Output.all(*(each.name for each in installed))
        self.register_outputs({"releases": self.releases})


def chart_values(args: AcceleratorsArgs) -> dict[str, Mapping[str, Any]]:
    """Values by chart key, for the charts these pools need."""
    chosen: dict[str, Mapping[str, Any]] = {}
    if args["gpu_pools"]:
        affinity = _on_pools(args["gpu_pools"])
        # Replaces an affinity to labels of node-feature-discovery, which is not installed.
        chosen["nvidia-device-plugin"] = {"affinity": affinity, "tolerations": TOLERATIONS}
        chosen["dcgm-exporter"] = {
            "affinity": affinity,
            "tolerations": TOLERATIONS,
            # Without honorLabels Prometheus renames the pod and namespace of the job to exported_*.
            "serviceMonitor": {"enabled": args.get("service_monitor", False), "honorLabels": True},
        }
    if args["efa_pools"]:
        key = {"device_plugin": "aws-efa-k8s-device-plugin", "dra": "aws-dranet"}.get(args["efa_driver"])
        if key:
            # Both charts choose nodes by a label and its values: by default the instance type and a list of
            # all types with EFA, which ages. The pool says the same without a list.
            supported = {"keys": [POOL_LABEL], "values": list(args["efa_pools"])}
            chosen[key] = {"supportedInstanceLabels": supported, "tolerations": TOLERATIONS}
    return chosen


def _on_pools(pools: Sequence[str]) -> dict[str, Any]:
    term = {"matchExpressions": [{"key": POOL_LABEL, "operator": "In", "values": list(pools)}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}


def _problems(args: AcceleratorsArgs) -> Iterator[Problem]:
    driver = args["efa_driver"]
    if driver not in EFA_DRIVERS:
        yield Problem("efa_driver", driver, "is unknown", f"Use one of: {', '.join(EFA_DRIVERS)}.")
    for pool in args["efa_pools"]:
        if pool not in args["gpu_pools"]:
            fix = "Name it in gpu_pools too, or leave it out."
            yield Problem("efa_pools", pool, "is no GPU pool", fix)
    version = args["kubernetes_version"]
    yield from efa_driver_problems("efa_driver", driver, "kubernetes_version", version)
