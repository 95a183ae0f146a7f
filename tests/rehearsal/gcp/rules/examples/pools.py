"""For every rule about node pools: what is accepted, what is refused, where, and in which world."""

from typing import Any

from infra.catalog.gcp import facts
from tests.rehearsal.gcp.rules.examples.gke import CLUSTER, NETWORK, POOL, V2, Made

UNPROTECTED = {"name": "gke", "location": "us-central1", "initialNodeCount": 1, "deletionProtection": False}


CLUSTERS: list[Made] = [(CLUSTER, "gke", {**UNPROTECTED, **V2, "enableMultiNetworking": True})]


RESERVED = {"name": "res", "zone": "us-central1-a", "specificReservation": {"count": 1}}


RESERVATIONS: list[Made] = [
    ("compute/reservation:Reservation", "res", {**RESERVED, "specificReservationRequired": True}),
    ("compute/reservation:Reservation", "any", {**RESERVED, "name": "any"}),
]


FLEX = {"flexStart": True, "reservationAffinity": {"consumeReservationType": "NO_RESERVATION"}}


NO_REPAIR: dict[str, Any] = {"management": {"autoRepair": False}}


QUEUED: dict[str, Any] = {"queuedProvisioning": {"enabled": True}}


NONE = {"reservationAffinity": {"consumeReservationType": "NO_RESERVATION"}}


COMPACT: dict[str, Any] = {"placementPolicy": {"type": "COMPACT"}, "nodeLocations": ["us-central1-a"]}


def pool(node: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    return {"cluster": "gke", **({"nodeConfig": node} if node is not None else {}), **more}


def gpus(machine: str, kind: str, count: int) -> dict[str, Any]:
    return pool({"machineType": machine, "guestAccelerators": [{"type": kind, "count": count}]})


def networks(count: int, first: str = "gpu", rdma: int = 0) -> dict[str, Any]:
    plain = [{"network": first, "subnetwork": f"{first}-{index}"} for index in range(count)]
    fast = [{"network": "rdma", "subnetwork": f"rdma-{index}"} for index in range(rdma)]
    return {"networkConfig": {"additionalNodeNetworkConfigs": [*plain, *fast]}}


def reserved(kind: str, **more: Any) -> dict[str, Any]:
    return {"reservationAffinity": {"consumeReservationType": kind, **more}}


RDMA_SPACE: list[Made] = [
    (NETWORK, "gpu", {"name": "gpu", "autoCreateSubnetworks": False}),
    (
        NETWORK,
        "rdma",
        {
            "name": "rdma",
            "autoCreateSubnetworks": False,
            "networkProfile": "projects/research/global/networkProfiles/us-central1-a-vpc-roce",
        },
    ),
]


NAMED = "compute.googleapis.com/reservation-name"


MANY = {"nodeLocations": ["us-central1-a", "us-central1-b"]}


ULTRA = facts.gpu_networks["a3-ultragpu-8g"]


ULTRA_NODE = {"machineType": "a3-ultragpu-8g"}


AFFINITY = "nodeConfig.reservationAffinity"


ADDITIONAL = "networkConfig.additionalNodeNetworkConfigs"

ZONE_B = {"nodeLocations": ["us-central1-b"]}


DRANET = {"cloud.google.com/gke-networking-dra-driver": "true"}


SSDS = {"localSsdCount": 16}


def named(reservation: str) -> dict[str, Any]:
    return reserved("SPECIFIC_RESERVATION", key=NAMED, values=[reservation])


MACHINES: list[Made] = [
    (
        "compute/reservation:Reservation",
        "machines",
        {
            "name": "machines",
            "zone": "us-central1-a",
            "specificReservationRequired": True,
            "specificReservation": {
                "count": 2,
                "instanceProperties": {
                    "machineType": "a3-megagpu-8g",
                    "localSsds": [{"interface": "NVME", "diskSizeGb": 375}] * 16,
                },
            },
        },
    ),
]


NARROW: list[Made] = [
    (NETWORK, "net", {"name": "net", "autoCreateSubnetworks": False}),
    (
        "compute/subnetwork:Subnetwork",
        "sub",
        {
            "name": "sub",
            "network": "net",
            "ipCidrRange": "10.0.0.0/20",
            "secondaryIpRanges": [{"rangeName": "pods", "ipCidrRange": "10.64.0.0/22"}],
        },
    ),
    (
        CLUSTER,
        "gke",
        {
            **UNPROTECTED,
            "network": "net",
            "subnetwork": "sub",
            "ipAllocationPolicy": {"clusterSecondaryRangeName": "pods"},
        },
    ),
]

# id -> (type, world, accepted inputs, refused inputs, path of the violation)
EXAMPLES: dict[str, tuple[str, list[Any], dict[str, Any], dict[str, Any], str]] = {
    "GCP-POOL-001": (POOL, [], pool(**COMPACT), pool(**{**COMPACT, **MANY}), "nodeLocations"),
    "GCP-POOL-002": (
        POOL,
        [],
        pool(**COMPACT, upgradeSettings={"strategy": "SURGE"}),
        pool(**COMPACT, upgradeSettings={"strategy": "BLUE_GREEN"}),
        "upgradeSettings.strategy",
    ),
    "GCP-POOL-003": (POOL, [], pool(NONE, **QUEUED), pool(NONE, **QUEUED, **COMPACT), "placementPolicy.type"),
    "GCP-POOL-004": (
        POOL,
        [],
        pool(NONE, **QUEUED),
        pool(reserved("ANY_RESERVATION"), **QUEUED),
        f"{AFFINITY}.consumeReservationType",
    ),
    "GCP-POOL-005": (
        POOL,
        [],
        pool(NONE, **QUEUED, autoscaling={"totalMinNodeCount": 0, "totalMaxNodeCount": 4}),
        pool(NONE, **QUEUED, autoscaling={"totalMinNodeCount": 1, "totalMaxNodeCount": 4}),
        "autoscaling.totalMinNodeCount",
    ),
    "GCP-POOL-006": (
        POOL,
        [],
        pool(NONE, **QUEUED),
        pool({**NONE, "spot": True}, **QUEUED),
        "nodeConfig.spot",
    ),
    "GCP-POOL-007": (POOL, [], pool(FLEX, **NO_REPAIR), pool(FLEX), "management.autoRepair"),
    "GCP-POOL-008": (
        POOL,
        [],
        pool(FLEX, **NO_REPAIR, autoscaling={"maxNodeCount": 2}),
        pool(FLEX, **NO_REPAIR, nodeCount=2),
        "nodeCount",
    ),
    "GCP-POOL-009": (
        POOL,
        [],
        pool(FLEX, **NO_REPAIR),
        pool({"flexStart": True}, **NO_REPAIR),
        f"{AFFINITY}.consumeReservationType",
    ),
    "GCP-POOL-010": (
        POOL,
        [],
        pool(FLEX, **NO_REPAIR),
        pool({**FLEX, "spot": True}, **NO_REPAIR),
        "nodeConfig.spot",
    ),
    "GCP-POOL-011": (
        POOL,
        [],
        pool({**FLEX, "machineType": "a4-highgpu-8g"}, **NO_REPAIR, **{**COMPACT, **ZONE_B}),
        pool({**FLEX, "machineType": "a3-megagpu-8g"}, **NO_REPAIR, **COMPACT),
        "placementPolicy.type",
    ),
    "GCP-POOL-012": (
        POOL,
        [],
        pool({**NONE, "spot": True}),
        pool({**reserved("ANY_RESERVATION"), "spot": True}),
        f"{AFFINITY}.consumeReservationType",
    ),
    "GCP-POOL-013": (
        POOL,
        RESERVATIONS,
        pool(reserved("SPECIFIC_RESERVATION", key=NAMED, values=["res"])),
        pool(reserved("SPECIFIC_RESERVATION", values=["res"])),
        f"{AFFINITY}.key",
    ),
    "GCP-POOL-014": (
        POOL,
        RESERVATIONS,
        pool(reserved("SPECIFIC_RESERVATION", key=NAMED, values=["res", "bought-elsewhere"])),
        pool(reserved("SPECIFIC_RESERVATION", key=NAMED, values=["any"])),
        f"{AFFINITY}.values[0]",
    ),
    "GCP-POOL-015": (
        POOL,
        [],
        pool(autoscaling={"totalMaxNodeCount": 2}),
        pool(autoscaling={"totalMaxNodeCount": 2, "maxNodeCount": 2}),
        "autoscaling.maxNodeCount",
    ),
    "GCP-POOL-016": (
        POOL,
        [],
        pool(autoscaling={"minNodeCount": 1, "maxNodeCount": 2}),
        pool(autoscaling={"minNodeCount": 3, "maxNodeCount": 2}),
        "autoscaling.minNodeCount",
    ),
    "GCP-POOL-017": (
        POOL,
        [],
        pool(upgradeSettings={"maxSurge": 0, "maxUnavailable": 1}),
        pool(upgradeSettings={"maxSurge": 0, "maxUnavailable": 0}),
        "upgradeSettings.maxSurge",
    ),
    "GCP-POOL-018": (POOL, [], pool(name="a"), pool(name="a", namePrefix="b"), "namePrefix"),
    "GCP-POOL-019": (
        POOL,
        [],
        pool({"localNvmeSsdBlockConfig": {"localSsdCount": 16}}),
        pool(
            {
                "localNvmeSsdBlockConfig": {"localSsdCount": 16},
                "ephemeralStorageLocalSsdConfig": {"localSsdCount": 16},
            }
        ),
        "nodeConfig.localNvmeSsdBlockConfig.localSsdCount",
    ),
    "GCP-POOL-020": (
        POOL,
        CLUSTERS,
        pool(nodeLocations=["us-central1-c"]),
        pool(nodeLocations=["us-east1-c"]),
        "nodeLocations[0]",
    ),
    "GCP-GPU-001": (
        POOL,
        [],
        gpus("a3-highgpu-8g", "nvidia-h100-80gb", 8),
        gpus("a3-highgpu-8g", "nvidia-h100-80gb", 4),
        "nodeConfig.guestAccelerators[0].count",
    ),
    "GCP-GPU-002": (
        POOL,
        [],
        gpus("a3-megagpu-8g", "nvidia-h100-mega-80gb", 8),
        gpus("a3-megagpu-8g", "nvidia-h100-80gb", 8),
        "nodeConfig.guestAccelerators[0].type",
    ),
    "GCP-GPU-003": (
        POOL,
        [],
        pool({"machineType": "a3-megagpu-8g"}, **networks(8)),
        pool({"machineType": "a3-megagpu-8g"}, **networks(4)),
        ADDITIONAL,
    ),
    "GCP-GPU-004": (
        POOL,
        RDMA_SPACE,
        pool(ULTRA_NODE, **networks(ULTRA.networks, rdma=ULTRA.rdma_subnetworks)),
        pool(ULTRA_NODE, **networks(ULTRA.total)),
        ADDITIONAL,
    ),
    "GCP-GPU-005": (
        POOL,
        [*CLUSTERS, (CLUSTER, "plain", {**UNPROTECTED, "name": "plain"})],
        pool(**networks(1)),
        {"cluster": "plain", **networks(1)},
        ADDITIONAL,
    ),
    "GCP-GPU-006": (
        POOL,
        [],
        pool(**networks(2)),
        pool(networkConfig={"additionalNodeNetworkConfigs": [{"network": "a", "subnetwork": "b"}] * 2}),
        f"{ADDITIONAL}[1].subnetwork",
    ),
    "GCP-GPU-007": (
        POOL,
        [],
        pool(networkConfig={"acceleratorNetworkProfile": "auto"}),
        pool(networkConfig={"acceleratorNetworkProfile": "auto", **networks(1)["networkConfig"]}),
        ADDITIONAL,
    ),
    "GCP-GPU-008": (
        POOL,
        [*CLUSTERS, (CLUSTER, "plain", {**UNPROTECTED, "name": "plain"})],
        pool(networkConfig={"acceleratorNetworkProfile": "auto"}),
        {"cluster": "plain", "networkConfig": {"acceleratorNetworkProfile": "auto"}},
        "networkConfig.acceleratorNetworkProfile",
    ),
    "GCP-POOL-021": (
        POOL,
        [],
        pool(named("projects/other/reservations/r/reservationBlocks/b")),
        pool(named("r/reservationBlocks/b")),
        f"{AFFINITY}.values[0]",
    ),
    "GCP-POOL-022": (
        POOL,
        [*CLUSTERS, *MACHINES],
        pool({**named("machines"), "machineType": "a3-megagpu-8g", "ephemeralStorageLocalSsdConfig": SSDS}),
        pool({**named("machines"), "machineType": "a3-highgpu-8g"}),
        f"{AFFINITY}.values[0]",
    ),
    "GCP-POOL-023": (
        POOL,
        [*CLUSTERS, *MACHINES],
        pool(named("machines"), nodeCount=2, nodeLocations=["us-central1-a"]),
        pool(named("machines"), nodeCount=3, nodeLocations=["us-central1-a"]),
        f"{AFFINITY}.values[0]",
    ),
    "GCP-POOL-024": (
        POOL,
        NARROW,
        pool(nodeCount=4, nodeLocations=["us-central1-a"]),
        pool(nodeCount=5, nodeLocations=["us-central1-a"]),
        "maxPodsPerNode",
    ),
    "GCP-POOL-025": (
        POOL,
        NARROW,
        pool(autoscaling={"totalMinNodeCount": 0, "totalMaxNodeCount": 4}),
        pool(autoscaling={"totalMinNodeCount": 0, "totalMaxNodeCount": 5}),
        "autoscaling",
    ),
    "GCP-GPU-009": (
        POOL,
        [],
        pool({"machineType": "a4-highgpu-8g", "labels": DRANET}),
        pool({"machineType": "a3-megagpu-8g", "labels": DRANET}),
        'nodeConfig.labels["cloud.google.com/gke-networking-dra-driver"]',
    ),
    "GCP-GPU-010": (
        POOL,
        [],
        pool({"machineType": "a3-megagpu-8g"}, nodeLocations=["us-east5-a"]),
        pool({"machineType": "a3-megagpu-8g"}, nodeLocations=["us-east5-b"]),
        "nodeLocations[0]",
    ),
}
