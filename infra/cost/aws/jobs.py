"""Price of stacks without a cluster on AWS: idle cost, and cost of jobs."""

from collections.abc import Iterator
from typing import Final

from infra.catalog.aws import facts
from infra.catalog.aws.jobs import jobs
from infra.catalog.aws.storage_classes import COLD, COOL, STANDARD
from infra.cost.aws.cluster import network_items
from infra.cost.checkpoints import checkpoint_items
from infra.cost.model import HOURS_PER_MONTH, Assumed, CostEstimate, CostItem, UsageCost
from infra.cost.tariff import Tariff, always, machines, validations
from infra.stackspec.aws.cloud import AwsSpec
from infra.stackspec.layouts import JobMachineSpec, SmallLayout
from infra.stackspec.stack import StackSpec

_KEYS: Final = 3
"""Customer-managed keys: of the data, of the flow logs, of other logs and messages. With a schedule also that
of the topic, which alarms publish to."""

_NAT_GB, _HOME_GB, _LOGS_GB = 50, 20, 2
"""A month of a person: packages and models from the internet, files in Studio, logs; our own examples."""


def managed_jobs(spec: StackSpec, layout: SmallLayout, cloud: AwsSpec) -> CostEstimate:
    """Price a stack; the minimum is its cost without jobs."""
    tariff = Tariff(facts.service_price, spec.region)
    keys = _KEYS + (spec.smoke.schedule is not None)
    busy = max(one.expected_utilization for one in layout.machines)
    parts = (
        _jobs(spec.region, layout),
        network_items(spec.region, len(layout.zones), cloud),
        checkpoint_items(spec, busy, tariff, (STANDARD, COOL, COLD)),
        [tariff.item(f"KMS keys ({keys})", "kms_key", always(keys))],
    )
    return CostEstimate(tuple(item for part in parts for item in part), tuple(_uses(spec, layout, tariff)))


def job_hour_usd(machine: JobMachineSpec, region: str) -> float | None:
    """Maximum cost of an hour of a machine for a job, None without a source; with its volume if that has one.

    0 for a machine of a training plan, which is paid in advance.
    """
    if machine.reservation is not None:
        return 0.0
    found = jobs.price(machine.machine, region)
    return found.usd + (_volume_hour_usd(machine, region) or 0.0) if found else None


def _volume_gb(machine: JobMachineSpec) -> int:
    """Volume that the service attaches to the machine; 0 beside local disks."""
    known = jobs.machines.get(machine.machine)
    return 0 if known is None or known.has_nvme else known.disk_gb


def _volume_hour_usd(machine: JobMachineSpec, region: str) -> float | None:
    price = facts.service_price("ml_storage", region)
    return price.usd * _volume_gb(machine) / HOURS_PER_MONTH if price else None


def _jobs(region: str, layout: SmallLayout) -> Iterator[CostItem]:
    """Jobs cost nothing while none runs; at most, as many machines as one job may have, all month.

    Spot machines are priced on demand, as an upper bound: SageMaker's spot prices are in no price list.
    """
    for one in layout.machines:
        price = jobs.price(one.machine, region)
        if one.reservation is not None:
            # The upfront fee of a plan is paid whether or not the stack is deployed.
            yield CostItem(
                f"jobs on {one.name} ({one.machine}, training plan, paid in advance)", 0.0, 0.0, 0.0
            )
            continue
        hour = job_hour_usd(one, region)
        usd = None if hour is None else (hour, hour, hour)
        nodes = (0.0, one.expected_utilization * one.max_nodes, float(one.max_nodes))
        bought = "spot, at most" if one.purchase.kind == "spot" else "on demand"
        yield machines(f"jobs on {one.name} ({one.machine}, {bought})", usd, nodes, price)


def _uses(spec: StackSpec, layout: SmallLayout, tariff: Tariff) -> Iterator[UsageCost]:
    """Costs by usage. Studio and the MLflow App have no price of their own."""
    for machine in layout.notebooks.machines:
        price = jobs.price(machine, spec.region, "notebook")
        name = f"notebooks ({machine})"
        yield UsageCost(name, price.usd, "hour") if price else UsageCost(name)
    disks = Assumed(len(layout.people) * layout.notebooks.disk_gib, "GB: a notebook for each person, full")
    yield tariff.use("disks of notebooks", "ml_storage", disks)
    for one in layout.machines:
        if (gb := _volume_gb(one)) and _volume_hour_usd(one, spec.region) is None:
            yield UsageCost(f"disks of jobs on {one.name} ({gb} GB a machine while it runs)")
    yield from validations(spec, layout, job_hour_usd)
    people = len(layout.people)
    by_use = (
        ("NAT traffic", "nat_gateway_data", Assumed(_NAT_GB * people, f"GB: {_NAT_GB} GB a person")),
        ("bucket contents", "s3_standard", Assumed(1000, "GB of datasets")),
        ("home directories", "efs_standard", Assumed(_HOME_GB * people, f"GB: {_HOME_GB} GB a person")),
        ("logs", "cloudwatch_logs_ingested", Assumed(_LOGS_GB * people, f"GB: {_LOGS_GB} GB a person")),
    )
    for name, key, assumed in by_use:
        yield tariff.use(name, key, assumed)
    for name in ("requests", "calls of functions", "alarms", "data transfer", "taxes and discounts"):
        yield UsageCost(name)
