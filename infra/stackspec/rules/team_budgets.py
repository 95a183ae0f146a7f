"""Rules of the budgets of teams, in every stack."""

import datetime
from collections.abc import Iterator

from infra.catalog.kubernetes.kueue import PRIORITIES
from infra.errors import Problem
from infra.stackspec.stack import StackSpec


def team_budgets(spec: StackSpec) -> Iterator[Problem]:
    """`over_budget: stop` needs a budget, and exemptions need `over_budget: stop`."""
    for index, team in enumerate(spec.teams):
        path = f"teams[{index}]"
        limited = team.monthly_usd is not None or team.monthly_gpu_hours is not None
        if team.over_budget == "stop" and not limited:
            fix = f"Give the team monthly_gpu_hours or monthly_usd, or set {path}.over_budget to warn."
            rule = "the team has no budget"
            yield Problem(f"{path}.over_budget", "stop", rule, fix, code="team-without-budget")
        if team.budget_exempt and team.over_budget != "stop":
            fix = "Leave it out, or set over_budget to stop."
            rule = "exemptions need over_budget: stop"
            yield Problem(
                f"{path}.budget_exempt", len(team.budget_exempt), rule, fix, code="exemption-without-stop"
            )
        for at, row in enumerate(team.budget_exempt):
            where = f"{path}.budget_exempt[{at}]"
            if row.kind == "priority" and row.name not in PRIORITIES:
                fix = f"Use one of: {', '.join(PRIORITIES)}."
                rule = "unknown priority class"
                yield Problem(f"{where}.name", row.name, rule, fix, code="unknown-priority-class")
            if row.last_day != "never" and not _is_day(row.last_day):
                fix = "Write year, month and day, such as 2026-12-31, or never."
                rule = "there is no such day"
                yield Problem(f"{where}.last_day", row.last_day, rule, fix, code="no-such-day")


def _is_day(text: str) -> bool:
    try:
        datetime.date.fromisoformat(text)
    except ValueError:
        return False
    return True
