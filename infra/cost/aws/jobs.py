"""Price of stacks without a cluster on AWS: idle cost, and cost of jobs."""

from collections.abc import Iterator
from typing import Final

from infra.catalog.aws import facts
from infra.catalog.aws.jobs import jobs
from infra.catalog.aws.storage_classes import COLD, COOL, STANDARD
from infra.cost.aws.cluster import network_items
from infra.cost.checkpoints import checkpoint_items
from infra.cost.model import CostEstimate, CostItem, UsageCost
from infra.cost.tariff import Tariff, always, machines, validations
from infra.stackspec.aws.cloud import AwsSpec
from infra.stackspec.layouts import JobMachineSpec, SmallLayout
from infra.stackspec.stack import StackSpec

_KEYS: Final = 3
"""Customer-managed keys: of the data, of the flow logs, of other logs and messages. With a schedule also that
of the topic, which alarms publish to."""


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
    """Maximum cost of an hour of a machine for a job; None without a source.

    0 for a machine of a training plan, which is paid in advance.
    """
    if machine.reservation is not None:
        return 0.0
    found = jobs.price(machine.machine, region)
    return found.usd if found else None


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
        usd = (price.usd, price.usd, price.usd) if price else None
        nodes = (0.0, one.expected_utilization * one.max_nodes, float(one.max_nodes))
        bought = "spot, at most" if one.purchase.kind == "spot" else "on demand"
        yield machines(f"jobs on {one.name} ({one.machine}, {bought})", usd, nodes, price)


def _uses(spec: StackSpec, layout: SmallLayout, tariff: Tariff) -> Iterator[UsageCost]:
    """Costs by usage. Studio and the MLflow App have no price of their own."""
    for machine in layout.notebooks.machines:
        price = jobs.price(machine, spec.region, "notebook")
        name = f"notebooks ({machine})"
        yield UsageCost(name, price.usd, "hour") if price else UsageCost(name)
    yield UsageCost("disks of notebooks")
    yield from validations(spec, layout, job_hour_usd)
    by_use = (
        ("NAT traffic", "nat_gateway_data"),
        ("bucket contents", "s3_standard"),
        ("home directories", "efs_standard"),
        ("logs", "cloudwatch_logs_ingested"),
    )
    for name, key in by_use:
        yield tariff.use(name, key)
    for name in ("requests", "calls of functions", "alarms", "data transfer", "taxes and discounts"):
        yield UsageCost(name)
