"""What all pools cost together when they are as large as they may become."""

import datetime
from collections.abc import Iterator
from dataclasses import dataclass

from policies import facts
from policies.catalogue import CATALOGUE, About, Violation
from policies.resource import Resource, UndeterminedError
from policies.rules.pools import NODE_GROUP, machines_of, most_nodes, pools_of
from policies.stack import Stack

# As node groups and launch templates say it, to what the catalog has prices for.
_BOUGHT = {"SPOT": "spot", "CAPACITY_BLOCK": "capacity_block"}


@dataclass(frozen=True)
class _Priced:
    """A pool at its maximum, in dollars per hour by a list price of a day."""

    usd: float
    read: datetime.date


@CATALOGUE.rule_of_stack(
    About(
        "MLS-COST-02",
        "critical",
        (NODE_GROUP,),
        "The maximum size of a pool is what an autoscaler, a mistake or a stolen login can spend.",
        "Lower the maximum sizes, or raise the cap after somebody has agreed to it.",
    )
)
def the_largest_stack_is_within_the_cap(stack: Stack) -> Iterator[Violation]:
    """All pools at their maximum size cost no more per hour than the cap, by list price."""
    cap, priced, unknown = stack.settings.max_usd_per_hour, [], []
    for group, template in pools_of(stack):
        if most_nodes(group) == 0:
            continue
        machines = machines_of(group, template)
        found = _price(group, machines)
        if found is None:
            unknown.append(f"{group.name} ({', '.join(machines)})")
        else:
            priced.append(found)
    total = sum(one.usd for one in priced)
    if total > cap:
        oldest = min(one.read for one in priced)
        said = (
            f"{total:.2f} USD an hour at maximum size, by prices of {oldest} and later; the cap is {cap:.2f}"
        )
        yield Violation(said, fix=f"Lower maximum sizes by {total - cap:.2f} USD an hour, or raise the cap.")
    elif unknown:
        raise UndeterminedError(f"no price of {', '.join(unknown)}; the others cost {total:.2f} USD an hour")


def _price(group: Resource, machines: list[str]) -> _Priced | None:
    """The dearest machine type that a group may start, as often as it may; None where one has no price."""
    capacity = _BOUGHT.get(str(group.props.get("capacityType") or "ON_DEMAND"), "on_demand")
    region = group.region
    prices = [facts.node_price(machine, region, capacity) for machine in machines]  # type: ignore[arg-type]
    known = [price for price in prices if price is not None]
    if len(known) < len(prices):
        return None
    dearest = max(known, key=lambda price: price.usd_per_hour_max)
    return _Priced(dearest.usd_per_hour_max * most_nodes(group), dearest.date)
