"""Monthly budget of a team, and exemptions from it."""

from typing import Annotated, Literal

from pydantic import Field

from infra.stackspec.model import Email, LastDay, Model

MonthlyUsd = Annotated[float, Field(ge=0, allow_inf_nan=False)]
"""US dollars a month; 0: nothing."""
MonthlyGpuHours = Annotated[float, Field(ge=0, allow_inf_nan=False)]
"""GPU-hours a month; 0: none."""
OverBudget = Literal["warn", "stop"]
"""Action when a budget is used up."""


class BudgetExemptionSpec(Model):
    """Jobs that start although the team's budget is used up.

    Any member can use the name or priority: each use is recorded in the team's ledger and as an Event.
    """

    kind: Literal["priority", "job"]
    """`priority`: all jobs of a priority class; `job`: every job of one name."""

    name: Annotated[str, Field(min_length=1, max_length=253)]
    """Name of the priority class (`production`, `default` or `sweep`) or of the job."""

    reason: Annotated[str, Field(min_length=1, max_length=200)]
    """Reason, recorded in the ledger."""

    approved_by: Email
    """E-mail address of the person who approved it."""

    last_day: LastDay
    """The last day (UTC) on which it holds, such as `2026-12-31`, or `never`."""
