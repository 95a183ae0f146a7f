"""Priced resources: parts with a price, and parts without one, which are never counted as 0."""

import datetime
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from infra.catalog.fact import DatedPrice
from infra.cost.model import HOURS_PER_MONTH, CostItem
from infra.cost.tariff import Tariff, Units, always
from policies.resource import Resource


class PriceStanding(StrEnum):
    """Extent to which the price of a resource is known."""

    PRICED = "priced"
    BY_USAGE = "by usage"
    """The program does not state how much it is used."""
    FREE = "free"
    """Costs nothing by itself."""
    UNKNOWN = "unknown"
    """It, or a part of it, costs something, and no source gives the price."""


@dataclass(frozen=True)
class UnpricedPart:
    """A part of a resource without a price, with the reason."""

    name: str
    reason: str


Part = CostItem | UnpricedPart
BY_USAGE = "by usage"
"""The reason of a part that is billed by what the program does not state."""


@dataclass(frozen=True)
class PricedResource:
    """A resource with its parts."""

    urn: str
    type: str
    name: str
    region: str
    standing: PriceStanding
    parts: Sequence[CostItem] = ()
    unpriced: Sequence[UnpricedPart] = ()

    @property
    def usd(self) -> tuple[float, float, float] | None:
        """US dollars per month of the parts with a price: minimum, expected, maximum; None without any."""
        if not self.parts:
            return None
        sums = [sum(getattr(one, name) or 0.0 for one in self.parts) for name in _FIGURES]
        return sums[0], sums[1], sums[2]


_FIGURES = ("minimum", "expected", "maximum")


@dataclass(frozen=True)
class PricingPlan:
    """The resources of one side of a preview, for functions that look at neighbours."""

    resources: Sequence[Resource]
    on: datetime.date
    by_urn: Mapping[str, Resource] = field(default_factory=dict)

    def referred(self, resource: Resource, name: str, kind: str) -> Resource | None:
        """The resource of a type that a property comes from, by reference or by its known id."""
        urns = resource.references.get(name, ())
        found = next((self.by_urn[one] for one in urns if one in self.by_urn), None)
        return found if found is not None and found.kind == kind else None


Pricer = Callable[[Resource, "PricePlace"], Iterator[Part]]


@dataclass(frozen=True)
class PricePlace:
    """The region in which a resource is billed; `tariff` has the prices of services there."""

    region: str
    plan: PricingPlan
    tariff: Tariff

    def item(self, name: str, key: str, units: Units | float) -> Part:
        """`units` of a service per month; a part without a price where the region has none."""
        amount = always(units) if isinstance(units, int | float) else units
        made = self.tariff.item(name, key, amount)
        return made if made.expected is not None else self.missing(name)

    def hours(self, name: str, key: str, count: Units | float = 1.0) -> Part:
        """A service that is billed by the hour, all month."""
        units = always(count) if isinstance(count, int | float) else count
        return self.item(
            name, key, (units[0] * HOURS_PER_MONTH, units[1] * HOURS_PER_MONTH, units[2] * HOURS_PER_MONTH)
        )

    def machines(self, name: str, usd_per_hour: Units | None, nodes: Units, price: DatedPrice | None) -> Part:
        """`nodes` machines, all month."""
        if usd_per_hour is None:
            return self.missing(name)
        low, usual, high = (
            count * HOURS_PER_MONTH * usd for count, usd in zip(nodes, usd_per_hour, strict=True)
        )
        return CostItem(name, low, usual, high, price)

    def missing(self, name: str) -> UnpricedPart:
        """A part without a known price here."""
        where = f" in {self.region}" if self.region else ": the preview names no region of its provider"
        return UnpricedPart(name, f"no known price{where}")


def text(props: Mapping[str, Any], path: str, default: str = "") -> str:
    """The text at a path. Raises UndeterminedError where it is not known before the deployment."""
    value = value_at(props, path)
    return value if isinstance(value, str) and value else default


def number(props: Mapping[str, Any], path: str, default: float | None = None) -> float | None:
    """The number at a path, also one that is written as text. Raises UndeterminedError for an unknown one."""
    value = value_at(props, path)
    if isinstance(value, str):
        value = float(value) if value.replace(".", "", 1).isdigit() else None
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else default


def value_at(props: Mapping[str, Any], path: str) -> Any:
    """The value at a path of names; of a list of blocks, that of the first one."""
    value: Any = props
    for step in path.split("."):
        if isinstance(value, list):
            value = value[0] if value else None
        value = value.get(step) if isinstance(value, Mapping) else None
    return value
