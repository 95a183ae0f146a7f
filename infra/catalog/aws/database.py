"""Sizes of Aurora Serverless v2."""

from collections.abc import Iterator

from infra.catalog.aws import facts
from infra.catalog.pools import order_problems
from infra.errors import Problem


def capacity_problems(path_min: str, min_acu: float, path_max: str, max_acu: float) -> Iterator[Problem]:
    """The smallest and largest size in Aurora capacity units, half units at a time."""
    yield from facts.limits["aurora_min_acu"].problems(path_min, min_acu)
    yield from facts.limits["aurora_max_acu"].problems(path_max, max_acu)
    yield from order_problems(path_min, min_acu, path_max, max_acu)
