"""Assumptions of estimates, each with its source, from `assumptions.toml`."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path

from infra.catalog.fact import Fact, Name
from infra.catalog.tables import read_table


class Assumption(Fact):
    """One figure that a question does not contain."""

    key: Name
    value: float
    unit: Name
    says: Name


@cache
def assumptions() -> Mapping[str, Assumption]:
    """All assumptions by key. Raises CatalogError where the table is malformed."""
    file = Path(__file__).with_name("assumptions.toml")
    return read_table(file, "assumption", Assumption, "key")


def assumed(key: str) -> float:
    """The figure of an assumption, in its unit."""
    return assumptions()[key].value
