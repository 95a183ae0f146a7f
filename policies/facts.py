"""What rules ask the catalog; imported when the first asks: it takes longer to load than all rules."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import datetime

    from infra.catalog.aws.model import CapacityType, InstancePrice, InstanceType
    from infra.catalog.gcp.model import Market


def prepare() -> None:
    """Read ahead what rules ask of AWS, for a process that waits before it judges."""
    gpu_type("")
    node_price("", "", "on_demand")


def gpu_type(machine: str) -> "InstanceType | None":
    """A GPU machine type of EC2; None for every other one."""
    from infra.catalog.aws import facts  # noqa: PLC0415 - see above

    return facts.instance_types.get(machine)


def node_price(machine: str, region: str, capacity: "CapacityType") -> "InstancePrice | None":
    """Dollars per hour of a machine of EC2; None where no source gives them."""
    from infra.catalog.aws import facts  # noqa: PLC0415

    return facts.prices.get((machine, region, capacity))


def gke_price(machine: str, region: str, market: "Market") -> "tuple[float, datetime.date] | None":
    """Dollars per hour of a node of GKE at most, and of which day; None where no source gives them."""
    from infra.catalog.gcp.prices import node_price as price  # noqa: PLC0415

    found = price(machine, region, market)
    return (found.most, found.renew.date) if found else None


def gke_gpus(machine: str) -> int | None:
    """How many GPUs are built into a machine type of Google Cloud; None where the catalog knows of none."""
    from infra.catalog.gcp import facts  # noqa: PLC0415

    known = facts.machine_types.get(machine)
    return known.count if known else None
