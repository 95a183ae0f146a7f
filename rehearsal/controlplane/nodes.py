"""Nodes without machines, from the catalog: labels, taints, allocatable devices; KWOK keeps them alive."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from infra.catalog.aws import facts as aws
from infra.catalog.gcp import facts as google
from rehearsal.controlplane.api import KubernetesApi, Object
from rehearsal.controlplane.binaries import files_of
from rehearsal.controlplane.processes import StartContext

# KWOK manages the nodes with this annotation.
FAKE = {"kwok.x-k8s.io/node": "fake"}
GPU, EFA = "nvidia.com/gpu", "vpc.amazonaws.com/efa"
# The EFA driver reserves 5128 huge pages of 2 MiB: awsdocs/amazon-eks-user-guide, node-efa (2024-12-18).
_HUGE_PAGES = {"hugepages-2Mi": "10256Mi"}
_STAGES = Path(__file__).with_name("stages.yaml")
_PODS = 110  # the kubelet's default; the whole machine is allocatable, without reservations


@dataclass(frozen=True)
class KwokPool:
    """Identical nodes."""

    name: str
    instance_type: str
    """A machine type with GPUs, of AWS or of Google Cloud."""
    count: int
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: Sequence[Mapping[str, str]] = ()
    zone: str = "us-east-1a"
    block: int = 0
    """Nodes per network block of the topology labels; 0 for nodes without these labels."""


def pool_nodes(pool: KwokPool) -> list[Object]:
    """The Node objects of a pool. Raises KeyError for a machine that is not in the catalog."""
    return [_node(pool, index) for index in range(pool.count)]


def add_nodes(api: KubernetesApi, pools: Sequence[KwokPool]) -> None:
    """Register the nodes of pools; KWOK makes them ready."""
    for pool in pools:
        for body in pool_nodes(pool):
            api.create(body)


def start_kwok(site: StartContext, kubeconfig: Path) -> None:
    """Start KWOK, which plays the kubelets of nodes with the annotation."""
    own = [path for folder in files_of("kwok") for path in folder.glob("node-*.yaml")]
    stages = site.home / "stages.yaml"
    stages.write_text("\n---\n".join(path.read_text() for path in [_STAGES, *own]), encoding="utf-8")
    ((key, value),) = FAKE.items()
    site.processes.start(
        "kwok",
        [
            site.binaries["kwok"],
            f"--kubeconfig={kubeconfig}",
            f"--manage-nodes-with-annotation-selector={key}={value}",
            f"--config={stages}",
            "--node-lease-duration-seconds=40",
        ],
    )


def _node(pool: KwokPool, index: int) -> Object:
    architecture, amounts = _machine(pool.instance_type)
    name = f"{pool.name}-{index}"
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "annotations": dict(FAKE),
            "labels": {
                "kubernetes.io/hostname": name,
                "kubernetes.io/os": "linux",
                "kubernetes.io/arch": "arm64" if architecture == "arm64" else "amd64",
                "node.kubernetes.io/instance-type": pool.instance_type,
                "topology.kubernetes.io/zone": pool.zone,
                # Of us-east-1a, and of us-central1-a.
                "topology.kubernetes.io/region": pool.zone[:-1].removesuffix("-"),
                **_network(pool, index),
                **pool.labels,
            },
        },
        "spec": {"taints": [dict(taint) for taint in pool.taints]},
        "status": {"capacity": amounts, "allocatable": amounts},
    }


def _machine(name: str) -> tuple[str, dict[str, str]]:
    """(architecture, resources) of a machine type. Raises KeyError.

    On GKE the NICs beside GPUs are not part of the machine type: they come with the networks of its pool.
    """
    if name in google.machine_types:
        row = google.machine_types[name]
        return row.architecture, _amounts(row.vcpu, row.memory_gib * 1024, row.count)
    known = aws.instance_types[name]
    adapters = {EFA: str(known.efa_interfaces), **_HUGE_PAGES} if known.efa_interfaces else {}
    found = _amounts(known.vcpu, known.memory_mib, known.accelerator_count)
    return known.architecture, {**found, **adapters}


def _amounts(vcpu: int, memory_mib: int, gpus: int) -> dict[str, str]:
    found = {"cpu": str(vcpu), "memory": f"{memory_mib}Mi", "pods": str(_PODS)}
    return {**found, GPU: str(gpus)} if gpus else found


def _network(pool: KwokPool, index: int) -> dict[str, str]:
    """The labels of network layers, widest first, as EKS sets them on nodes of a cluster placement group.

    Source: docs.aws.amazon.com/eks/latest/userguide/node-topology.html.
    """
    if not pool.block:
        return {}
    block = index // pool.block
    return {
        "topology.k8s.aws/network-node-layer-1": f"{pool.name}-spine",
        "topology.k8s.aws/network-node-layer-2": f"{pool.name}-block-{block // 2}",
        "topology.k8s.aws/network-node-layer-3": f"{pool.name}-block-{block}",
    }
