"""What an estimate consists of: items with a price, and what has none: named, never counted as 0."""

import datetime
from dataclasses import dataclass

from infra.catalog.fact import DatedPrice

HOURS_PER_MONTH = 730.0


@dataclass(frozen=True)
class CostItem:
    """US dollars per month of one part of the stack; all None when no source gives its price."""

    name: str
    minimum: float | None
    expected: float | None
    maximum: float | None
    price: DatedPrice | None = None

    @property
    def date(self) -> datetime.date | None:
        """The day of the price."""
        return self.price.date if self.price else None


@dataclass(frozen=True)
class UsageCost:
    """What costs by a use that no spec states, with its rate where a source gives one."""

    name: str
    usd: float | None = None
    unit: str = ""

    def __str__(self) -> str:
        return self.name if self.usd is None else f"{self.name} (${self.usd:g} per {self.unit})"


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
    def not_priced(self) -> tuple[UsageCost, ...]:
        """What the sums leave out: items without a price, then what costs by use."""
        return (*(UsageCost(item.name) for item in self.items if item.expected is None), *self.uses)

    @property
    def minimum(self) -> float:
        """Everything at its smallest, of what has a price."""
        return sum(item.minimum or 0.0 for item in self.known)

    @property
    def expected(self) -> float:
        """Everything at its expected use, of what has a price."""
        return sum(item.expected or 0.0 for item in self.known)

    @property
    def maximum(self) -> float:
        """Everything at its largest, of what has a price."""
        return sum(item.maximum or 0.0 for item in self.known)

    def old(self, on: datetime.date) -> tuple[CostItem, ...]:
        """The items whose price was older on a day than its source allows, the oldest first."""
        dated = [(item.price.date, item) for item in self.known if item.price and item.price.old(on)]
        return tuple(item for _, item in sorted(dated, key=lambda pair: pair[0]))
