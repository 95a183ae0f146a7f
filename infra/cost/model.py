"""What an estimate consists of: items with a price, and items without one: named, never counted as 0."""

import datetime
from dataclasses import dataclass

HOURS_PER_MONTH = 730.0
# What depends on use that no spec states; shown with every estimate.
NOT_INCLUDED = (
    "data transfer and NAT traffic",
    "contents of buckets and of the home file system",
    "volume of logs and metrics",
    "taxes, discounts and savings plans",
)


# A price this old is named beside the sum: providers change prices about once a year.
_OLD = datetime.timedelta(days=365)


@dataclass(frozen=True)
class Item:
    """US dollars per month of one part of the stack; all None when no source gives its price."""

    name: str
    minimum: float | None
    expected: float | None
    maximum: float | None
    date: datetime.date | None = None
    source: str | None = None


@dataclass(frozen=True)
class Estimate:
    """The price of a stack per month in US dollars."""

    items: tuple[Item, ...]

    @property
    def known(self) -> tuple[Item, ...]:
        """The items that have a price."""
        return tuple(item for item in self.items if item.expected is not None)

    @property
    def unknown(self) -> tuple[str, ...]:
        """The names of the items that have none."""
        return tuple(item.name for item in self.items if item.expected is None)

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

    def old(self, on: datetime.date) -> tuple[Item, ...]:
        """The items whose price was more than a year old on a day, the oldest first."""
        dated = [(item.date, item) for item in self.known if item.date and on - item.date > _OLD]
        return tuple(item for _, item in sorted(dated, key=lambda pair: pair[0]))
