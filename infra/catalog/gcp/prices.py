"""Price of a node-hour: processors and memory, GPUs, local SSDs."""

import datetime
from dataclasses import dataclass

from infra.catalog.fact import DatedPrice
from infra.catalog.gcp import facts
from infra.catalog.gcp.model import Market, family_of
from infra.catalog.gcp.pools import LOCAL_SSD_GIB

HOURS_PER_MONTH = 730


@dataclass(frozen=True)
class NodePrice:
    """US dollars per node-hour, and the price row of it that expires first.

    `least` and `most` differ where no source gives the price of processors and memory of a flex-start or
    calendar node: between 0 and their on-demand price. `expected` is `most` then, a safe figure for budgets.
    """

    least: float
    expected: float
    most: float
    renew: DatedPrice


def node_price(machine: str, region: str, market: Market) -> NodePrice | None:
    """The price of a node without its boot disk; None if the price of its GPUs or processors is unknown."""
    parts = _parts(machine, region, market)
    if parts is None:
        return None
    rows, least, most = parts
    ssds = _local_ssds(machine, region)
    if ssds is not None:
        row, usd = ssds
        rows, least, most = [*rows, row], least + usd, most + usd
    first = min(rows, key=lambda row: row.date + datetime.timedelta(row.good_for_days))
    return NodePrice(least, most, most, first)


def _parts(machine: str, region: str, market: Market) -> tuple[list[DatedPrice], float, float] | None:
    gpus = facts.machine_types.get(machine)
    if gpus is None:
        vm = _vm(machine, region, market)
        return ([vm[0]], vm[1], vm[1]) if vm else None
    gpu = facts.gpu_prices.get((gpus.accelerator, region, market))
    if gpu is None:
        return None
    usd = gpu.usd * gpus.count * gpus.gpu_share
    if gpu.whole_machine:
        return [gpu], usd, usd
    vm = _vm(machine, region, market)
    if vm is not None:
        return [gpu, vm[0]], usd + vm[1], usd + vm[1]
    bound = _vm(machine, region, "on_demand")
    if bound is None or market not in ("flex_start", "calendar"):
        return None
    return [gpu, bound[0]], usd, usd + bound[1]


def _vm(machine: str, region: str, market: Market) -> tuple[DatedPrice, float] | None:
    """Processors and memory of a machine, in proportion to the family's machine that has a price."""
    row = facts.vm_prices.get((family_of(machine), region, market))
    vcpu = facts.vcpus(machine)
    if row is None or vcpu is None:
        return None
    reference = facts.vcpus(row.reference)
    return (row, row.usd * vcpu / reference) if reference else None


def _local_ssds(machine: str, region: str) -> tuple[DatedPrice, float] | None:
    """The local SSDs that a type always has, at the list price; None without any."""
    gpus = facts.machine_types.get(machine)
    price = facts.service_price("local_ssd", region)
    if gpus is None or gpus.local_ssds is None or price is None or _covers_all(gpus.accelerator):
        return None
    return price, gpus.local_ssds * LOCAL_SSD_GIB * price.usd / HOURS_PER_MONTH


def _covers_all(accelerator: str) -> bool:
    """Return whether the price of a GPU includes its part of the machine."""
    return any(row.whole_machine for row in facts.gpu_prices.values() if row.accelerator == accelerator)
