"""Capacity reservations, which are billed also when unused."""

from collections.abc import Iterator

from policies.catalog import CATALOG, Violation
from policies.resource import Resource
from policies.rules.pools import TEMPLATE, groups_of, machines_of, pools_of
from policies.stack import Stack

_RESERVATION = "aws:ec2/capacityReservation:CapacityReservation"
_BLOCK = "aws:ec2/capacityBlockReservation:CapacityBlockReservation"
_TARGET = "capacityReservationSpecification.capacityReservationTarget.capacityReservationId"


@CATALOG.rule_around(
    "MLS-COST-08",
    "high",
    (_RESERVATION, _BLOCK),
    "A reservation without an end, or without a pool that uses it, bills idle machines.",
    "Set endDateType to limited with an endDate, and name the reservation in a pool of its machine type.",
)
def reserved_capacity_ends_and_is_used(reservation: Resource, stack: Stack) -> Iterator[Violation]:
    """A capacity reservation has an end, and a pool of its machine type uses it."""
    # A block is sold with its end.
    if reservation.kind == _RESERVATION and reservation.props.get("endDateType") != "limited":
        yield Violation("it has no end", "endDateType")
    machine = reservation.props.get("instanceType") or reservation.computed("instanceType")
    naming = list(stack.users(reservation, TEMPLATE, _TARGET))
    started = [name for one in naming for group in groups_of(one, stack) for name in machines_of(group, one)]
    if machine not in started and not (_is_open(reservation) and machine in stack.once(_machines)):
        yield Violation(f"no pool of {machine} uses it", "instanceType")


def _machines(stack: Stack) -> set[str]:
    return {name for group, template in pools_of(stack) for name in machines_of(group, template)}


def _is_open(reservation: Resource) -> bool:
    """Return whether matching machines use it automatically; a block must be named."""
    return reservation.kind == _RESERVATION and reservation.props.get("instanceMatchCriteria") != "targeted"
