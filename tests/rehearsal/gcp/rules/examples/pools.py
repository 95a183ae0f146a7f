"""For every rule about node pools: what is accepted, what is refused, where, and in which world."""

from typing import Any

from tests.rehearsal.gcp.rules.examples.gke import CLUSTER, POOL, V2, Made

UNPROTECTED = {"name": "gke", "location": "us-central1", "initialNodeCount": 1, "deletionProtection": False}


CLUSTERS: list[Made] = [(CLUSTER, "gke", {**UNPROTECTED, **V2, "enableMultiNetworking": True})]


RESERVED = {
    "name": "res",
    "zone": "us-central1-a",
    "specificReservation": {"count": 1, "instanceProperties": {"machineType": "a3-megagpu-8g"}},
}


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


def reserved(kind: str, **more: Any) -> dict[str, Any]:
    return {"reservationAffinity": {"consumeReservationType": kind, **more}}


NAMED = "compute.googleapis.com/reservation-name"


MANY = {"nodeLocations": ["us-central1-a", "us-central1-b"]}

AFFINITY = "nodeConfig.reservationAffinity"


ZONE_B = {"nodeLocations": ["us-central1-b"]}


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
    "GCP-POOL-026": (
        POOL,
        [],
        pool({**FLEX, "machineType": "a4-highgpu-8g"}, **NO_REPAIR, **ZONE_B),
        pool({"machineType": "a4-highgpu-8g"}, **ZONE_B),
        "nodeConfig.machineType",
    ),
    "GCP-POOL-027": (
        POOL,
        [],
        pool({"machineType": "g2-standard-8", "ephemeralStorageLocalSsdConfig": {"localSsdCount": 1}}),
        pool({"machineType": "g2-standard-8", "ephemeralStorageLocalSsdConfig": {"localSsdCount": 2}}),
        "nodeConfig.ephemeralStorageLocalSsdConfig.localSsdCount",
    ),
}
