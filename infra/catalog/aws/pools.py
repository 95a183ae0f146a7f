"""Checks of node pools: combinations of type, zones, fabric, purchase and size that EC2 and EKS support."""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from infra.catalog import pools
from infra.catalog.aws import facts
from infra.catalog.aws.model import InstanceType
from infra.errors import Problem

SYSTEM_DISK_GIB: Final = 50
"""Root volume of a node for a cluster's own services."""
_CPU_POOL_VCPU: Final = 4
"""With fewer, the cluster's own agents leave no processors for jobs."""
_DRA_FROM: Final = 35
"""Minor version of Kubernetes."""
_PODS_OF_TEMPLATE: Final = 110
"""Pods that Cluster Autoscaler expects on a node of an empty group, of any type."""
# The form of ids that EC2 gives to reservations and Capacity Blocks.
_RESERVATION: Final = re.compile(r"cr-[0-9a-f]{8,17}")

_LAYERED: Final = ("g6e.", "p4d.", "p4de.", "p5.", "p5e.", "p5en.")
NETWORK_LAYERS: Final = tuple(f"topology.k8s.aws/network-node-layer-{layer}" for layer in (1, 2, 3))
"""Labels of nodes from the widest layer of switches to the narrowest, which EKS sets where EC2 reports
them (`layers`). `topology.k8s.aws/ultraserver-id` is set on nodes of HyperPod alone. Sources: EKS User Guide,
node-topology; SageMaker Developer Guide, scheduling by task governance; NVIDIA/topograph docs; 2026-11-25."""


def cpu_problems(path: str, name: str) -> Iterator[Problem]:
    """The type has no GPU, processors and memory in the catalog, and more than the agents of a node take."""
    machine = facts.cpu_type(name)
    if machine is None or machine.vcpu < _CPU_POOL_VCPU:
        fix = (
            f"Use one of a family of even sizes with {_CPU_POOL_VCPU} processors or more, such as m6i.xlarge."
        )
        yield Problem(path, name, "no CPU type for a pool of jobs", fix, code="cpu-type-not-for-jobs")


def cpu_purchase_problems(path: str, bought: str) -> Iterator[Problem]:
    """Nodes without GPUs are bought on demand or spot."""
    if bought not in ("on_demand", "spot"):
        fix = "Buy them on_demand or spot."
        yield Problem(path, bought, "nodes without GPUs are not reserved", fix, code="purchase-needs-gpus")


def offer_problems(
    path: str, machine: str, zones_path: str, zones: Sequence[str], region: str
) -> Iterator[Problem]:
    """The region offers the type, in at least as many zones as are named.

    Which zone has which name differs between accounts in old regions ("we independently map Availability
    Zones to codes for each AWS account", AWS Availability Zones, read 2026-11-22), and offers are known by
    zone id. So the check can detect that some zone of a list lacks the type, but not which.
    """
    offered = facts.offering_zones(machine, region) if region in facts.regions else None
    if offered is None:
        return
    if not offered:
        others = [name for name in sorted(facts.regions) if facts.offering_zones(machine, name)]
        fix = f"Offered in {', '.join(others)}." if others else "Use another type."
        yield Problem(path, machine, f"not offered in {region}", fix, code="machine-not-in-region")
    elif len(set(zones)) > len(offered):
        rule = f"{machine} is offered in {len(offered)} zones of {region} ({', '.join(offered)})"
        fix = f"Name at most {len(offered)} zones; `aws ec2 describe-availability-zones` shows their ids."
        yield Problem(zones_path, list(zones), rule, fix, against=path, code="machine-in-fewer-zones")


def efa_problems(path: str, machine: InstanceType) -> Iterator[Problem]:
    """A type that is used with EFA has it."""
    if not machine.efa:
        with_efa = sorted(
            name
            for name, other in facts.instance_types.items()
            if other.efa and other.accelerator == machine.accelerator
        )
        fix = f"Set {path} to false" + (f", or use {', '.join(with_efa)}." if with_efa else ".")
        yield Problem(path, True, f"{machine.name} has no EFA", fix, code="machine-without-efa")


def block_problems(path: str, machine: InstanceType) -> Iterator[Problem]:
    """A type that is bought as a Capacity Block is sold as one."""
    if not machine.capacity_block:
        fix = "Buy the nodes in another way, or use another type."
        rule = f"{machine.name} is not sold as a Capacity Block"
        yield Problem(path, machine.name, rule, fix, code="machine-without-capacity-blocks")


def reservation_problems(path: str, reservation: str | None) -> Iterator[Problem]:
    """The id of a capacity reservation or Capacity Block."""
    if reservation is None or not _RESERVATION.fullmatch(reservation):
        rule = "must be the id of a capacity reservation or Capacity Block"
        fix = "Write it like cr-0123456789abcdef0."
        yield Problem(path, reservation, rule, fix, code="invalid-reservation-id")


def partition_problems(path: str, partition: str, machine: InstanceType) -> Iterator[Problem]:
    """The GPU supports partitions of that size."""
    gpu = facts.accelerators[machine.accelerator]
    able = [row.name for row in facts.accelerators.values() if row.mig]
    yield from pools.partition_problems(path, partition, gpu.name, gpu.mig, able)


def turns_problems(path: str, clients: int, machine: InstanceType) -> Iterator[Problem]:
    """A node's shares are no more than the pods that Cluster Autoscaler expects on it.

    Beyond that it would wait with new nodes for pods that fit on none. Source: kubernetes/autoscaler
    cloudprovider/aws/aws_manager.go, buildNodeFromTemplate (ResourcePods).
    """
    shares = gpus_of_node(machine, clients=clients)
    if shares > _PODS_OF_TEMPLATE:
        rule = f"{shares} shares on a node of {machine.name}, of at most {_PODS_OF_TEMPLATE} pods"
        fix = f"Use at most {_PODS_OF_TEMPLATE // machine.accelerator_count}."
        yield Problem(path, clients, rule, fix, code="more-shares-than-pods")


def gpus_of_node(machine: InstanceType, *, clients: int | None = None, partition: str | None = None) -> int:
    """`nvidia.com/gpu` of a node: its GPUs, partitions, or clients that share GPUs.

    Source: NVIDIA/k8s-device-plugin, README, "With CUDA Time-Slicing": as many replicas of each device; MIG
    strategy `single`: as many devices as there are partitions.
    """
    if partition is not None:
        return machine.accelerator_count * facts.accelerators[machine.accelerator].mig[partition]
    return machine.accelerator_count * (clients or 1)


def partitions_of_gpu(machine: InstanceType, partition: str | None) -> Sequence[str]:
    """The partitions of each GPU of a node, all of one size; empty without."""
    mig = facts.accelerators[machine.accelerator].mig
    return [partition] * mig[partition] if partition is not None else []


def layers(machine: str) -> tuple[str, ...]:
    """The labels of network layers that nodes of a type have; empty without a source."""
    return NETWORK_LAYERS if machine.startswith(_LAYERED) else ()


def size_problems(least_path: str, least: int, most_path: str, most: int) -> Iterator[Problem]:
    """Minimum and maximum size of a managed node group."""
    yield from facts.limits["node_group_min"].problems(least_path, least)
    yield from facts.limits["node_group_max"].problems(most_path, most)


def efa_driver_problems(
    path: str, driver: str, version_path: str, kubernetes_version: str
) -> Iterator[Problem]:
    """EFA devices reach pods by the device plugin, or by Dynamic Resource Allocation on a recent Kubernetes.

    Source: README of chart aws-dranet 1.0.0, "Kubernetes 1.35+" (aws/eks-charts@c043cef46c7e
    stable/aws-dranet/README.md, read 2026-11-22).
    """
    if driver == "dra" and int(kubernetes_version.split(".")[1]) < _DRA_FROM:
        fix = f"Use device_plugin, or Kubernetes 1.{_DRA_FROM}."
        rule = f"the EFA driver for DRA needs Kubernetes 1.{_DRA_FROM} or later, not {kubernetes_version}"
        yield Problem(path, driver, rule, fix, against=version_path, code="efa-driver-needs-version")


def claimed_pool_problems(path: str, driver: str, least: int) -> Iterator[Problem]:
    """Cluster Autoscaler adds no node to an empty pool for a pod that claims devices.

    Source: kubernetes/autoscaler issues 7724, 7799 and 10277; tag cluster-autoscaler-1.35.0,
    cloudprovider/aws/aws_cloud_provider.go (`TemplateNodeInfo` has no resource slices), read 2026-11-23.
    """
    if driver == "dra" and least == 0:
        rule = "a pool with claimed RDMA devices (dra) never gets its first node"
        fix = "Write 1 or more, or use device_plugin."
        yield Problem(path, least, rule, fix, against="on.efa_driver", code="claimed-pool-starts-empty")
