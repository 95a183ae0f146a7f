"""What nodes take of the quotas of a project, from the inputs of clusters and pools.

Source: Compute Engine documentation, "Allocation quotas" (disks); the catalog for GPUs and processors.
"""

import importlib
from collections.abc import Iterator
from types import ModuleType
from typing import TYPE_CHECKING

from rehearsal.core.model import Properties
from rehearsal.core.properties import at
from rehearsal.gcp import facts
from rehearsal.gcp.organisation import CLUSTER, POOL
from rehearsal.gcp.rules.book import block, items

if TYPE_CHECKING:
    from infra.catalog.gcp.quotas import Demand

_SOLID = ("pd-balanced", "pd-ssd")  # types of disks that SSD_TOTAL_GB counts
_DISK_GB, _MACHINE = 100, "e2-medium"


def demands(token: str, name: str, inputs: Properties, location: str) -> "Iterator[Demand]":
    """What a pool takes when it is created, or a cluster with its first nodes."""
    count = nodes(token, inputs, location)
    if not count:
        return
    config = block(inputs.get("nodeConfig"))
    bought = market(inputs)
    quotas = _quotas()
    yield from quotas.demands(name, str(config.get("machineType") or _MACHINE), bought, count)
    kind = config.get("diskType") or at(config, "bootDisk.diskType") or "pd-balanced"
    if kind in _SOLID and bought not in quotas.RESERVED:
        size = config.get("diskSizeGb") or at(config, "bootDisk.sizeGb") or _DISK_GB
        yield quotas.Demand("ssd_total_gb", float(size) * count, name)


def nodes(token: str, inputs: Properties, location: str) -> int:
    """How many nodes are started at once."""
    zones = items(inputs.get("nodeLocations"))
    each = len(zones) or (len(facts.zones(location)) if location.count("-") == 1 else 1)
    if token == CLUSTER:
        automatic = inputs.get("enableAutopilot") or inputs.get("nodePools")
        return 0 if automatic else int(inputs.get("initialNodeCount") or 0) * each
    scaling = block(inputs.get("autoscaling"))
    given = inputs.get("nodeCount", inputs.get("initialNodeCount"))
    least = int(scaling.get("minNodeCount") or 0) * each
    return max(int(given or 0) * each, least, int(scaling.get("totalMinNodeCount") or 0))


def market(inputs: Properties) -> str:
    """How the nodes are bought, as the catalog calls it."""
    config = block(inputs.get("nodeConfig"))
    if block(inputs.get("queuedProvisioning")).get("enabled") is True:
        return "queued"
    if config.get("flexStart") is True:
        return "flex_start"
    if config.get("spot") is True or config.get("preemptible") is True:
        return "spot"
    affinity = block(config.get("reservationAffinity")).get("consumeReservationType")
    return "reserved" if affinity == "SPECIFIC_RESERVATION" else "on_demand"


def _quotas() -> ModuleType:
    """The catalog's quotas, fetched when first needed: the daemon starts without them."""
    return importlib.import_module("infra.catalog.gcp.quotas")


__all__ = ["CLUSTER", "POOL", "demands", "market", "nodes"]
