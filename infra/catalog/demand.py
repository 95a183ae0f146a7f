"""Demand for a quota, on any cloud."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Demand:
    """The amount of a quota that a named resource takes."""

    key: str
    amount: float
    name: str


def by_quota(demands: Iterable[Demand]) -> Mapping[str, Sequence[Demand]]:
    """All demands by quota key, in the order of first use."""
    found: dict[str, list[Demand]] = {}
    for demand in demands:
        found.setdefault(demand.key, []).append(demand)
    return found
