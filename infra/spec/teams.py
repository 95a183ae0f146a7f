"""Who shares the stack, and by which rules."""

from typing import Annotated

from pydantic import Field

from infra.spec.model import Model, Usd


class TeamSpec(Model):
    """A team: its namespace, its queue, its share and its budget (R12, R23)."""

    name: Annotated[str, Field(min_length=1, max_length=60)]
    """The team's own name; namespace and queue are its DNS form (`Vision Lab` becomes `vision-lab`)."""

    gpus: dict[str, Annotated[int, Field(ge=0)]]
    """Guaranteed GPUs per pool; what a team does not use, others may borrow until it is wanted back."""

    weight: Annotated[float, Field(gt=0)] = 1.0
    """Share of borrowed capacity in relation to the other teams."""

    monthly_budget_usd: Usd
    """Monthly budget of the team; alarms at 50, 80 and 100 %."""


class BudgetSpec(Model):
    """The budget of the whole stack."""

    monthly_usd: Usd
    """Monthly budget; alarms at 50, 80 and 100 % of actual and at 100 % of forecast cost."""

    alert_emails: Annotated[tuple[str, ...], Field(min_length=1, max_length=10)]
    """Who is told; AWS Budgets takes at most ten addresses per alarm."""

    anomaly_usd: Usd
    """A daily cost above its usual level by at least this much is reported as an anomaly."""
