"""Checks of lifecycle transitions to cheaper storage classes with immediate access."""

from collections.abc import Iterator
from dataclasses import dataclass

from infra.errors import Problem


@dataclass(frozen=True)
class StorageClass:
    """A storage class of a cloud."""

    name: str
    """Name in the cloud's API."""
    billed_days: int
    """Minimum billed days of an object; an object that is deleted earlier costs as much."""
    first_day: int
    """The earliest age in days at which a lifecycle rule may move an object there."""
    price: str
    """Key of its price per GB-month in the catalog."""


@dataclass(frozen=True)
class Move:
    """Transition of objects to a class after a number of days; None: no transition."""

    path: str
    after_days: int | None
    to: StorageClass


def move_problems(cool: Move, cold: Move, expire_path: str, expire_days: int) -> Iterator[Problem]:
    """Transitions and expiry are in order, and objects stay in a class for its minimum billed days."""
    first, second = cool.after_days, cold.after_days
    if first is not None and first < cool.to.first_day:
        rule = f"{cool.to.name} accepts no object before day {cool.to.first_day}"
        fix = f"Set {cool.to.first_day} or more, or null."
        yield Problem(cool.path, first, rule, fix, code="storage-class-too-early")
    if first is not None and second is not None and second < first + cool.to.billed_days:
        least = first + cool.to.billed_days
        rule = f"{first} + {cool.to.billed_days} days in {cool.to.name} end on day {least}, after it"
        fix = f"Set {least} or more, or null."
        yield Problem(cold.path, second, rule, fix, against=cool.path, code="storage-class-overlap")
    # Objects that move on to the cold class do not expire in the cool one.
    last = cool if second is None else cold
    days = last.after_days
    if days is not None and expire_days < days + last.to.billed_days:
        least = days + last.to.billed_days
        rule = (
            f"{last.to.name} bills {last.to.billed_days} days: {days} + {last.to.billed_days} = day {least}, "
            f"and the bucket deletes after {expire_days}"
        )
        fix = f"Set {expire_path} to {least} or more, or this to null."
        yield Problem(last.path, days, rule, fix, against=expire_path, code="storage-class-ends-early")
