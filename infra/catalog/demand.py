"""What is taken of a quota, on any cloud."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Demand:
    """So much of a quota is taken by something with a name."""

    key: str
    amount: float
    name: str


def by_quota(demands: Iterable[Demand]) -> Mapping[str, Sequence[Demand]]:
    """All that is taken of each quota, by its key, in the order in which keys come first."""
    found: dict[str, list[Demand]] = {}
    for demand in demands:
        found.setdefault(demand.key, []).append(demand)
    return found
