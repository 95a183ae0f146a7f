"""For every rule about reservations: what is accepted, what is refused, where, and in which world."""

from typing import Any

from tests.rehearsal.gcp.rules.examples.gke import POOL, Made
from tests.rehearsal.gcp.rules.examples.pools import AFFINITY, CLUSTERS, NAMED, pool, reserved

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


ELSEWHERE: list[Made] = [
    (
        "compute/reservation:Reservation",
        name,
        {**MACHINES[0][2], "name": name, "project": "lab", **({"shareSettings": share} if share else {})},
    )
    for name, share in (
        ("own", None),
        ("shared", {"shareType": "SPECIFIC_PROJECTS", "projectMaps": [{"id": "research"}]}),
    )
]


# id -> (type, world, accepted inputs, refused inputs, path of the violation)
EXAMPLES: dict[str, tuple[str, list[Any], dict[str, Any], dict[str, Any], str]] = {
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
    "GCP-POOL-030": (
        POOL,
        [*CLUSTERS, *MACHINES, *ELSEWHERE],
        pool(named("projects/lab/reservations/shared"), nodeCount=1, nodeLocations=["us-central1-a"]),
        pool(named("projects/lab/reservations/own"), nodeCount=1, nodeLocations=["us-central1-a"]),
        f"{AFFINITY}.values[0]",
    ),
    "GCP-POOL-023": (
        POOL,
        [*CLUSTERS, *MACHINES],
        pool(named("machines"), nodeCount=2, nodeLocations=["us-central1-a"]),
        pool(named("machines"), nodeCount=3, nodeLocations=["us-central1-a"]),
        f"{AFFINITY}.values[0]",
    ),
}
