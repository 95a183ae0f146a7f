"""What a budget that is used up stops: pure decisions from budgets, what runs, and its tags."""

import datetime
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

PREFIX = "trainstack"
EXEMPT = f"{PREFIX}:budget-exempt"
STOP, TELL, EXEMPTED = "stop", "would stop", "exempt"


@dataclass(frozen=True)
class Budget:
    """A budget of the stack, and what its month has cost so far, in US dollars."""

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
        """Whether more was spent than is allowed; at the limit nothing is over it yet."""
        return self.spent_usd > self.limit_usd


@dataclass(frozen=True)
class Running:
    """Something that costs money as long as it runs."""

    kind: str
    """On AWS tuning-job, training-job, app or endpoint; on Google Cloud custom-job, notebook or endpoint."""
    name: str
    arn: str
    """Its ARN; on Google Cloud its full resource name."""
    tags: Mapping[str, str]
    """On Google Cloud the labels, under the keys that tags have."""
    handle: Mapping[str, str]
    """What the service needs to end it."""


@dataclass(frozen=True)
class Decision:
    """What becomes of something that runs, and why."""

    running: Running
    action: str
    """`stop`, `would stop` (a budget that only warns) or `exempt`."""
    budget: Budget
    reason: str


def decide(budgets: Iterable[Budget], running: Sequence[Running]) -> list[Decision]:
    """One decision for each thing that a used-up budget is about; others are left alone.

    Of several budgets about one thing, the one that stops counts; a tag with a reason exempts from all.
    """
    over = sorted(
        (one for one in budgets if one.used_up), key=lambda one: (one.over_budget != STOP, one.name)
    )
    found = []
    for thing in running:
        about = next((budget for budget in over if belongs(thing, budget)), None)
        if about is not None:
            found.append(_decision(thing, about))
    return found


def recorded(decision: Decision, outcome: str, now: datetime.datetime) -> dict[str, Any]:
    """What is kept of a decision and of what came of it, for auditors: `trainstack.budget-stop/1`."""
    thing, budget = decision.running, decision.budget
    return {
        "schema_version": "trainstack.budget-stop/1",
        "time": now.isoformat(timespec="seconds"),
        "action": decision.action,
        "outcome": outcome,
        "kind": thing.kind,
        "name": thing.name,
        "arn": thing.arn,
        "tags": dict(thing.tags),
        "budget": budget.name,
        "over_budget": budget.over_budget,
        "limit_usd": budget.limit_usd,
        "spent_usd": budget.spent_usd,
        "reason": decision.reason,
    }


def belongs(thing: Running, budget: Budget) -> bool:
    """Whether a budget is about something: it carries the tag of the budget's scope with its value."""
    return thing.tags.get(f"{PREFIX}:{budget.scope}") == budget.value


def _decision(thing: Running, budget: Budget) -> Decision:
    spent = f"{budget.scope} {budget.value} spent ${budget.spent_usd:,.2f} of ${budget.limit_usd:,.2f}"
    excuse = thing.tags.get(EXEMPT)
    if excuse and excuse.strip():
        return Decision(thing, EXEMPTED, budget, f"{spent}; exempt: {excuse.strip()}")
    if excuse is not None:
        spent += f"; its tag {EXEMPT} gives no reason and does not count"
    return Decision(thing, STOP if budget.over_budget == STOP else TELL, budget, spent)
