"""Prices of services in one region, as items of an estimate."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from infra.catalog.errors import UnknownFactError
from infra.catalog.fact import DatedPrice
from infra.catalog.rows import ServicePrice
from infra.cost.model import HOURS_PER_MONTH, Assumed, CostItem, UsageCost
from infra.stackspec.layouts import JobMachineSpec, PoolSpec, SmallLayout
from infra.stackspec.stack import JOB_STARTUP_S, StackSpec

_PREPAID = ("reserved", "block")
"""Purchases that are billed whether or not nodes run on them."""
Units = tuple[float, float, float]
"""Units per month: least, usual, most."""


def always(count: float) -> Units:
    """A constant number of units."""
    return count, count, count


def paid_nodes(pool: PoolSpec) -> int:
    """Nodes that are billed whether or not a job holds them: all of a reservation, else the minimum."""
    return pool.max_nodes if pool.purchase.kind in _PREPAID else pool.min_nodes


def machines(name: str, usd_per_hour: Units | None, nodes: Units, price: DatedPrice | None) -> CostItem:
    """An item of `nodes` nodes, all month; `usd_per_hour` is None without a price."""
    if usd_per_hour is None:
        return CostItem(name, None, None, None)
    low, usual, high = (count * HOURS_PER_MONTH * usd for count, usd in zip(nodes, usd_per_hour, strict=True))
    return CostItem(name, low, usual, high, price)


def validations(
    spec: StackSpec, layout: SmallLayout, hour_usd: Callable[[JobMachineSpec, str], float | None]
) -> Iterator[UsageCost]:
    """Maximum cost of a validation that runs as a job; `hour_usd` is the cloud's, by machine and region."""
    hours = (spec.smoke.timeout_s + JOB_STARTUP_S) / 3600
    for one in layout.machines:
        if (nodes := spec.validated.get(one.name)) is not None:
            usd = hour_usd(one, spec.region)
            name = f"validations ({nodes} x {one.machine}, at most {hours * 60:.0f} min)"
            yield (
                UsageCost(name, round(nodes * hours * usd, 2), "run") if usd is not None else UsageCost(name)
            )


@dataclass(frozen=True)
class Tariff:
    """Prices of one region; `service_price` is the method of a cloud's catalog."""

    service_price: Callable[[str, str], ServicePrice | None]
    region: str

    def item(self, name: str, key: str, units: Units) -> CostItem:
        """An item of `units` units of one service."""
        price = self._price(key)
        if price is None:
            return CostItem(name, None, None, None)
        low, usual, high = (amount * price.usd for amount in units)
        return CostItem(name, low, usual, high, price)

    def use(self, name: str, key: str, assumed: Assumed | None = None) -> UsageCost:
        """A cost by usage, with its rate and an example."""
        price = self._price(key)
        return UsageCost(name, price.usd, price.unit, assumed) if price else UsageCost(name)

    def _price(self, key: str) -> ServicePrice | None:
        """The price of a service; None also for a service without any price."""
        try:
            return self.service_price(key, self.region)
        except UnknownFactError:
            return None
