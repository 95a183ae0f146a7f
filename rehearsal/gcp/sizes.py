"""Node counts of clusters and pools, and their purchase option."""

from typing import TYPE_CHECKING, Any

from rehearsal.core.model import Properties
from rehearsal.gcp import facts

if TYPE_CHECKING:
    from infra.catalog.gcp.model import Way

CLUSTER, POOL = "gcp:container/cluster:Cluster", "gcp:container/nodePool:NodePool"


def nodes(token: str, inputs: Properties, location: str) -> int:
    """Initial number of nodes; counts that are not known yet are 0."""
    each = _zones(inputs, location)
    if token == CLUSTER:
        automatic = inputs.get("enableAutopilot") or inputs.get("nodePools")
        return 0 if automatic else _number(inputs.get("initialNodeCount")) * each
    scaling = _block(inputs.get("autoscaling"))
    given = _number(inputs.get("nodeCount", inputs.get("initialNodeCount")))
    least = _number(scaling.get("minNodeCount")) * each
    return max(given * each, least, _number(scaling.get("totalMinNodeCount")))


def most_nodes(inputs: Properties, location: str) -> int:
    """Maximum number of nodes of a pool."""
    scaling = _block(inputs.get("autoscaling"))
    total = _number(scaling.get("totalMaxNodeCount"))
    grown = total or _number(scaling.get("maxNodeCount")) * _zones(inputs, location)
    return max(grown, nodes(POOL, inputs, location))


def market(inputs: Properties) -> "Way":
    """Purchase option of the nodes, by the catalog's name."""
    config = _block(inputs.get("nodeConfig"))
    if _block(inputs.get("queuedProvisioning")).get("enabled") is True:
        return "queued"
    if config.get("flexStart") is True:
        return "flex_start"
    if config.get("spot") is True or config.get("preemptible") is True:
        return "spot"
    affinity = _block(config.get("reservationAffinity")).get("consumeReservationType")
    return "reserved" if affinity == "SPECIFIC_RESERVATION" else "on_demand"


def _zones(inputs: Properties, location: str) -> int:
    given = inputs.get("nodeLocations")
    if isinstance(given, list) and given:
        return len(given)
    return len(facts.zones(location)) if location.count("-") == 1 else 1


def _number(value: Any) -> int:
    return int(value) if isinstance(value, int | float) else 0


def _block(value: Any) -> Properties:
    return value if isinstance(value, dict) else {}
