"""Budgets of a stack without a cluster, on every cloud."""

from collections.abc import Sequence
from typing import NamedTuple

from infra.stackspec import StackSpec
from infra.stackspec.layouts import SmallLayout


class BudgetScope(NamedTuple):
    """A budget of the stack, of a team or of a person."""

    scope: str
    value: str
    """The stack, the team or the person."""
    monthly_usd: float
    over_budget: str
    emails: Sequence[str]


def budget_scopes(spec: StackSpec, layout: SmallLayout) -> list[BudgetScope]:
    """The budgets of the stack, then of its teams and people that have one."""
    whole = spec.budget
    found = [BudgetScope("stack", spec.name, whole.monthly_usd, whole.over_budget, whole.alert_emails)]
    for team in spec.teams:
        if team.monthly_usd is not None:
            emails = team.alert_emails or whole.alert_emails
            found.append(BudgetScope("team", team.name, team.monthly_usd, team.over_budget, emails))
    found += [
        BudgetScope("person", one.name, one.monthly_usd, one.over_budget, [one.email])
        for one in layout.people
        if one.monthly_usd is not None
    ]
    return found
