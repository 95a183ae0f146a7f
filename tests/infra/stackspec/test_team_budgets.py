"""Budgets of teams in a spec: contradictions are refused, with code and path."""

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
    "a stop without a budget": ({"over_budget": "stop"}, "over_budget", "team-without-budget"),
    "an exemption from nothing": ({"budget_exempt": [EXEMPT]}, "budget_exempt", "exemption-without-stop"),
    "an exemption of an unknown priority": (
        {**STOPS, "budget_exempt": [{**EXEMPT, "kind": "priority", "name": "urgent"}]},
        "budget_exempt[0].name",
        "unknown-priority-class",
    ),
    "a last day that is none": (
        {**STOPS, "budget_exempt": [{**EXEMPT, "last_day": "2026-02-30"}]},
        "budget_exempt[0].last_day",
        "no-such-day",
    ),
    "a negative budget": ({"monthly_usd": -1}, "monthly_usd", "greater-than-equal"),
    "hours without an end": ({"monthly_gpu_hours": float("inf")}, "monthly_gpu_hours", "finite-number"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_what_contradicts_itself_is_refused(values: Values, case: str) -> None:
    given, path, code = BROKEN[case]
    team: Any = values["spec"]["teams"][0]
    team.update(given)
    (problem,) = problems(values)
    assert (problem.code, problem.path) == (code, f"teams[0].{path}")
