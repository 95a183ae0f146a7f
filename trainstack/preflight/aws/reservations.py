"""The check of reserved capacity: it exists, is active, and matches the pool."""

from collections.abc import Iterator, Mapping
from typing import Any

from infra.stackspec.layouts import PoolSpec
from infra.stackspec.purchases import CapacityBlock
from trainstack.preflight.answers import Answer, State
from trainstack.preflight.aws.account import Account
from trainstack.preflight.blocks import differing_times

_CHECK = "reservations"
_TYPES = {"reserved": "default", "block": "capacity-block"}
# Of every node: Amazon Linux, and no template names a tenancy. An instance is launched only into a
# reservation "that has matching attributes (instance type, platform, Availability Zone, and tenancy)":
# EC2 User Guide, capacity-reservations-launch, read 2026-11-23; words of botocore 1.44.5 ec2/2016-11-15.
_PLATFORM, _TENANCY = "Linux/UNIX", "default"
_ABSENT = ("InvalidCapacityReservationId.NotFound", "InvalidCapacityReservationId.Malformed")


def capacity(account: Account) -> Iterator[Answer]:
    """Each reservation or Capacity Block matches its pool, is active, and is large enough."""
    for index, pool in enumerate(account.machines.pools):
        if pool.purchase.kind in ("reserved", "block"):
            yield from _pool(account, f"layout.pools[{index}]", pool, pool.purchase.id)


def _pool(account: Account, path: str, pool: PoolSpec, reservation: str) -> Iterator[Answer]:
    operation = "describe_capacity_reservations"
    asked = account.found("ec2", operation, *_ABSENT, CapacityReservationIds=[reservation])
    if asked is None:
        fix = "Correct layout.pools[].purchase.id; `aws ec2 describe-capacity-reservations` lists yours."
        yield Answer(_CHECK, State.SHORT, f"{path}: {reservation} does not exist here", fix)
        return
    found = asked["CapacityReservations"][0]
    wrong = list(_differences(pool, found))
    fix = "Name another reservation, wait until it is active, or change the pool to match it."
    for message in wrong:
        yield Answer(_CHECK, State.SHORT, f"{path}: {reservation} {message}", fix)
    if not wrong:
        until = found.get("EndDate")
        end = f", until {until:%Y-%m-%d %H:%M} UTC" if until else ""
        yield Answer(_CHECK, State.READY, f"{path}: {reservation} is {found['State']}{end}")
        yield from _times_to_add(path, pool, found)


def _times_to_add(path: str, pool: PoolSpec, found: Mapping[str, Any]) -> Iterator[Answer]:
    """A note on a block whose end is not in the spec: it ends while jobs run."""
    bought, until = pool.purchase, found.get("EndDate")
    if isinstance(bought, CapacityBlock) and bought.ends is None and until is not None:
        since = found.get("StartDate") or until
        fix = (
            f"Write {path}.purchase.starts: {since:%Y-%m-%dT%H:%M:%SZ} and ends: {until:%Y-%m-%dT%H:%M:%SZ}."
        )
        yield Answer(_CHECK, State.NOTE, f"{path}: no job is stopped before the block ends", fix)


def _differences(pool: PoolSpec, found: Mapping[str, Any]) -> Iterator[str]:
    bought = pool.purchase
    waits = isinstance(bought, CapacityBlock) and bought.starts is not None
    # A block with a start in the spec can be deployed before: its queue opens at its start.
    if found["State"] != "active" and not (waits and found["State"] == "scheduled"):
        since = found.get("StartDate")
        yield f"is {found['State']}" + (f", it starts {since:%Y-%m-%d %H:%M} UTC" if since else "")
    kind = found.get("ReservationType", "default")
    if kind != _TYPES[pool.purchase.kind]:
        yield f"is of type {kind}, which does not match the purchase {pool.purchase.kind}"
    if found["InstanceType"] != pool.machine:
        yield f"holds {found['InstanceType']}, not {pool.machine}"
    if found["AvailabilityZone"] not in pool.zones:
        yield f"is in {found['AvailabilityZone']}, not in {', '.join(pool.zones)}"
    if found["InstancePlatform"] != _PLATFORM:
        yield f"is for {found['InstancePlatform']}, not for {_PLATFORM}"
    if found["Tenancy"] != _TENANCY:
        yield f"is of tenancy {found['Tenancy']}, nodes are of tenancy {_TENANCY}"
    if isinstance(bought, CapacityBlock):
        yield from differing_times(bought, found.get("StartDate"), found.get("EndDate"))
    if found["TotalInstanceCount"] < pool.max_nodes:
        yield f"holds {found['TotalInstanceCount']} machines, the pool can grow to {pool.max_nodes}"
