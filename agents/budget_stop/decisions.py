"""Decide which workloads a used-up budget stops, from budgets, workloads and tags (pure)."""

import datetime
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

PREFIX = "trainstack"
EXEMPT = f"{PREFIX}:budget-exempt"
STOP, WARN_ONLY, EXEMPTED = "stop", "would stop", "exempt"


@dataclass(frozen=True)
class SpendingBudget:
    """A budget of the stack and the costs of its month so far, in US dollars."""

    name: str
    scope: str
    """stack, team or person."""
    value: str
    """The stack, the team or the person."""
    over_budget: str
    """stop or warn."""
    limit_usd: float
    spent_usd: float

    @property
    def used_up(self) -> bool:
        """Return whether the costs exceed the limit; costs at the limit do not."""
        return self.spent_usd > self.limit_usd


@dataclass(frozen=True)
class BillableWorkload:
    """A resource that costs money while it runs."""

    kind: str
    """On AWS tuning-job, training-job, app or endpoint; on Google Cloud custom-job, notebook or endpoint."""
    name: str
    arn: str
    """Its ARN; on Google Cloud its full resource name."""
    tags: Mapping[str, str]
    """On Google Cloud the labels, under the keys that tags have."""
    handle: Mapping[str, str]
    """Arguments of the service's call that stops it."""


@dataclass(frozen=True)
class Decision:
    """The action for a workload, with its reason."""

    running: BillableWorkload
    action: str
    """`stop`, `would stop` (a budget that only warns) or `exempt`."""
    budget: SpendingBudget
    reason: str


def decide(budgets: Iterable[SpendingBudget], running: Sequence[BillableWorkload]) -> list[Decision]:
    """Return one decision for each workload of a used-up budget.

    Of several budgets with one workload, one that stops has precedence; a tag with a reason exempts from all.
    """
    over = sorted(
        (one for one in budgets if one.used_up), key=lambda one: (one.over_budget != STOP, one.name)
    )
    found = []
    for workload in running:
        relevant = next((budget for budget in over if belongs(workload, budget)), None)
        if relevant is not None:
            found.append(_decision(workload, relevant))
    return found


def recorded(decision: Decision, outcome: str, now: datetime.datetime) -> dict[str, Any]:
    """The record of a decision and its outcome for auditors: `trainstack.budget-stop/1`."""
    workload, budget = decision.running, decision.budget
    return {
        "schema_version": "trainstack.budget-stop/1",
        "time": now.isoformat(timespec="seconds"),
        "action": decision.action,
        "outcome": outcome,
        "kind": workload.kind,
        "name": workload.name,
        "arn": workload.arn,
        "tags": dict(workload.tags),
        "budget": budget.name,
        "over_budget": budget.over_budget,
        "limit_usd": budget.limit_usd,
        "spent_usd": budget.spent_usd,
        "reason": decision.reason,
    }


def belongs(workload: BillableWorkload, budget: SpendingBudget) -> bool:
    """Return whether a workload carries the tag of the budget's scope with its value."""
    return workload.tags.get(f"{PREFIX}:{budget.scope}") == budget.value


def _decision(workload: BillableWorkload, budget: SpendingBudget) -> Decision:
    spent = f"{budget.scope} {budget.value} spent ${budget.spent_usd:,.2f} of ${budget.limit_usd:,.2f}"
    exemption = workload.tags.get(EXEMPT)
    if exemption and exemption.strip():
        return Decision(workload, EXEMPTED, budget, f"{spent}; exempt: {exemption.strip()}")
    if exemption is not None:
        spent += f"; its tag {EXEMPT} gives no reason and is ignored"
    return Decision(workload, STOP if budget.over_budget == STOP else WARN_ONLY, budget, spent)
