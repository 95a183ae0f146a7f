"""Catalog facts for rules. The catalog is imported on first use: it loads slower than all rules."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import datetime

    from infra.catalog.aws.model import CapacityType, InstancePrice, InstanceType
    from infra.catalog.gcp.model import Market


def prepare() -> None:
    """Load the facts of AWS ahead, for a process that waits before it judges."""
    gpu_type("")
    node_price("", "", "on_demand")


def gpu_type(machine: str) -> "InstanceType | None":
    """A GPU instance type of EC2; None for every other type."""
    from infra.catalog.aws import facts  # noqa: PLC0415 - see above

    return facts.instance_types.get(machine)


def node_price(machine: str, region: str, capacity: "CapacityType") -> "InstancePrice | None":
    """Dollars per hour of an instance of EC2; None without a source."""
    from infra.catalog.aws import facts  # noqa: PLC0415

    return facts.prices.get((machine, region, capacity))


def gke_price(machine: str, region: str, market: "Market") -> "tuple[float, datetime.date] | None":
    """Maximum dollars per hour of a node of GKE, and the day of the price; None without a source."""
    from infra.catalog.gcp.prices import node_price as price  # noqa: PLC0415

    found = price(machine, region, market)
    return (found.most, found.renew.date) if found else None


def gke_gpus(machine: str) -> int | None:
    """Number of GPUs of a machine type of Google Cloud; None if the catalog has none."""
    from infra.catalog.gcp import facts  # noqa: PLC0415

    known = facts.machine_types.get(machine)
    return known.count if known else None
