"""Nodes that an EKS cluster has or can get, from emulated node groups and what runs on them."""

import base64
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

import yaml

from infra.catalog.aws import facts
from infra.catalog.aws.pools import NETWORK_LAYERS, layers
from rehearsal.core.emulation.templates import draw
from rehearsal.core.model import Record
from rehearsal.core.state import State
from rehearsal.kubernetes.charts import ChartFacts
from rehearsal.kubernetes.clusters import KubeCluster
from rehearsal.workloads.scheduling import SchedulerNode, Taint, selects

_NODE_GROUP = "aws:eks/nodeGroup:NodeGroup"
_TEMPLATE = "aws:ec2/launchTemplate:LaunchTemplate"
_EFFECTS = {
    "NO_SCHEDULE": "NoSchedule",
    "NO_EXECUTE": "NoExecute",
    "PREFER_NO_SCHEDULE": "PreferNoSchedule",
}
# Machine images with the NVIDIA driver; without it a device plugin finds nothing.
# source: docs.aws.amazon.com/eks/latest/APIReference/API_Nodegroup.html (amiType), read 2026-07
_GPU_IMAGES = frozenset({
    "AL2_x86_64_GPU", "AL2023_x86_64_NVIDIA", "AL2023_ARM_64_NVIDIA", "BOTTLEROCKET_x86_64_NVIDIA",
    "BOTTLEROCKET_ARM_64_NVIDIA", "BOTTLEROCKET_x86_64_NVIDIA_FIPS", "BOTTLEROCKET_ARM_64_NVIDIA_FIPS",
})  # fmt: skip
# Bottlerocket's NVIDIA variants include the device plugin.
_PLUGIN_INSIDE = "BOTTLEROCKET_"
_PLUGIN_CONFIG = "nvidia.com/device-plugin.config"
_CUT = re.compile(r"nvidia-smi mig -cgi (?P<parts>\S+)")
# Nodes of one group below the same switch; how many there are is not known before they run.
_BLOCK = 4
GPU, EFA = "nvidia.com/gpu", "vpc.amazonaws.com/efa"


def eks_nodes(cluster: KubeCluster) -> list[SchedulerNode]:
    """One entry per node that the groups may grow to; those beyond the desired size do not run yet."""
    found: list[SchedulerNode] = []
    groups = [record for record in cluster.state.find(type=_NODE_GROUP) if _of(record, cluster)]
    charts = [(chart, record.inputs) for record, chart in cluster.releases() if chart]
    for record in groups:
        found.extend(_members(record, cluster.state, charts))
    return found


def _of(record: Record, cluster: KubeCluster) -> bool:
    return record.inputs.get("clusterName") == cluster.name


def _members(
    record: Record, state: State, charts: Sequence[tuple[ChartFacts, Mapping[str, Any]]]
) -> Iterator[SchedulerNode]:
    inputs = record.inputs
    template = _launch_template(inputs, state)
    machine = str((inputs.get("instanceTypes") or [None])[0] or template.get("instanceType") or "t3.medium")
    group = str(record.outputs.get("nodeGroupName") or record.name)
    scaling = inputs.get("scalingConfig") or {}
    labels = {
        **{str(key): str(value) for key, value in (inputs.get("labels") or {}).items()},
        "eks.amazonaws.com/nodegroup": group,
        "kubernetes.io/os": "linux",
        "node.kubernetes.io/instance-type": machine,
    }
    taints = tuple(
        Taint(str(row["key"]), str(row.get("value") or ""), _EFFECTS.get(row["effect"], row["effect"]))
        for row in inputs.get("taints") or ()
    )
    capacity, devices = _machine(machine, template)
    extended = {
        name: count for name, count in devices.items() if _announced(name, inputs, template, labels, charts)
    }
    if GPU in extended:
        extended[GPU] *= _replicas(labels, charts, _partitions(template))
    for index in range(int(scaling.get("maxSize") or 0)):
        yield SchedulerNode(
            name=f"{group}-{index}",
            group=group,
            labels={
                **labels,
                "kubernetes.io/hostname": f"{group}-{index}",
                **_network(group, machine, index),
            },
            taints=taints,
            capacity=capacity,
            extended=extended,
            running=index < int(scaling.get("desiredSize") or 0),
        )


def _network(group: str, machine: str, index: int) -> dict[str, str]:
    """The labels of network layers of a node, where EC2 reports them; a group is spread over blocks.

    Values are ids of network nodes, `nn-` and 17 digits (EC2 User Guide, "How Amazon EC2 instance topology
    works").
    """
    blocks = {3: f"{group}/{index // _BLOCK}", 2: group, 1: "spine"}
    return {
        label: f"nn-{draw(blocks[layer], 17)}"
        for layer, label in enumerate(NETWORK_LAYERS, start=1)
        if label in layers(machine)
    }


def _machine(machine: str, template: Mapping[str, Any]) -> tuple[dict[str, Decimal], dict[str, Decimal]]:
    """CPU, memory and devices of an instance type; nothing when it is not in the catalog."""
    known = facts.instance_types.get(machine)
    if known is None:
        return {}, {}
    cards = sum(
        str(row.get("interfaceType") or "").startswith("efa")
        for row in template.get("networkInterfaces") or ()
    )
    capacity = {"cpu": Decimal(known.vcpu), "memory": Decimal(known.memory_mib) * 2**20}
    return capacity, {GPU: Decimal(known.accelerator_count), EFA: Decimal(cards)}


def _announced(
    resource: str,
    inputs: Mapping[str, Any],
    template: Mapping[str, Any],
    labels: Mapping[str, str],
    charts: Iterable[tuple[ChartFacts, Mapping[str, Any]]],
) -> bool:
    """Return whether a device plugin that runs on these nodes registers a device."""
    image = str(inputs.get("amiType") or "")
    if resource == GPU:
        own_image = image == "CUSTOM" or template.get("imageId")
        if image not in _GPU_IMAGES and not own_image:
            return False
        if image.startswith(_PLUGIN_INSIDE):
            return True
    return any(
        resource in chart.provides and _runs_on(chart, release.get("values") or {}, labels)
        for chart, release in charts
    )


def _partitions(template: Mapping[str, Any]) -> int:
    """Return the number of parts into which the boot configuration cuts each GPU; 0 without."""
    found = _CUT.search(base64.b64decode(template.get("userData") or "").decode(errors="replace"))
    return len(found["parts"].split(",")) if found else 0


def _replicas(
    labels: Mapping[str, str], charts: Iterable[tuple[ChartFacts, Mapping[str, Any]]], partitions: int
) -> int:
    """Return how often the device plugin registers a GPU: by the configuration that the node's label names.

    Source: NVIDIA/k8s-device-plugin v0.19.3, README, "Configuring the device plugin", "With CUDA
    Time-Slicing" and `MIG_STRATEGY` (in the environment it overrides the configuration; `single` registers
    whole GPUs where none is cut); cmd/config-manager (label, default). A plugin whose configuration is not in
    the map does not start.
    """
    for chart, release in charts:
        values = release.get("values") or {}
        config = values.get("config") or {}
        if GPU not in chart.provides or not config.get("map") or not _runs_on(chart, values, labels):
            continue
        chosen = config["map"].get(labels.get(_PLUGIN_CONFIG) or config.get("default"))
        if chosen is None:
            return 0
        config = yaml.safe_load(chosen) or {}
        strategy = values.get("migStrategy") or (config.get("flags") or {}).get("migStrategy")
        if partitions and strategy == "single":
            return partitions
        slicing = (config.get("sharing") or {}).get("timeSlicing") or {}
        return next((int(row["replicas"]) for row in slicing.get("resources") or () if row["name"] == GPU), 1)
    return 1


def _runs_on(chart: ChartFacts, values: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    """Return whether a chart's daemon runs on nodes with these labels; some need one that nothing sets."""
    if "affinity" in values:
        return selects({"affinity": values["affinity"]}, labels)
    if not chart.needs_node_label:
        return True
    finds_hardware = (values.get("gfd") or {}).get("enabled") or (values.get("nfd") or {}).get("enabled")
    return bool(finds_hardware) or any(
        labels.get(key) == value for key, _, value in (pair.partition("=") for pair in chart.needs_node_label)
    )


def _launch_template(inputs: Mapping[str, Any], state: State) -> Mapping[str, Any]:
    reference = inputs.get("launchTemplate") or {}
    for record in state.find(type=_TEMPLATE):
        if reference.get("id") == record.id or (
            reference.get("name") and reference["name"] == record.outputs.get("name")
        ):
            return record.inputs
    return {}
