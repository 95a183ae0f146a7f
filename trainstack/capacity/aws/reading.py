"""Reservations, Capacity Blocks and training plans, read from EC2 and SageMaker with read-only requests.

Untested in a real account: requests and responses are checked against the service models of botocore.
"""

import datetime
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from botocore import exceptions

from infra.clouds.aws.login import Clients, code_and_message, logged_in
from infra.errors import Problem
from trainstack.capacity.classes import PoolCapacity
from trainstack.capacity.reserved import CapacitySegment, ReservedCapacity
from trainstack.ledger.periods import TimeSpan

_ABSENT = (
    "InvalidCapacityReservationId.NotFound",
    "InvalidCapacityReservationId.Malformed",
    "ResourceNotFound",
    "ResourceNotFoundException",
)
# States without capacity, or without a bill (botocore 1.44.5 ec2 CapacityReservation.State). One that is
# `expired` or `cancelled` was billed until its end; `cancelling` is billed until its wind-down is over.
_OVER = ("cancelled", "expired")
_NEVER = ("failed", "payment-failed", "unsupported", "assessing", "Failed", "Pending")


def described(pools: Iterable[PoolCapacity], clients: Clients) -> Iterator[ReservedCapacity | Problem]:
    """Each reservation of the pools, or the reason why it could not be read. Raises LoggedOutError."""
    for pool in pools:
        if pool.reservation is None:
            continue
        planned = pool.kind == "training_plan"
        action = "sagemaker:DescribeTrainingPlan" if planned else "ec2:DescribeCapacityReservations"
        at = f"{pool.path}.purchase"
        try:
            with logged_in():
                yield (_plan if planned else _reservation)(pool, clients)
        except exceptions.ClientError as error:
            code, message = code_and_message(error)
            if code in _ABSENT:
                rule, fix = "does not exist in this account and region", "`trainstack preflight` checks it."
                yield Problem(at, pool.reservation, rule, fix, code="reservation-not-found")
                continue
            fix = f"Allow {action}; docs/reference/preflight.md has a policy with it."
            yield Problem(at, pool.reservation, f"{code}: {message}", fix, code="reservation-not-readable")
        except exceptions.BotoCoreError as error:
            fix = "Check the connection to AWS, and run the command again."
            yield Problem(at, pool.reservation, str(error), fix, code="reservation-not-readable")


def _reservation(pool: PoolCapacity, clients: Clients) -> ReservedCapacity:
    asked = clients("ec2", pool.region).describe_capacity_reservations(
        CapacityReservationIds=[pool.reservation]
    )
    found = asked["CapacityReservations"][0]
    # A reservation is billed from its start; one without is billed from its creation.
    start = found.get("StartDate") or found.get("CreateDate")
    committed = found.get("CommitmentInfo") or {}
    return ReservedCapacity(
        id=str(pool.reservation),
        status=found["State"],
        machine=found["InstanceType"],
        segments=_segments(found["State"], start, found.get("EndDate"), found["TotalInstanceCount"]),
        free=found.get("AvailableInstanceCount"),
        locked_until=committed.get("CommitmentEndDate"),
        locked_nodes=committed.get("CommittedInstanceCount") or 0,
    )


def _plan(pool: PoolCapacity, clients: Clients) -> ReservedCapacity:
    """A plan. It has one or several reserved capacities, and is paid in advance."""
    name = str(pool.reservation).rpartition("/")[2]
    found = clients("sagemaker", pool.region).describe_training_plan(TrainingPlanName=name)
    parts = [
        segment
        for row in found.get("ReservedCapacitySummaries") or ()
        if row["InstanceType"] == pool.machine
        for segment in _segments(
            row["Status"], row.get("StartTime"), row.get("EndTime"), row["TotalInstanceCount"]
        )
    ]
    whole = _segments(
        found["Status"], found.get("StartTime"), found.get("EndTime"), found.get("TotalInstanceCount", 0)
    )
    return ReservedCapacity(
        id=str(pool.reservation),
        status=found["Status"],
        machine=pool.machine,
        segments=tuple(parts) or whole,
        free=found.get("AvailableInstanceCount"),
        unhealthy=found.get("UnhealthyInstanceCount") or 0,
        fee_usd=_fee(found),
    )


def _segments(
    status: str, start: datetime.datetime | None, end: datetime.datetime | None, nodes: int
) -> tuple[CapacitySegment, ...]:
    span = TimeSpan(*(None if at is None else at.astimezone(datetime.UTC) for at in (start, end)))
    # A reservation without an end date that was cancelled does not say when.
    over = status in _NEVER or (status in _OVER and end is None)
    return () if over else (CapacitySegment(span, nodes),)


def _fee(found: Mapping[str, Any]) -> float | None:
    """The fee in US dollars; None for another currency.

    `TrainingPlanOffering.UpfrontFee` is a text with a number; no source says whether the fee of an extended
    plan contains those of its extensions, which `DescribeTrainingPlanExtensionHistory` lists.
    """
    if found.get("CurrencyCode", "USD") != "USD":
        return None
    try:
        return float(found["UpfrontFee"])
    except (KeyError, ValueError):
        return None
