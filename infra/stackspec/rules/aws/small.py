"""Rules of the layout `small` on AWS."""

from collections.abc import Callable, Iterator

from infra.catalog import money, pools
from infra.catalog.aws import jobs, network
from infra.catalog.aws.schedules import for_scheduler
from infra.errors import Problem
from infra.stackspec import cron
from infra.stackspec.aws.cloud import AwsSpec
from infra.stackspec.aws.purchases import TrainingPlan
from infra.stackspec.gcp.purchases import FlexStart
from infra.stackspec.layouts import JobMachineSpec, SmallLayout
from infra.stackspec.purchases import Reserved
from infra.stackspec.stack import StackSpec

Rule = Callable[[StackSpec, SmallLayout], Iterator[Problem]]

# What fits into a policy of a person beside all machine types for notebooks (held by tests/stacks/iam).
_MOST_PLANS = 4


def schedule(spec: StackSpec, _: SmallLayout) -> Iterator[Problem]:
    """EventBridge accepts a day of the month or of the week, not both."""
    when = spec.smoke.schedule
    if when is not None and cron.problem(when) is None and for_scheduler(when) is None:
        rule = "EventBridge accepts a day of the month or a day of the week, not both"
        fix = "Set one of the two fields to *."
        yield Problem("smoke.schedule", when, rule, fix, code="schedule-names-both-days")


def on_aws(spec: StackSpec, layout: SmallLayout) -> Iterator[Problem]:
    """Zones, network, machines, times and budgets are valid on AWS."""
    yield from network.zone_name_problems("layout.zones", spec.region, layout.zones)
    if len(set(layout.zones)) < 2:
        rule = "a single zone often has no spot machines, and the network needs two"
        fix = f"Add another zone of {spec.region}."
        yield Problem("layout.zones", list(layout.zones), rule, fix, code="needs-two-zones")
    yield from pools.once_problems("layout.zones", layout.zones)
    yield from network.range_problems("layout.network_cidr", layout.network_cidr)
    for index, one in enumerate(layout.machines):
        path = f"layout.machines[{index}]"
        yield from jobs.machine_problems(f"{path}.machine", one.machine)
        yield from _planned(spec, path, one)
    yield from _plans(layout)
    for index, machine in enumerate(layout.notebooks.machines):
        path = f"layout.notebooks.machines[{index}]"
        yield from jobs.machine_problems(path, machine, notebook=True)
    yield from jobs.hours_problems("layout.max_hours", layout.max_hours)
    for index, one_person in enumerate(layout.people):
        if one_person.monthly_usd is not None:
            yield from money.amount_problems(f"layout.people[{index}].monthly_usd", one_person.monthly_usd)
    for index, team in enumerate(spec.teams):
        if team.monthly_usd is not None:
            yield from money.amount_problems(f"teams[{index}].monthly_usd", team.monthly_usd)


def _plans(layout: SmallLayout) -> Iterator[Problem]:
    """A policy of each person names every plan, and has at most 6,144 characters."""
    plans = list(dict.fromkeys(one.reservation for one in layout.machines if one.reservation))
    for index, one in enumerate(layout.machines):
        if one.reservation in plans[_MOST_PLANS:]:
            rule = f"a stack uses at most {_MOST_PLANS} training plans: a policy of each person names them"
            fix = "Remove plans that ended, or divide the people between two stacks."
            at = f"layout.machines[{index}].purchase.arn"
            yield Problem(at, one.reservation, rule, fix, code="too-many-training-plans")


def _planned(spec: StackSpec, path: str, one: JobMachineSpec) -> Iterator[Problem]:
    """A training plan matches stack and machine; it ends, so no schedule repeats a validation on it."""
    if isinstance(one.purchase, Reserved):
        rule = "training jobs do not support capacity reservations of EC2"
        fix = "Buy a training plan, and name it."
        yield Problem(f"{path}.purchase.kind", one.purchase.kind, rule, fix, code="reservation-not-for-jobs")
    if isinstance(one.purchase, FlexStart):
        fix = "Buy a training plan, spot or on_demand."
        rule = "only Google Cloud sells machines by flex-start"
        yield Problem(f"{path}.purchase.kind", one.purchase.kind, rule, fix, code="flex-start-not-on-aws")
    if not isinstance(one.purchase, TrainingPlan):
        return
    assert isinstance(spec.on, AwsSpec)
    plan = jobs.RequestedPlan(one.purchase.arn, spec.region, spec.on.account_id)
    yield from jobs.plan_problems(path, one.machine, plan)
    if spec.smoke.schedule is not None and one.name in spec.validated:
        rule, fix = (
            "would continue after the end of the training plan",
            "Validate another machine, or set null.",
        )
        yield Problem("smoke.schedule", spec.smoke.schedule, rule, fix, code="schedule-outlives-plan")


RULES: tuple[Rule, ...] = (schedule, on_aws)
