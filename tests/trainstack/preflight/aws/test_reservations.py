"""Reserved capacity exists, is active, and is what the pool runs on."""

import datetime
from typing import Any

import pytest

from tests.trainstack.preflight.aws.asking import Cloud, account, asked
from trainstack.preflight.answers import State
from trainstack.preflight.aws import reservations

ID = "cr-0123456789abcdef0"
FOUND: dict[str, Any] = {
    "CapacityReservationId": ID,
    "State": "active",
    "InstanceType": "p4d.24xlarge",
    "AvailabilityZone": "us-east-1b",
    "TotalInstanceCount": 4,
    "ReservationType": "default",
    "InstancePlatform": "Linux/UNIX",
    "Tenancy": "default",
}


def capacity(kind: str = "reserved", /, **changes: Any) -> Any:
    cloud = Cloud().answers(
        "ec2",
        "describe_capacity_reservations",
        {"CapacityReservations": [{**FOUND, **changes}]},
        CapacityReservationIds=[ID],
    )
    pools: dict[str, Any] = {"layout__pools__0__purchase": {"kind": kind, "id": ID}}
    if kind == "block":
        pools |= {"layout__pools__0__machine": "p5.48xlarge"}
    return asked(reservations.capacity, account(cloud, **pools))


def test_a_reservation_that_fits_says_until_when() -> None:
    (answer,) = capacity(EndDate=datetime.datetime(2026, 12, 1, 11, 30, tzinfo=datetime.UTC))
    assert answer.state is State.READY and "2026-12-01 11:30" in answer.text
    (answer,) = capacity("block", ReservationType="capacity-block", InstanceType="p5.48xlarge")
    assert answer.state is State.READY


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"State": "expired"}, "is expired"),
        (
            {"State": "scheduled", "StartDate": datetime.datetime(2026, 12, 1, 11, 30, tzinfo=datetime.UTC)},
            "2026-12-01 11:30",
        ),
        ({"InstanceType": "p4de.24xlarge"}, "p4de.24xlarge, not"),
        ({"AvailabilityZone": "us-east-1a"}, "us-east-1a, not"),
        ({"TotalInstanceCount": 3}, "holds 3 machines"),
        ({"ReservationType": "capacity-block"}, "capacity-block"),
        ({"InstancePlatform": "Red Hat Enterprise Linux"}, "not for Linux/UNIX"),
        ({"Tenancy": "dedicated"}, "tenancy dedicated"),
    ],
)
def test_a_mismatch_is_reported(changes: dict[str, Any], words: str) -> None:
    (answer,) = capacity(**changes)
    assert answer.state is State.SHORT and words in answer.text


def test_all_mismatches_are_reported_at_once() -> None:
    assert len(capacity(State="expired", InstanceType="p5.48xlarge", TotalInstanceCount=1)) == 3


def test_a_reservation_that_does_not_exist() -> None:
    cloud = Cloud().refuses(
        "ec2", "describe_capacity_reservations", "InvalidCapacityReservationId.NotFound", "no such thing"
    )
    pools = {"layout__pools__0__purchase": {"kind": "reserved", "id": ID}}
    (answer,) = asked(reservations.capacity, account(cloud, **pools))
    assert answer.state is State.SHORT and "does not exist" in answer.text


def test_without_reserved_pools_nothing_is_asked() -> None:
    assert asked(reservations.capacity, account(Cloud())) == []


STARTS, ENDS = (datetime.datetime(2026, 12, day, 11, 30, tzinfo=datetime.UTC) for day in (1, 8))
BLOCK: dict[str, Any] = {
    "ReservationType": "capacity-block",
    "InstanceType": "p5.48xlarge",
    "StartDate": STARTS,
    "EndDate": ENDS,
}


def block(said: dict[str, str], **changes: Any) -> Any:
    """What is answered about a block whose times the spec gives as `said`."""
    cloud = Cloud().answers(
        "ec2",
        "describe_capacity_reservations",
        {"CapacityReservations": [{**FOUND, **BLOCK, **changes}]},
        CapacityReservationIds=[ID],
    )
    pools: dict[str, Any] = {
        "layout__pools__0__purchase": {"kind": "block", "id": ID, **said},
        "layout__pools__0__machine": "p5.48xlarge",
    }
    return asked(reservations.capacity, account(cloud, **pools))


def test_the_times_of_a_block_are_those_of_ec2() -> None:
    said = {"starts": "2026-12-01T11:30:00Z", "ends": "2026-12-08T12:30:00+01:00"}
    (answer,) = block(said)
    assert answer.state is State.READY
    # Its queue opens when it begins, so a stack may be there before.
    (early,) = block(said, State="scheduled")
    assert early.state is State.READY and "is scheduled" in early.text
    (other,) = block({**said, "ends": "2026-12-09T11:30:00Z"})
    assert other.state is State.SHORT and "2026-12-08T11:30:00Z" in other.text


def test_a_block_without_times_gets_them_as_a_note() -> None:
    ready, note = block({})
    assert ready.state is State.READY and note.state is State.NOTE
    assert "starts: 2026-12-01T11:30:00Z" in note.fix and "ends: 2026-12-08T11:30:00Z" in note.fix
    (early,) = block({}, State="scheduled")
    assert early.state is State.SHORT
