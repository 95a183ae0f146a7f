"""GPUs of node pools and the networks of their NICs."""

from collections.abc import Iterator

from rehearsal.core.model import UNKNOWN, Properties, Record
from rehearsal.core.rules.model import Violation
from rehearsal.gcp import facts
from rehearsal.gcp.rules.book import BOOK, ProjectView, block, items
from rehearsal.gcp.rules.networks import parse
from rehearsal.gcp.rules.pools import POOL

_TOOLKIT = "GoogleCloudPlatform/cluster-toolkit@10470803: "
_FACTS = "infra/catalog/gcp/tables/machine_types.toml: "
_DRANET = "cloud.google.com/gke-networking-dra-driver"
_SUBNETWORK = "compute/subnetwork:Subnetwork"
_NETWORKS = "networkConfig.additionalNodeNetworkConfigs"


def _machine(inputs: Properties) -> str:
    name = block(inputs.get("nodeConfig")).get("machineType")
    return name if isinstance(name, str) else ""


def _given(inputs: Properties) -> list[Properties]:
    return [
        block(one) for one in items(block(inputs.get("networkConfig")).get("additionalNodeNetworkConfigs"))
    ]


@BOOK.rule("GCP-GPU-001", POOL, source=f"{_FACTS}machine_type")
def _count(inputs: Properties) -> Iterator[Violation]:
    """A machine with built-in GPUs has the number of its type."""
    machine = facts.catalog().machine_types.get(_machine(inputs))
    for index, one in enumerate(items(block(inputs.get("nodeConfig")).get("guestAccelerators"))):
        count = block(one).get("count")
        if machine and isinstance(count, int | float) and count != machine.count:
            yield Violation(
                f"nodeConfig.guestAccelerators[{index}].count",
                f"{machine.name} has {machine.count} GPUs, not {int(count)}",
            )


@BOOK.rule("GCP-GPU-002", POOL, source=f"{_FACTS}machine_type")
def _type(inputs: Properties) -> Iterator[Violation]:
    """A machine with built-in GPUs has those of its family."""
    machine = facts.catalog().machine_types.get(_machine(inputs))
    if machine is None:
        return
    # Google's own files use both names for the GPU of A2 Ultra.
    accepted = {machine.accelerator, *(["nvidia-tesla-a100"] if machine.name.startswith("a2-ultra") else [])}
    for index, one in enumerate(items(block(inputs.get("nodeConfig")).get("guestAccelerators"))):
        kind = block(one).get("type")
        if isinstance(kind, str) and kind not in accepted:
            yield Violation(
                f"nodeConfig.guestAccelerators[{index}].type",
                f"{machine.name} has {machine.accelerator}, not {kind}",
            )


@BOOK.rule_around(
    "GCP-GPU-003",
    POOL,
    source=f"{_TOOLKIT}modules/compute/gke-node-pool/main.tf (a warning); "
    "NVIDIA/aicr docs, gke-tcpxo-networking (one more takes a GPU's slot)",
    advice=True,
)
def _networks(inputs: Properties, world: ProjectView) -> Iterator[Violation]:
    """TCPX takes 4 more networks, TCPXO 8, A3 Ultra and A4 one and the 8 subnetworks of an RDMA network."""
    # One more takes the slot of a GPU's NIC: a3-mega then detects 7 GPUs of 8.
    fabric, given = facts.catalog().gpu_networks.get(_machine(inputs)), _given(inputs)
    if fabric and given and len(given) != fabric.total:
        more = f" ({fabric.networks} and {fabric.rdma_subnetworks} of an RDMA network)"
        yield Violation(
            _NETWORKS,
            f"{fabric.machine} needs {fabric.total} additional networks, not {len(given)}"
            + (more if fabric.rdma_subnetworks else ""),
        )


@BOOK.rule_around(
    "GCP-GPU-004", POOL, source=f"{_TOOLKIT}examples/gke-a3-ultragpu/gke-a3-ultragpu.yaml (network_profile)"
)
def _rdma(inputs: Properties, world: ProjectView) -> Iterator[Violation]:
    """The NICs for RDMA are in a network with an RDMA profile."""
    fabric, given = facts.catalog().gpu_networks.get(_machine(inputs)), _given(inputs)
    if not fabric or not fabric.rdma_subnetworks or len(given) != fabric.total:
        return
    found = [world.find(one.get("network"), "compute/network:Network") for one in given]
    if None in found:
        return
    profiles = [str(one.inputs.get("networkProfile") or "") for one in found if one]
    count = sum("-vpc-roce" in profile for profile in profiles)
    if count != fabric.rdma_subnetworks:
        yield Violation(
            _NETWORKS,
            f"{fabric.machine} needs {fabric.rdma_subnetworks} subnetworks of a network with profile "
            f"<zone>-vpc-roce, not {count}",
            "Set networkProfile of that network.",
            "badRequest",
        )


@BOOK.rule_around("GCP-GPU-005", POOL, source=f"{_TOOLKIT}modules/scheduler/gke-cluster/main.tf")
def _enabled(inputs: Properties, world: ProjectView) -> Iterator[Violation]:
    """Additional networks need a cluster with multi-networking, which may be switched on just before."""
    if world.preview:
        return
    cluster = world.find(inputs.get("cluster"), "container/cluster:Cluster")
    if cluster and _given(inputs) and not cluster.outputs.get("enableMultiNetworking"):
        yield Violation(
            _NETWORKS,
            f"multi-networking is not enabled on cluster {cluster.name}",
            "Set enableMultiNetworking and datapathProvider ADVANCED_DATAPATH of the cluster.",
            "badRequest",
        )


@BOOK.rule(
    "GCP-GPU-006",
    POOL,
    source=f"{_TOOLKIT}modules/network/gpu-rdma-vpc/main.tf (one subnetwork per interface)",
)
def _distinct(inputs: Properties) -> Iterator[Violation]:
    """Every additional interface has a subnetwork of its own."""
    seen: set[str] = set()
    for index, one in enumerate(_given(inputs)):
        name = one.get("subnetwork")
        if isinstance(name, str) and name in seen:
            yield Violation(f"{_NETWORKS}[{index}].subnetwork", f"{name} is used by another interface")
        if isinstance(name, str):
            seen.add(name)


@BOOK.rule("GCP-GPU-007", POOL, source=f"{_TOOLKIT}modules/compute/gke-node-pool/main.tf (enable_dranet)")
def _automatic(inputs: Properties) -> Iterator[Violation]:
    """Networks that GKE makes by itself are not given too."""
    profile = block(inputs.get("networkConfig")).get("acceleratorNetworkProfile")
    if profile == "auto" and _given(inputs):
        yield Violation(_NETWORKS, 'cannot be given with acceleratorNetworkProfile "auto"')


@BOOK.rule_around(
    "GCP-GPU-008", POOL, source=f"{_TOOLKIT}modules/compute/gke-node-pool/main.tf (enable_dranet)"
)
def _dataplane(inputs: Properties, world: ProjectView) -> Iterator[Violation]:
    """Networks made by GKE need Dataplane V2."""
    profile = block(inputs.get("networkConfig")).get("acceleratorNetworkProfile")
    cluster = world.find(inputs.get("cluster"), "container/cluster:Cluster")
    datapath = cluster.outputs.get("datapathProvider") if cluster else UNKNOWN
    if profile == "auto" and datapath is not UNKNOWN and datapath != "ADVANCED_DATAPATH":
        yield Violation(
            "networkConfig.acceleratorNetworkProfile", "needs a cluster with Dataplane V2", "", "badRequest"
        )


@BOOK.rule_around(
    "GCP-GPU-009",
    POOL,
    source="GKE documentation, Allocate network resources by using managed DRANET (supported machines)",
    advice=True,
)
def _dranet(inputs: Properties, world: ProjectView) -> Iterator[Violation]:
    """Devices of the network are claimed on machines that GKE's DRA driver supports: A3 Ultra, A4 and A4X."""
    label = block(block(inputs.get("nodeConfig")).get("labels")).get(_DRANET)
    machine = _machine(inputs)
    if label == "true" and machine.startswith(("a3-highgpu-", "a3-megagpu-")):
        yield Violation(
            f'nodeConfig.labels["{_DRANET}"]',
            f"{machine} is not among the machines of managed DRANET (A3 Ultra, A4, A4X)",
            "Pods that claim its devices will stay Pending.",
        )


@BOOK.rule_around(
    "GCP-GPU-010", POOL, source="infra/catalog/gcp/tables/offers.toml (zones of machine types)", advice=True
)
def _offered(inputs: Properties, world: ProjectView) -> Iterator[Violation]:
    """A zone has machines of the type: no source names it among those that do."""
    machine = _machine(inputs)
    places = items(inputs.get("nodeLocations")) or [world.places.get("location")]
    for index, zone in enumerate(places):
        if not isinstance(zone, str) or zone.count("-") < 2:
            continue
        region = zone.rpartition("-")[0]
        known = facts.catalog()
        offering = known.offering_zones(machine, region) if region in known.regions else None
        if offering and zone not in offering:
            yield Violation(
                f"nodeLocations[{index}]" if inputs.get("nodeLocations") else "location",
                f"no source lists {machine} in {zone}; it is in {', '.join(offering)}",
                "Check it with `gcloud compute machine-types list`.",
            )


def _neighbours(inputs: Properties, world: ProjectView) -> Iterator[Record]:
    """The other pools of a pool's cluster."""
    cluster = world.find(inputs.get("cluster"), "container/cluster:Cluster")
    if cluster is not None:
        yield from world.users(cluster, "container/nodePool:NodePool")


@BOOK.rule_around(
    "GCP-GPU-011",
    POOL,
    source="GKE documentation, Set up multi-network support for Pods (general limitations; not which request "
    "is refused); kubernetes/cloud-provider-gcp@4e245312 pkg/controller/gkenetworkparamset (the range "
    "of a device network is that of its subnetwork)",
)
def _apart(inputs: Properties, world: ProjectView) -> Iterator[Violation]:
    """Networks of pods in one cluster have no overlapping ranges, but pools may share them."""
    others = {
        found.id: found
        for pool in _neighbours(inputs, world)
        for one in _given(pool.inputs)
        if (found := world.find(one.get("subnetwork"), _SUBNETWORK))
    }
    for index, one in enumerate(_given(inputs)):
        own = world.find(one.get("subnetwork"), _SUBNETWORK)
        cidr = parse(own.inputs.get("ipCidrRange")) if own else None
        if own is None or cidr is None or own.id in others:
            continue
        for other in others.values():
            taken = parse(other.inputs.get("ipCidrRange"))
            if taken is not None and taken.overlaps(cidr):
                yield Violation(
                    f"{_NETWORKS}[{index}].subnetwork",
                    f"{cidr} of {own.name} overlaps {taken} of {other.name}, another network of this cluster",
                    "Use the same subnetwork in both pools, or another range.",
                    "badRequest",
                )
                break


@BOOK.rule_around(
    "GCP-GPU-012",
    POOL,
    source="GKE documentation, Allocate network resources by using managed DRANET: driver and networks of "
    "type Device manage the same NICs, and together are an incorrect setup (as guides of llm-d quote it)",
    advice=True,
)
def _one_driver(inputs: Properties, world: ProjectView) -> Iterator[Violation]:
    """Pools with networks of the program and pools with those of DRANET are in different clusters."""

    def claims(pool: Properties) -> bool:
        label = block(block(pool.get("nodeConfig")).get("labels")).get(_DRANET)
        return label == "true" or block(pool.get("networkConfig")).get("acceleratorNetworkProfile") == "auto"

    for other in _neighbours(inputs, world):
        mixed = (claims(inputs) and _given(other.inputs)) or (claims(other.inputs) and _given(inputs))
        if mixed:
            yield Violation(
                "networkConfig",
                f"DRANET and the networks of devices of {other.name} would manage the same NICs",
                "Give all pools of a cluster networks in one way.",
            )
            return
