"""Price of all pools at their maximum size."""

import datetime
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from policies import facts
from policies.catalog import CATALOG, Violation
from policies.resource import Resource, UndeterminedError
from policies.rules.accelerators import GkePool, all_pools
from policies.rules.pools import GKE_CLUSTER, NODE_GROUP, NODE_POOL, machines_of, most_nodes, pools_of
from policies.rules.residency.regions import region_of
from policies.stack import Stack

if TYPE_CHECKING:
    from infra.catalog.gcp.model import Market

# Capacity types of node groups, and their markets in the catalog.
_BOUGHT = {"SPOT": "spot", "CAPACITY_BLOCK": "capacity_block"}


@dataclass(frozen=True)
class _Priced:
    """Price of a pool at its maximum, in dollars per hour, with the day of the list price."""

    usd: float
    read: datetime.date


@CATALOG.rule_of_stack(
    "MLS-COST-02",
    "critical",
    (NODE_GROUP, NODE_POOL, GKE_CLUSTER),
    "An autoscaler, a mistake or a stolen login can start a pool at its maximum size.",
    "Lower the maximum sizes, or raise the cap after approval.",
)
def the_largest_stack_is_within_the_cap(stack: Stack) -> Iterator[Violation]:
    """All pools at their maximum size cost no more per hour than the cap, by list price."""
    cap, pools = stack.settings.max_usd_per_hour, [*_of_eks(stack), *_of_gke(stack)]
    priced = [found for _, found in pools if found is not None]
    unknown = [name for name, found in pools if found is None]
    total = sum(one.usd for one in priced)
    if total > cap:
        oldest = min(one.read for one in priced)
        message = (
            f"{total:.2f} USD an hour at maximum size, by prices of {oldest} and later; the cap is {cap:.2f}"
        )
        yield Violation(
            message, fix=f"Lower maximum sizes by {total - cap:.2f} USD an hour, or raise the cap."
        )
    elif unknown:
        raise UndeterminedError(f"no price of {', '.join(unknown)}; the others cost {total:.2f} USD an hour")


def _of_eks(stack: Stack) -> Iterator[tuple[str, _Priced | None]]:
    """(pool with machine types, price) of each pool that may have nodes; None without a price."""
    for group, template in pools_of(stack):
        if most_nodes(group):
            machines = machines_of(group, template)
            yield f"{group.name} ({', '.join(machines)})", _price(group, machines)


def _of_gke(stack: Stack) -> Iterator[tuple[str, _Priced | None]]:
    for cluster in stack.all(GKE_CLUSTER):
        scaling = cluster.props.get("clusterAutoscaling") or {}
        if cluster.props.get("enableAutopilot") is True or scaling.get("enabled") is True:
            yield f"nodes of {cluster.name} without a pool", None
    for pool in stack.once(all_pools):
        if not isinstance(pool, GkePool) or not (nodes := pool.most().number):
            continue
        node = pool.props.get("nodeConfig") or {}
        # GKE documentation, "About node pools": without a type, e2-medium.
        machine = str(node.get("machineType") or "e2-medium")
        home = pool.cluster()
        place = pool.props.get("location") or (home.props.get("location") if home else "")
        found = facts.gke_price(machine, region_of(place), _market(pool.props, node))
        # The price excludes attached accelerators.
        if pool.devices() and facts.gke_gpus(machine) is None:
            found = None
        yield f"{pool.name} ({machine})", _Priced(found[0] * nodes, found[1]) if found else None


def _market(props: Any, node: Any) -> "Market":
    """Market of its nodes; reserved ones cost at most the on-demand price."""
    if node.get("spot") is True or node.get("preemptible") is True:
        return "spot"
    queued = (props.get("queuedProvisioning") or {}).get("enabled") is True
    return "flex_start" if queued or node.get("flexStart") is True else "on_demand"


def _price(group: Resource, machines: list[str]) -> _Priced | None:
    """Price of the most expensive machine type at maximum size; None if a type has no price."""
    capacity = _BOUGHT.get(str(group.props.get("capacityType") or "ON_DEMAND"), "on_demand")
    region = group.region
    prices = [facts.node_price(machine, region, capacity) for machine in machines]  # type: ignore[arg-type]
    known = [price for price in prices if price is not None]
    if len(known) < len(prices):
        return None
    highest = max(known, key=lambda price: price.usd_per_hour_max)
    return _Priced(highest.usd_per_hour_max * most_nodes(group), highest.date)
