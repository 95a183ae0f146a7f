"""Rules of the layout `small` that hold on every cloud, and those of AWS; Google Cloud's: `small_gcp.py`."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator

from infra.catalog import pools
from infra.catalog.aws import jobs, money, network
from infra.catalog.aws.schedules import for_scheduler
from infra.errors import Problem
from infra.stackspec import cron
from infra.stackspec.clouds import AwsSpec
from infra.stackspec.layouts import JobMachineSpec, Reserved, SmallLayout, TrainingPlan
from infra.stackspec.rules.parts import superfluous
from infra.stackspec.stack import StackSpec

Rule = Callable[[StackSpec, SmallLayout], Iterator[Problem]]
_JOB_NAME = 63
"""Characters. Source: botocore 1.44.5 sagemaker/2017-07-24 TrainingJobName."""
_STAMP, _FOLDER = len("-261126-155735"), 8
"""Of a job's name: its second, and the least that is left to tell what it runs."""


def people(spec: StackSpec, layout: SmallLayout) -> Iterator[Problem]:
    """Each person has a name and an address of her own, and works for a team of the stack."""
    yield from _once(
        "name", [one.name for one in layout.people], "Give each person a name of her or his own."
    )
    addresses = [one.email.lower() for one in layout.people]
    yield from _once("email", addresses, "Give each person an address of her or his own.")
    teams = [team.name for team in spec.teams]
    for index, one in enumerate(layout.people):
        path = f"layout.people[{index}]"
        if one.team not in teams:
            yield Problem(f"{path}.team", one.team, "there is no such team", f"Teams are {', '.join(teams)}.")
        if one.over_budget == "stop" and one.monthly_usd is None:
            fix = f"Set monthly_usd, or {path}.over_budget to warn."
            yield Problem(f"{path}.over_budget", "stop", "the person has no budget", fix)


def budgets(spec: StackSpec, layout: SmallLayout) -> Iterator[Problem]:
    """No part's budget is above that of the whole, which stops everybody first."""
    parts = {f"teams[{index}].monthly_usd": team.monthly_usd for index, team in enumerate(spec.teams)}
    parts |= {
        f"layout.people[{index}].monthly_usd": one.monthly_usd for index, one in enumerate(layout.people)
    }
    whole = spec.budget.monthly_usd
    for path, usd in parts.items():
        if usd is not None and usd > whole:
            rule = f"is more than the ${whole:g} of the whole stack"
            yield Problem(path, usd, rule, f"Set {whole:g} or less.", against="budget.monthly_usd")


def names_of_jobs(spec: StackSpec, layout: SmallLayout) -> Iterator[Problem]:
    """`<stack>-<person>-<folder>-<time>` fits into the name of a job."""
    for index, one in enumerate(layout.people):
        rest = _JOB_NAME - _STAMP - len(f"{spec.name}-{one.name}-") - _FOLDER
        if rest < 0:
            rule = f"names of jobs begin with {spec.name}-{one.name}, {-rest} characters too long"
            yield Problem(f"layout.people[{index}].name", one.name, rule, "Choose a shorter name.")


def schedule(spec: StackSpec, _: SmallLayout) -> Iterator[Problem]:
    """EventBridge names a day of the month or one of the week, never both."""
    when = spec.smoke.schedule
    if (
        spec.cloud == "aws"
        and when is not None
        and cron.problem(when) is None
        and for_scheduler(when) is None
    ):
        rule = "EventBridge takes a day of the month or a day of the week, not both"
        yield Problem("smoke.schedule", when, rule, "Put * in one of the two places.")


def machines(spec: StackSpec, layout: SmallLayout) -> Iterator[Problem]:
    """Each machine has a name of its own, and the validation runs on one that can hold it."""
    names = [one.name for one in layout.machines]
    yield from _once("name", names, "Give each machine a name of its own.", "layout.machines")
    named = spec.smoke.pools
    for index, name in enumerate(named or ()):
        if name not in names:
            fix = f"Machines are {', '.join(names)}."
            yield Problem(f"smoke.pools[{index}]", name, "there is no such machine", fix)
    if named is not None and len(named) != 1:
        yield Problem(
            "smoke.pools", list(named), "a small stack is validated on one machine type", "Name one, or null."
        )
    chosen = [one for one in layout.machines if one.name in (named or names[:1])]
    for one in chosen:
        if spec.smoke.enabled and spec.smoke.nodes > one.max_nodes:
            fix = f"Set smoke.nodes to {one.max_nodes}, or max_nodes of {one.name} to {spec.smoke.nodes}."
            yield Problem(
                "smoke.nodes", spec.smoke.nodes, f"a job has at most {one.max_nodes} of {one.name}", fix
            )


def on_aws(spec: StackSpec, layout: SmallLayout) -> Iterator[Problem]:
    """Zones, network, machines and times are such as AWS has; budgets reach people."""
    yield from network.zone_name_problems("layout.zones", spec.region, layout.zones)
    if len(set(layout.zones)) < 2:
        rule = "one zone alone often has no spot machines, and the network is made for two"
        yield Problem("layout.zones", list(layout.zones), rule, f"Add another zone of {spec.region}.")
    yield from pools.once_problems("layout.zones", layout.zones)
    yield from network.range_problems("layout.network_cidr", layout.network_cidr)
    for index, one in enumerate(layout.machines):
        path = f"layout.machines[{index}]"
        yield from jobs.machine_problems(f"{path}.machine", one.machine)
        yield from _planned(spec, path, one)
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


def _planned(spec: StackSpec, path: str, one: JobMachineSpec) -> Iterator[Problem]:
    """A training plan is the stack's, reserves the machine, and ends: nothing is repeated on it."""
    if isinstance(one.purchase, Reserved):
        rule = "training jobs take no capacity reservation of EC2"
        yield Problem(f"{path}.purchase.kind", one.purchase.kind, rule, "Buy a training plan, and name it.")
    if not isinstance(one.purchase, TrainingPlan):
        return
    assert isinstance(spec.on, AwsSpec)
    plan = jobs.TrainingPlan(one.purchase.arn, spec.region, spec.on.account_id)
    yield from jobs.plan_problems(path, one.machine, plan)
    if spec.smoke.schedule is not None and one.name in spec.validated:
        rule, fix = "would go on when the training plan is over", "Validate another machine, or set null."
        yield Problem("smoke.schedule", spec.smoke.schedule, rule, fix)


def _once(field: str, values: Iterable[str], fix: str, where: str = "layout.people") -> Iterator[Problem]:
    listed = list(values)
    counts = Counter(listed)
    for index, value in enumerate(listed):
        if counts[value] > 1 and value in listed[:index]:
            yield Problem(f"{where}[{index}].{field}", value, "is named twice", fix)


RULES: tuple[Rule, ...] = (superfluous, people, budgets, names_of_jobs, schedule, machines)
AWS_RULES: tuple[Rule, ...] = (on_aws,)
