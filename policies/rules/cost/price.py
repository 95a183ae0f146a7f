"""What all pools cost together when they are as large as they may become."""

import datetime
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from policies import facts
from policies.catalogue import CATALOGUE, About, Violation
from policies.resource import Resource, UndeterminedError
from policies.rules.accelerators import GkePool, all_pools
from policies.rules.pools import GKE_CLUSTER, NODE_GROUP, NODE_POOL, machines_of, most_nodes, pools_of
from policies.rules.residency.places import region_of
from policies.stack import Stack

if TYPE_CHECKING:
    from infra.catalog.gcp.model import Market

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
        (NODE_GROUP, NODE_POOL, GKE_CLUSTER),
        "The maximum size of a pool is what an autoscaler, a mistake or a stolen login can spend.",
        "Lower the maximum sizes, or raise the cap after somebody has agreed to it.",
    )
)
def the_largest_stack_is_within_the_cap(stack: Stack) -> Iterator[Violation]:
    """All pools at their maximum size cost no more per hour than the cap, by list price."""
    cap, pools = stack.settings.max_usd_per_hour, [*_of_eks(stack), *_of_gke(stack)]
    priced = [found for _, found in pools if found is not None]
    unknown = [name for name, found in pools if found is None]
    total = sum(one.usd for one in priced)
    if total > cap:
        oldest = min(one.read for one in priced)
        said = (
            f"{total:.2f} USD an hour at maximum size, by prices of {oldest} and later; the cap is {cap:.2f}"
        )
        yield Violation(said, fix=f"Lower maximum sizes by {total - cap:.2f} USD an hour, or raise the cap.")
    elif unknown:
        raise UndeterminedError(f"no price of {', '.join(unknown)}; the others cost {total:.2f} USD an hour")


def _of_eks(stack: Stack) -> Iterator[tuple[str, _Priced | None]]:
    """Each pool that may have nodes, with its machines; None where no source gives a price."""
    for group, template in pools_of(stack):
        if most_nodes(group):
            machines = machines_of(group, template)
            yield f"{group.name} ({', '.join(machines)})", _price(group, machines)


def _of_gke(stack: Stack) -> Iterator[tuple[str, _Priced | None]]:
    for cluster in stack.all(GKE_CLUSTER):
        scaling = cluster.props.get("clusterAutoscaling") or {}
        if cluster.props.get("enableAutopilot") is True or scaling.get("enabled") is True:
            yield f"what {cluster.name} starts without a pool", None
    for pool in stack.once(all_pools):
        if not isinstance(pool, GkePool) or not (nodes := pool.most().number):
            continue
        node = pool.props.get("nodeConfig") or {}
        # GKE documentation, "About node pools": without a type, e2-medium.
        machine = str(node.get("machineType") or "e2-medium")
        home = pool.cluster()
        place = pool.props.get("location") or (home.props.get("location") if home else "")
        found = facts.gke_price(machine, region_of(place), _market(pool.props, node))
        # What is attached to a machine is not in its price.
        if pool.devices() and facts.gke_gpus(machine) is None:
            found = None
        yield f"{pool.name} ({machine})", _Priced(found[0] * nodes, found[1]) if found else None


def _market(props: Any, node: Any) -> "Market":
    """How its nodes are bought; those of a reservation cost at most what they cost on demand."""
    if node.get("spot") is True or node.get("preemptible") is True:
        return "spot"
    queued = (props.get("queuedProvisioning") or {}).get("enabled") is True
    return "flex_start" if queued or node.get("flexStart") is True else "on_demand"


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
