"""The resources of a GPU node on EKS for jobs, and the drivers of its devices."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from components.aws.pools import efa
from components.kubernetes.accelerators import POOL_LABEL, TOLERATIONS
from components.kubernetes.offers import FabricOffer, NodeOffer
from infra.catalog.aws import facts
from infra.catalog.aws.model import CpuType, InstanceType
from infra.catalog.aws.pools import efa_driver_problems, gpus_of_node
from infra.errors import UserError
from infra.launchers import pods
from smoke_training.fabric import Fabric

# EKS's AL2023 nodes reserve CPU for kubelet and system by a falling share of the cores (6 %, 1 %, 0.5 %, 0.5
# %, then 0.25 % of each further core), and memory by the number of pods: 255 MiB + 11 MiB a pod, with up to
# 110 pods on small and 250 on large nodes. Source: awslabs/amazon-eks-ami, templates/al2023 (nodeadm kubelet
# configuration), read 2026-11-21.
_CPU_SHARES = (0.06, 0.01, 0.005, 0.005)
_CPU_SHARE_BEYOND = 0.0025
_PODS = 250
_MEMORY_BASE_MIB, _MEMORY_PER_POD_MIB, _EVICTION_MIB = 255, 11, 100
# Resources of our own agents on every node: CNI, kube-proxy, CSI drivers, device plugins, DCGM, monitoring.
_AGENTS_CPU, _AGENTS_MEMORY_MIB = 1.0, 3072
# Huge pages of the EFA driver on every node, in whole GiB.
EFA_HUGE_PAGES_GIB = math.ceil(efa.HUGE_PAGES * efa.HUGE_PAGE_MIB / 1024)

# Port of the DCGM engine of the node monitoring agent on GPU nodes: those with x86 processors, and those with
# arm64 from v1.7.2 on (CHANGELOG.md). Source: aws/eks-node-monitoring-agent v1.7.0,
# charts/eks-node-monitoring-agent/templates/dcgm-daemonset.yaml (hostPort) and values.yaml
# (dcgmAgent.affinity).
HOST_ENGINE_PORT = 5555

EFA_DEVICE_CLASS = "efa.networking.k8s.aws"
# The chart of each driver. Both allocate the same devices, so a cluster has one of them.
EFA_CHARTS = {"device_plugin": "aws-efa-k8s-device-plugin", "dra": "aws-dranet"}


def node_offer(
    machine: InstanceType,
    efa_driver: str | None,
    *,
    clients: int | None = None,
    partition: str | None = None,
) -> NodeOffer:
    """Resources of one node for jobs; `efa_driver` allocates its EFA devices, None where it has none.

    `clients` pods take turns on each GPU, or it is cut into parts of the size `partition`.
    """
    with_efa = efa_driver is not None
    offer: NodeOffer = {
        "cpu": cores_for_jobs(machine),
        "memory_gib": memory_for_jobs_gib(machine, efa=with_efa),
        "gpus": gpus_of_node(machine, clients=clients, partition=partition),
    }
    if clients is not None or partition is not None:
        offer["shared"] = True
    if clients is not None:
        offer["gpus_per_pod"] = 1  # failRequestsGreaterThanOne of the plugin
    if with_efa:
        fabric: FabricOffer = {
            "kind": Fabric.EFA,
            "resource": pods.EFA,
            "count": machine.efa_interfaces,
            "pod_resources": pods.EFA_HUGE_PAGES,
        }
        if efa_driver == "dra":
            fabric["device_class"] = EFA_DEVICE_CLASS
        offer["fabric"] = fabric
    return offer


def cpu_offer(machine: CpuType) -> NodeOffer:
    """Resources of one node without GPUs for jobs."""
    return {"cpu": cores_for_jobs(machine), "memory_gib": memory_for_jobs_gib(machine, efa=False), "gpus": 0}


def cores_for_jobs(machine: InstanceType | CpuType) -> int:
    """Whole cores per node for jobs."""
    shares = [*_CPU_SHARES[: machine.vcpu], *[_CPU_SHARE_BEYOND] * max(0, machine.vcpu - len(_CPU_SHARES))]
    return math.floor(machine.vcpu - sum(shares) - _AGENTS_CPU)


def memory_for_jobs_gib(machine: InstanceType | CpuType, *, efa: bool) -> int:
    """Whole GiB per node for jobs, without the EFA driver's huge pages."""
    reserved = _MEMORY_BASE_MIB + _MEMORY_PER_POD_MIB * _PODS + _EVICTION_MIB + _AGENTS_MEMORY_MIB
    return math.floor((machine.memory_mib - reserved) / 1024) - (EFA_HUGE_PAGES_GIB if efa else 0)


def link_rates(machine: InstanceType, *, efa: bool) -> dict[str, float | None]:
    """The declared rates of a node's training traffic, Gb/s; None where the catalog has none.

    The keys are those of a smoke plan. Interfaces are not named: those of EFA get their names when a node
    boots.
    """
    if efa:
        # The devices are equal, and share the machine's bandwidth.
        rail = machine.network_gbps / machine.efa_interfaces
        return {"network_gbit_s": machine.network_gbps, "rail_gbit_s": rail}
    # Over TCP a pod uses one interface; of several cards it cannot have the sum.
    return {"network_gbit_s": machine.network_gbps if machine.network_cards == 1 else None}


def peak_tflops(machine: InstanceType) -> dict[str, Any] | None:
    """The peak rate of one accelerator, as a smoke plan states it; None without a source."""
    accelerator = facts.accelerators[machine.accelerator]
    if accelerator.dense_bf16_tflops is None:
        return None
    return {
        "value": accelerator.dense_bf16_tflops,
        "dtype": "bfloat16",
        "source": f"{accelerator.source} ({accelerator.date})",
    }


def efa_charts(driver: str, pools: Sequence[str], kubernetes_version: str) -> dict[str, Mapping[str, Any]]:
    """The chart that allocates EFA devices on `pools` with its values; empty without such pools.

    Raises UserError when the cluster's version does not support the driver.
    """
    if not pools:
        return {}
    problems = list(efa_driver_problems("efa_driver", driver, "kubernetes_version", kubernetes_version))
    if problems:
        raise UserError(problems)
    # Both charts select nodes by a label and its values: by default the instance type and a list of all types
    # with EFA, which becomes outdated. The pool selects the same without a list.
    supported = {"keys": [POOL_LABEL], "values": list(pools)}
    return {EFA_CHARTS[driver]: {"supportedInstanceLabels": supported, "tolerations": TOLERATIONS}}
