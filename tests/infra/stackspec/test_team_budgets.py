"""Budgets of teams in a spec: what contradicts itself is refused, with its path and what to write instead."""

from typing import Any

import pytest

from tests.infra.stackspec.stack_files import Values, problems

EXEMPT = {
    "kind": "job",
    "name": "paper",
    "reason": "deadline",
    "approved_by": "lead@example.com",
    "last_day": "2026-12-31",
}
STOPS: Values = {"monthly_gpu_hours": 100, "over_budget": "stop"}
BROKEN: dict[str, tuple[Values, str, str]] = {
    "a stop without a budget": ({"over_budget": "stop"}, "over_budget", "monthly_gpu_hours or monthly_usd"),
    "an exemption from nothing": ({"budget_exempt": [EXEMPT]}, "budget_exempt", "over_budget to stop"),
    "an exemption of a priority that nobody has": (
        {**STOPS, "budget_exempt": [{**EXEMPT, "kind": "priority", "name": "urgent"}]},
        "budget_exempt[0].name",
        "production, default, sweep",
    ),
    "a last day that is none": (
        {**STOPS, "budget_exempt": [{**EXEMPT, "last_day": "2026-02-30"}]},
        "budget_exempt[0].last_day",
        "such as 2026-12-31",
    ),
    "a negative budget": ({"monthly_usd": -1}, "monthly_usd", ""),
    "hours without an end": ({"monthly_gpu_hours": float("inf")}, "monthly_gpu_hours", ""),
}


@pytest.mark.parametrize("case", BROKEN)
def test_what_contradicts_itself_is_refused(values: Values, case: str) -> None:
    given, path, fix = BROKEN[case]
    team: Any = values["spec"]["teams"][0]
    team.update(given)
    (problem,) = problems(values)
    assert problem.path == f"teams[0].{path}"
    assert fix in problem.fix
