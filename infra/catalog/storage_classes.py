"""What object stores ask of a move to a cheaper storage class, from which objects are still read at once."""

from collections.abc import Iterator
from dataclasses import dataclass

from infra.errors import Problem


@dataclass(frozen=True)
class StorageClass:
    """One class of one cloud."""

    name: str
    """As the cloud's interface spells it."""
    billed_days: int
    """Days that an object is billed for at least; one that is deleted earlier costs as much."""
    first_day: int
    """The earliest age in days at which a lifecycle rule may move an object there."""
    price: str
    """Key of its price per GB-month in the catalog."""


@dataclass(frozen=True)
class Move:
    """An object's move to a class, wanted after so many days; None: it is not wanted."""

    path: str
    after_days: int | None
    to: StorageClass


def move_problems(cool: Move, cold: Move, expire_path: str, expire_days: int) -> Iterator[Problem]:
    """Days of two moves and of the end are in order, and what is moved stays as long as it is billed."""
    first, second = cool.after_days, cold.after_days
    if first is not None and first < cool.to.first_day:
        rule = f"{cool.to.name} takes no object before day {cool.to.first_day}"
        yield Problem(
            cool.path,
            first,
            rule,
            f"Set {cool.to.first_day} or more, or null.",
            code="storage-class-too-early",
        )
    if first is not None and second is not None and second < first + cool.to.billed_days:
        least = first + cool.to.billed_days
        rule = f"{first} + {cool.to.billed_days} days in {cool.to.name} end on day {least}, after it"
        yield Problem(
            cold.path,
            second,
            rule,
            f"Set {least} or more, or null.",
            against=cool.path,
            code="storage-class-overlap",
        )
    # What goes on to the cold class does not end in the cool one.
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
