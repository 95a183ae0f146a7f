"""Price of stacks without a cluster on Google Cloud: idle cost, and cost of jobs."""

from collections.abc import Iterator
from typing import Final

from infra.catalog.gcp import facts
from infra.catalog.gcp.jobs import NOTEBOOK_BOOT_GIB, jobs
from infra.catalog.gcp.prices import node_price
from infra.catalog.gcp.storage_classes import COLD, COOL, STANDARD
from infra.cost.checkpoints import checkpoint_items
from infra.cost.gcp.cluster import database_items
from infra.cost.model import CostEstimate, CostItem, UsageCost
from infra.cost.tariff import Tariff, always, machines, validations
from infra.stackspec.gcp.cloud import GcpSpec
from infra.stackspec.layouts import JobMachineSpec, SmallLayout
from infra.stackspec.stack import StackSpec

_BOUGHT: Final = {
    "on_demand": "on demand",
    "spot": "spot",
    "reserved": "reserved: the fee alone",
    "flex_start": "flex-start",
}
_KEYS: Final = 1
"""A customer-managed key with one version until it is rotated: of buckets, disks and database."""


def managed_jobs(spec: StackSpec, layout: SmallLayout, cloud: GcpSpec) -> CostEstimate:
    """Price a stack; the minimum is its cost without jobs and running notebooks."""
    tariff = Tariff(facts.service_price, spec.region)
    busy = max(one.expected_utilization for one in layout.machines)
    parts = (
        _jobs(spec.region, layout),
        database_items(spec.region, cloud),
        _notebooks(layout, tariff),
        checkpoint_items(spec, busy, tariff, (STANDARD, COOL, COLD)),
        [tariff.item(f"KMS keys ({_KEYS})", "kms_key_version", always(_KEYS))],
    )
    return CostEstimate(tuple(item for part in parts for item in part), tuple(_uses(spec, layout, tariff)))


def job_hour_usd(machine: JobMachineSpec, region: str) -> float | None:
    """Maximum cost of an hour of a machine for a job; None without a source.

    It includes the service's fee; on a reserved machine it is the fee only: Compute Engine bills the
    reservation.
    """
    found = jobs.price(machine.machine, region, "reserved" if machine.reservation else "on_demand")
    return found.usd if found else None


def _jobs(region: str, layout: SmallLayout) -> Iterator[CostItem]:
    """Jobs cost nothing while none runs; at most, as many machines as one job may have, all month."""
    for one in layout.machines:
        kind = one.purchase.kind
        if kind == "training_plan":
            continue
        price = jobs.price(one.machine, region, kind)
        usd = (price.usd, price.usd, price.usd) if price else None
        nodes = (0.0, one.expected_utilization * one.max_nodes, float(one.max_nodes))
        yield machines(
            f"jobs on {one.name} ({one.machine}, {_BOUGHT[kind]})", usd, nodes, price.renew if price else None
        )


def _notebooks(layout: SmallLayout, tariff: Tariff) -> Iterator[CostItem]:
    """Disks of notebooks, which are also billed while notebooks are off."""
    each = NOTEBOOK_BOOT_GIB + layout.notebooks.disk_gib
    name = f"disks of notebooks ({len(layout.people)} of {each} GiB)"
    yield tariff.item(name, "pd_standard", always(len(layout.people) * each))


def _uses(spec: StackSpec, layout: SmallLayout, tariff: Tariff) -> Iterator[UsageCost]:
    """Costs by usage; Cloud Run and functions are billed by call."""
    machine = layout.notebooks.machines[0]
    price = node_price(machine, spec.region, "on_demand")
    yield (
        UsageCost(f"notebooks ({machine})", price.expected, "hour")
        if price
        else UsageCost(f"notebooks ({machine})")
    )
    yield from validations(spec, layout, job_hour_usd)
    by_use = (
        ("Cloud NAT", "cloud_nat_vm"),
        ("NAT traffic", "cloud_nat_data"),
        ("bucket contents", "gcs_standard"),
        ("logs", "logs_ingested"),
    )
    for name, key in by_use:
        yield tariff.use(name, key)
    for name in (
        "MLflow on Cloud Run",
        "management fee of notebooks",
        "boot disks of jobs",
        "the address of Cloud NAT",
        "requests",
        "calls and builds of functions",
        "metrics and alerts",
        *(["a job of Cloud Scheduler"] if spec.smoke.schedule else []),
        "backups",
        "data transfer",
        "taxes and discounts",
    ):
        yield UsageCost(name)
