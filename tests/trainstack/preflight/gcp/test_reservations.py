"""Reserved capacity exists, is ready, and is what the pool's nodes run on."""

from typing import Any

import pytest

from tests.trainstack.preflight.gcp.asking import ABSENT, DENIED, ID, Google, aggregated, asked, project
from trainstack.preflight.answers import State
from trainstack.preflight.gcp import reservations

GET, BLOCK, FUTURE, TYPES = (
    "compute.reservations.get",
    "compute.reservationBlocks.get",
    "compute.futureReservations.list",
    "compute.machineTypes.aggregatedList",
)
SSDS = [{"diskSizeGb": "375", "interface": "NVME"}] * 16
FULL = f"projects/{ID}/reservations/h100"
WHAT: dict[str, Any] = {
    "machineType": "a3-megagpu-8g",
    "guestAccelerators": [{"acceleratorType": "nvidia-h100-mega-80gb", "acceleratorCount": 8}],
    "localSsds": SSDS,
}
FOUND: dict[str, Any] = {
    "name": "h100",
    "zone": f"https://www.googleapis.com/compute/v1/projects/{ID}/zones/us-central1-a",
    "status": "READY",
    "specificReservationRequired": True,
    "specificReservation": {"count": "4", "inUseCount": "1", "instanceProperties": WHAT},
    "shareSettings": {"shareType": "LOCAL"},
}


def types(bundled: dict[str, Any] | None) -> dict[str, Any]:
    row = {"name": "a3-megagpu-8g", **({"bundledLocalSsds": bundled} if bundled else {})}
    return aggregated("machineTypes", {"zones/us-central1-a": [row]})


def capacity(
    reply: Any = FOUND,
    /,
    id: str = FULL,
    kind: str = "reserved",
    bundled: Any = None,
    said: Any = None,
    **changes: Any,
) -> tuple[Google, list[Any]]:
    pools = {"layout__pools__0__purchase": {"kind": kind, "id": id}, **changes}
    google = Google({GET: reply, TYPES: types(bundled), **(said or {})})
    return google, asked(reservations.capacity, project(google, **pools))


def test_a_reservation_that_fits_says_what_is_free_and_until_when() -> None:
    google, (answer,) = capacity({**FOUND, "deleteAtTime": "2026-12-24T00:00:00Z"})
    assert answer.state is State.READY
    assert "2026-12-24T00:00:00Z" in answer.text and "3 of 4" in answer.text
    assert google.given(GET) == [{"project": ID, "zone": "us-central1-a", "reservation": "h100"}]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"status": "CREATING"}, "is creating"),
        ({"specificReservationRequired": False}, "without --require-specific-reservation"),
        ({"specificReservation": {**FOUND["specificReservation"], "count": "3"}}, "holds 3 machines"),
        ({"specificReservation": None, "aggregateReservation": {}}, "one type"),
    ],
)
def test_a_mismatch_is_reported(changes: dict[str, Any], words: str) -> None:
    row = {key: value for key, value in {**FOUND, **changes}.items() if value is not None}
    _, (answer,) = capacity(row)
    assert answer.state is State.SHORT and words in answer.text


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"machineType": "a3-highgpu-8g"}, "a3-highgpu-8g, not"),
        (
            {"guestAccelerators": [{"acceleratorType": "nvidia-h100-80gb", "acceleratorCount": 8}]},
            "8 nvidia-h100-mega-80gb",
        ),
        ({"localSsds": []}, "0 local SSDs"),
        ({"localSsds": [{"diskSizeGb": "375", "interface": "SCSI"}] * 16}, "with SCSI"),
    ],
)
def test_other_machines_than_those_of_the_nodes_are_reported(changes: dict[str, Any], words: str) -> None:
    row = {
        **FOUND,
        "specificReservation": {**FOUND["specificReservation"], "instanceProperties": {**WHAT, **changes}},
    }
    _, (answer,) = capacity(row, bundled={"partitionCount": 16, "defaultInterface": "NVME"})
    assert answer.state is State.SHORT and words in answer.text


def test_the_pools_own_number_of_disks_decides_before_that_of_the_type() -> None:
    _, (answer,) = capacity(on__pools={"h100": {"local_ssds": 8}})
    assert "16 local SSDs" in answer.text
    _, (answer,) = capacity()  # the type does not report them
    assert answer.state is State.READY


def test_all_mismatches_are_reported_at_once() -> None:
    specific = {"count": "1", "instanceProperties": {"machineType": "n2-standard-8"}}
    _, answers = capacity({"name": "h100", "status": "INVALID", "specificReservation": specific})
    assert len(answers) == 4


@pytest.mark.parametrize(
    ("settings", "state"),
    [
        ({"shareType": "LOCAL"}, State.SHORT),
        (
            {"shareType": "SPECIFIC_PROJECTS", "projectMap": {"another": {"projectId": "another"}}},
            State.SHORT,
        ),
        ({"shareType": "SPECIFIC_PROJECTS", "projectMap": {ID: {"projectId": ID}}}, State.READY),
        ({"shareType": "ORGANIZATION"}, State.READY),
    ],
)
def test_a_reservation_of_another_project_must_be_shared(settings: dict[str, Any], state: State) -> None:
    google, (answer,) = capacity(
        {**FOUND, "shareSettings": settings}, id="projects/owner-1/reservations/h100"
    )
    assert answer.state is state
    assert google.given(GET)[0]["project"] == "owner-1"


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        (ABSENT, "no such block"),
        ({"resource": {"name": "b1", "status": "READY", "count": 2}}, "holds 2 machines"),
        ({"resource": {"name": "b1", "status": "CREATING", "count": 4}}, "is creating"),
        ({"resource": {"name": "b1", "status": "READY", "count": 4}}, ""),
    ],
)
def test_a_block_of_a_reservation(reply: Any, words: str) -> None:
    google, (answer,) = capacity(id=f"{FULL}/reservationBlocks/b1", said={BLOCK: reply})
    assert (answer.state is State.SHORT) == bool(words) and words in answer.text
    (given,) = google.given(BLOCK)
    assert given == {"project": ID, "zone": "us-central1-a", "reservation": "h100", "reservationBlock": "b1"}


def test_a_reservation_that_does_not_exist() -> None:
    _, (answer,) = capacity(ABSENT)
    assert answer.state is State.SHORT and "us-central1-a" in answer.text
    _, (answer,) = capacity(DENIED)
    assert answer.state is State.UNKNOWN and "compute.reservations.get" in answer.fix


def test_a_block_of_time_has_an_end() -> None:
    _, (answer,) = capacity(kind="block")
    assert answer.state is State.SHORT and "has no end" in answer.text
    _, (answer,) = capacity({**FOUND, "deleteAtTime": "2026-12-24T00:00:00Z"}, kind="block")
    assert answer.state is State.READY


def test_the_end_of_a_block_of_time_is_that_of_compute_engine() -> None:
    said = {"starts": "2026-12-01T00:00:00Z", "ends": "2026-12-24T01:00:00+01:00"}
    bought: dict[str, Any] = {"layout__pools__0__purchase": {"kind": "block", "id": FULL, **said}}
    found = {**FOUND, "deleteAtTime": "2026-12-24T00:00:00Z"}
    _, (answer,) = capacity(found, **bought)
    assert answer.state is State.READY
    _, (other,) = capacity({**found, "deleteAtTime": "2026-12-25T00:00:00Z"}, **bought)
    assert other.state is State.SHORT and "2026-12-25T00:00:00Z" in other.text


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ({"reservationName": "h100", "status": {"procurementStatus": "APPROVED"}}, "2026-12-01"),
        ({"namePrefix": "h1", "status": {"procurementStatus": "COMMITTED"}}, "2026-12-01"),
        ({"reservationName": "h100", "status": {"procurementStatus": "DECLINED"}}, "Reserve again"),
    ],
)
def test_a_future_reservation_that_has_not_begun(row: dict[str, Any], words: str) -> None:
    window = {"startTime": "2026-12-01T00:00:00Z"}
    said = {FUTURE: {"items": [{"name": "other"}, {"name": "future", "timeWindow": window, **row}]}}
    _, (answer,) = capacity(ABSENT, kind="block", said=said)
    assert answer.state is State.SHORT and "future is" in answer.text and words in answer.fix


def test_a_block_that_nothing_will_make() -> None:
    _, (answer,) = capacity(ABSENT, kind="block", said={FUTURE: {"items": [{"name": "other"}]}})
    assert answer.state is State.SHORT and "does not exist" in answer.text


def test_without_reserved_pools_nothing_is_asked() -> None:
    assert asked(reservations.capacity, project(Google())) == []
