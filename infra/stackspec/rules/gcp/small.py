"""Rules of the layout `small` on Google Cloud."""

from collections.abc import Callable, Iterator

from infra.catalog import money, pools
from infra.catalog.gcp import facts, jobs, network
from infra.errors import Problem
from infra.stackspec.aws.purchases import TrainingPlan
from infra.stackspec.layouts import SmallLayout
from infra.stackspec.purchases import Reserved
from infra.stackspec.rules.parts import tracked
from infra.stackspec.stack import StackSpec

Rule = Callable[[StackSpec, SmallLayout], Iterator[Problem]]


def places(spec: StackSpec, layout: SmallLayout) -> Iterator[Problem]:
    """Zones are zones of the region, and the range has space for peered services."""
    for index, zone in enumerate(layout.zones):
        yield from network.zone_problem(f"layout.zones[{index}]", spec.region, zone)
    yield from pools.once_problems("layout.zones", layout.zones)
    yield from network.range_problems("layout.network_cidr", layout.network_cidr)


def machines(spec: StackSpec, layout: SmallLayout) -> Iterator[Problem]:
    """Machines of jobs and notebooks exist, and the idle shutdown is accepted."""
    for index, one in enumerate(layout.machines):
        yield from jobs.machine_problems(f"layout.machines[{index}].machine", one.machine, spec.region)
        bought = f"layout.machines[{index}].purchase"
        if isinstance(one.purchase, Reserved):
            yield from jobs.reservation_problems(f"{bought}.id", one.purchase.id, spec.region)
        elif isinstance(one.purchase, TrainingPlan):
            rule, fix = "only SageMaker has training plans", "Set reserved, on_demand, spot or flex_start."
            yield Problem(f"{bought}.kind", one.purchase.kind, rule, fix, code="training-plan-not-on-gcp")
            continue
        kind, hours = one.purchase.kind, layout.max_hours
        yield from jobs.purchase_problems(f"{bought}.kind", kind, one.machine, "layout.max_hours", hours)
    idle, minutes = "layout.idle_minutes", layout.idle_minutes
    for index, machine in enumerate(layout.notebooks.machines):
        path = f"layout.notebooks.machines[{index}]"
        yield from jobs.notebook_problems(
            path, machine, idle, minutes if index == 0 else jobs.IDLE_MINUTES[1]
        )
    if len(layout.notebooks.machines) > 1:
        rule = "a notebook of Workbench has one machine type"
        fix = f"Name {layout.notebooks.machines[0]} alone."

        yield Problem(
            "layout.notebooks.machines",
            list(layout.notebooks.machines),
            rule,
            fix,
            code="notebook-has-one-machine",
        )
    if layout.notebooks.disk_gib < jobs.NOTEBOOK_DISK_GIB:
        rule, least = "is smaller than the minimum of a disk", jobs.NOTEBOOK_DISK_GIB
        fix = f"Set {least}."
        yield Problem(
            "layout.notebooks.disk_gib", layout.notebooks.disk_gib, rule, fix, code="notebook-disk-too-small"
        )


def spending(spec: StackSpec, layout: SmallLayout) -> Iterator[Problem]:
    """Amounts and addresses are accepted by Cloud Billing."""
    for index, team in enumerate(spec.teams):
        if team.monthly_usd is not None:
            yield from money.amount_problems(f"teams[{index}].monthly_usd", team.monthly_usd)
        if team.alert_emails:
            path = f"teams[{index}].alert_emails"
            yield from money.email_problems(path, team.alert_emails, facts.limits["budget_channels"])
    for index, person in enumerate(layout.people):
        if person.monthly_usd is not None:
            yield from money.amount_problems(f"layout.people[{index}].monthly_usd", person.monthly_usd)


RULES: tuple[Rule, ...] = (tracked, places, machines, spending)
