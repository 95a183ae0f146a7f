"""Quota usage of nodes and networks, from the inputs of clusters, pools and networks.

Source: Compute Engine documentation, "Allocation quotas" (disks); the catalog for GPUs and processors.
"""

import importlib
from collections.abc import Iterator
from types import ModuleType
from typing import TYPE_CHECKING

from rehearsal.core.model import Properties
from rehearsal.core.properties import at
from rehearsal.gcp.rules.book import block
from rehearsal.gcp.sizes import market, nodes

if TYPE_CHECKING:
    from infra.catalog.demand import Demand

NETWORK = "gcp:compute/network:Network"
_SOLID = ("pd-balanced", "pd-ssd")  # types of disks that SSD_TOTAL_GB counts
_DISK_GB, _MACHINE = 100, "e2-medium"


def demands(token: str, name: str, inputs: Properties, location: str) -> "Iterator[Demand]":
    """Usage of a new network or pool, or of a cluster's first nodes."""
    if token == NETWORK:
        yield _quotas().Demand("networks", 1.0, name)
        return
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


def _quotas() -> ModuleType:
    """The catalog's quotas, imported on first use so that the daemon starts faster."""
    return importlib.import_module("infra.catalog.gcp.quotas")
