"""Parts of an estimate: items with a price, and items without one, which are never counted as 0."""

import datetime
from dataclasses import dataclass

from infra.catalog.fact import DatedPrice

HOURS_PER_MONTH = 730.0


@dataclass(frozen=True)
class CostItem:
    """US dollars per month of one part of the stack; all None without a price."""

    name: str
    minimum: float | None
    expected: float | None
    maximum: float | None
    price: DatedPrice | None = None

    @property
    def date(self) -> datetime.date | None:
        """Date of the price."""
        return self.price.date if self.price else None


@dataclass(frozen=True)
class UsageCost:
    """A cost by usage that the spec does not state, with its rate if known."""

    name: str
    usd: float | None = None
    unit: str = ""
    assumed: "Assumed | None" = None

    def __str__(self) -> str:
        if self.usd is None:
            return self.name
        rate = f"${self.usd:g} per {self.unit}"
        if self.assumed is not None:
            month = self.assumed.units * self.usd
            rate += f"; ${month:,.0f} a month for {self.assumed.units:,.0f} {self.assumed.text}"
        return f"{self.name} ({rate})"


@dataclass(frozen=True)
class Assumed:
    """An example of usage, for its cost: units per month, and what they stand for."""

    units: float
    text: str


@dataclass(frozen=True)
class CostEstimate:
    """The price of a stack per month in US dollars."""

    items: tuple[CostItem, ...]
    uses: tuple[UsageCost, ...] = ()

    @property
    def known(self) -> tuple[CostItem, ...]:
        """The items that have a price."""
        return tuple(item for item in self.items if item.expected is not None)

    @property
    def unknown(self) -> tuple[CostItem, ...]:
        """The items without a price, which the sums exclude, also those that always cost something."""
        return tuple(item for item in self.items if item.expected is None)

    @property
    def not_priced(self) -> tuple[UsageCost, ...]:
        """Not in the sums: items without a price, then costs by usage."""
        return (*(UsageCost(item.name) for item in self.unknown), *self.uses)

    @property
    def minimum(self) -> float:
        """Sum of the items with a price, at their smallest."""
        return sum(item.minimum or 0.0 for item in self.known)

    @property
    def expected(self) -> float:
        """Sum of the items with a price, at their expected usage."""
        return sum(item.expected or 0.0 for item in self.known)

    @property
    def maximum(self) -> float:
        """Sum of the items with a price, at their largest."""
        return sum(item.maximum or 0.0 for item in self.known)

    def line(self, region: str) -> str:
        """The sums in whole dollars, with the items that they exclude for want of a price in the region."""
        sums = (self.minimum, self.expected, self.maximum)
        low, middle, high = (f"${usd:,.0f}" for usd in sums)
        names = ", ".join(item.name for item in self.unknown)
        without = f", without {names} (no known price in {region})" if names else ""
        return f"{low} min / {middle} expected / {high} max{without}"

    def old(self, on: datetime.date) -> tuple[CostItem, ...]:
        """The items with an expired price on a day, the oldest first."""
        dated = [(item.price.date, item) for item in self.known if item.price and item.price.old(on)]
        return tuple(item for _, item in sorted(dated, key=lambda pair: pair[0]))


@dataclass(frozen=True)
class NodeRate:
    """US dollars per node-hour: the planning figure, and the row of the catalog with its source and date."""

    usd: float
    price: DatedPrice
