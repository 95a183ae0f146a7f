"""Rules of the layout `small` on every cloud."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator

from infra.errors import Problem
from infra.stackspec.layouts import SmallLayout
from infra.stackspec.rules.parts import superfluous
from infra.stackspec.stack import StackSpec

Rule = Callable[[StackSpec, SmallLayout], Iterator[Problem]]
_JOB_NAME = 63
"""Characters. Source: botocore 1.44.5 sagemaker/2017-07-24 TrainingJobName."""
_STAMP, _FOLDER = len("-261126-155735"), 8
"""Lengths in a job's name: time stamp, and minimum for the folder."""


def people(spec: StackSpec, layout: SmallLayout) -> Iterator[Problem]:
    """People have a team of the stack, unique addresses, and names that cannot be taken for another's."""
    yield from _once("name", [one.name for one in layout.people], "Use a unique name per person.")
    addresses = [one.email.lower() for one in layout.people]
    yield from _once("email", addresses, "Use a unique address per person.")
    teams = [team.name for team in spec.teams]
    for index, one in enumerate(layout.people):
        path = f"layout.people[{index}]"
        if one.team not in teams:
            rule, fix = "unknown team", f"Teams are {', '.join(teams)}."
            yield Problem(f"{path}.team", one.team, rule, fix, code="unknown-team")
        for other in (two.name for two in layout.people if one.name.startswith(f"{two.name}-")):
            rule = f"begins with the name of {other}, whose rights cover jobs and results that begin with it"
            fix = (
                f"Choose a name that does not begin with {other}-. If {one.name} is deployed, save its "
                "notebooks first: a rename deletes the profile with its spaces and their disks."
            )
            yield Problem(f"{path}.name", one.name, rule, fix, code="person-name-begins-with-another")
        if one.over_budget == "stop" and one.monthly_usd is None:
            fix = f"Set monthly_usd, or {path}.over_budget to warn."
            rule = "the person has no budget"
            yield Problem(f"{path}.over_budget", "stop", rule, fix, code="person-without-budget")


def budgets(spec: StackSpec, layout: SmallLayout) -> Iterator[Problem]:
    """No team's or person's budget is above that of the stack."""
    parts = {f"teams[{index}].monthly_usd": team.monthly_usd for index, team in enumerate(spec.teams)}
    parts |= {
        f"layout.people[{index}].monthly_usd": one.monthly_usd for index, one in enumerate(layout.people)
    }
    whole = spec.budget.monthly_usd
    for path, usd in parts.items():
        if usd is not None and usd > whole:
            rule = f"exceeds the budget of the stack, ${whole:g}"
            fix = f"Set {whole:g} or less."
            yield Problem(path, usd, rule, fix, against="budget.monthly_usd", code="budget-exceeds-stack")


def names_of_jobs(spec: StackSpec, layout: SmallLayout) -> Iterator[Problem]:
    """`<stack>-<person>-<folder>-<time>` fits into the name of a job."""
    for index, one in enumerate(layout.people):
        rest = _JOB_NAME - _STAMP - len(f"{spec.name}-{one.name}-") - _FOLDER
        if rest < 0:
            rule = f"names of jobs begin with {spec.name}-{one.name}, {-rest} characters too long"
            fix = "Choose a shorter name."
            yield Problem(f"layout.people[{index}].name", one.name, rule, fix, code="job-name-too-long")


def machines(spec: StackSpec, layout: SmallLayout) -> Iterator[Problem]:
    """Machines have unique names, and the validation runs on one that is large enough."""
    names = [one.name for one in layout.machines]
    yield from _once("name", names, "Use a unique name per machine.", "layout.machines")
    named = spec.smoke.pools
    for index, name in enumerate(named or ()):
        if name not in names:
            fix = f"Machines are {', '.join(names)}."
            yield Problem(f"smoke.pools[{index}]", name, "unknown machine", fix, code="unknown-machine")
    if named is not None and len(named) != 1:
        rule, fix = "a small stack is validated on one machine type", "Name one, or null."
        yield Problem("smoke.pools", list(named), rule, fix, code="validates-one-machine")
    chosen = [one for one in layout.machines if one.name in (named or names[:1])]
    for one in chosen:
        if spec.smoke.enabled and spec.smoke.nodes > one.max_nodes:
            fix = f"Set smoke.nodes to {one.max_nodes}, or max_nodes of {one.name} to {spec.smoke.nodes}."
            rule = f"a job has at most {one.max_nodes} of {one.name}"
            yield Problem("smoke.nodes", spec.smoke.nodes, rule, fix, code="gate-larger-than-machine")


def _once(field: str, values: Iterable[str], fix: str, where: str = "layout.people") -> Iterator[Problem]:
    listed = list(values)
    counts = Counter(listed)
    for index, value in enumerate(listed):
        if counts[value] > 1 and value in listed[:index]:
            yield Problem(f"{where}[{index}].{field}", value, "is named twice", fix, code="repeated-value")


RULES: tuple[Rule, ...] = (superfluous, people, budgets, names_of_jobs, machines)
