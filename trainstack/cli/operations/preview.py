"""The result of `trainstack preview`: changes, ended nodes and data, and the price of the stack."""

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from infra import cost, stackspec
from infra.checkpoints import checkpoints
from infra.engine.console import new_console
from infra.engine.plan import PreviewPlan
from infra.engine.stack import OperationOutcome
from trainstack.cli.operations import summary
from trainstack.cli.output import print_fields, print_json, print_table
from trainstack.plans.drains import drains
from trainstack.plans.losses import keeps, losses, lowered, retained, shrinks
from trainstack.preflight.shortfalls import Short

SCHEMA = "trainstack.preview/1"
_PRICES = ("min $/month", "expected", "max")


@dataclass(frozen=True)
class Preview:
    """A preview that has ended."""

    loaded: stackspec.LoadedSpec
    outcome: OperationOutcome
    plan: PreviewPlan
    shortfalls: Sequence[Short]
    """Quotas that the stack at its largest exceeds."""
    on: datetime.date
    jobs: Sequence[tuple[str, str]] = ()
    """Effects on jobs: pairs of effect and job."""

    @property
    def ends(self) -> list[tuple[str, str]]:
        """Jobs and nodes that end, limits that fall, data that shrinks, is deleted and, then, stays."""
        ended = [*self.jobs, *(("nodes end", line) for line in drains(self.plan.steps))]
        ended += [("data shrinks", line) for line in shrinks(self.plan.steps)]
        ended += [("data stays", line) for line in retained(self.plan.steps)]
        ended += [("limit falls", line) for line in lowered(self.plan.steps)]
        if lost := [("data is deleted", line) for line in losses(self.plan.steps)]:
            ended += lost + [("data stays", line) for line in keeps(self.plan.kept)]
        return ended


def print_preview(preview: Preview) -> None:
    """Print changes and price as text."""
    outcome, spec = preview.outcome, preview.loaded.spec
    if not outcome.succeeded:
        summary.of_changes("preview", outcome)
        return
    console = new_console()
    title = f"\n[bold]Would change[/] stack {spec.name}: {summary.counts(outcome)}"
    console.print(title, soft_wrap=True)
    summary.print_findings(console, outcome)
    for name, line in preview.ends:
        console.print(f"  {name}: {line}", style="bold yellow", markup=False, soft_wrap=True)
    estimate = cost.estimate(spec, preview.on)
    _print_estimate(estimate)
    notes = [
        ("checkpoints of a run", checkpoints(spec).line),
        ("old prices", summary.old_prices(estimate, preview.on)),
        ("not priced", "; ".join(map(str, estimate.not_priced))),
    ]
    if unsure := preview.plan.unsure:
        text = f"  {len(unsure)} may be replaced, which is not known: {'; '.join(unsure)}"
        console.print(text, style="bold yellow", markup=False, highlight=False, soft_wrap=True)
    for shortfall in preview.shortfalls:
        console.print(f"  over quota: {shortfall}", style="bold red", markup=False, soft_wrap=True)
    for name, text in notes:
        if text:
            console.print(f"  {name}: {text}", style="dim", markup=False, highlight=False, soft_wrap=True)


def _print_estimate(estimate: cost.CostEstimate) -> None:
    rows = [
        (one.name, *map(summary.usd, (one.minimum, one.expected, one.maximum)), str(one.date or "-"))
        for one in estimate.items
    ]
    total = map(summary.usd, (estimate.minimum, estimate.expected, estimate.maximum))
    print_table(("item", *_PRICES, "price of"), [*rows, ("total of known", *total, "")], right=_PRICES)


def print_cost(loaded: stackspec.LoadedSpec, *, as_json: bool) -> None:
    """Print the price of a stack."""
    today, spec = datetime.date.today(), loaded.spec
    estimate = cost.estimate(spec, today)
    budget = spec.budget.monthly_usd
    if as_json:
        document = {
            "stack": spec.name,
            "budget_usd": budget,
            "budget_of": summary.budget_of(loaded),
            "price": price(estimate, today),
        }
        print_json("trainstack.cost/1", document)
        return
    _print_estimate(estimate)
    notes = (
        ("budget", summary.budget_line(loaded, estimate, today)),
        ("old prices", summary.old_prices(estimate, today)),
        ("not priced", "; ".join(map(str, estimate.not_priced))),
    )
    print_fields([(name, text) for name, text in notes if text])


def print_preview_json(preview: Preview) -> None:
    """Print the same for programs; also of a preview that failed."""
    outcome, spec = preview.outcome, preview.loaded.spec
    document = {
        "stack": spec.name,
        "succeeded": outcome.succeeded,
        "errors": [error for error in outcome.errors if error],
        "changes": outcome.changes,
        "plan": preview.plan.digest,
        "steps": [
            {"operation": one.operation, "type": one.type, "name": one.name, "changed": one.changed}
            for one in preview.plan.steps
        ],
        "may_replace": preview.plan.unsure,
        "ends": [{"kind": kind, "text": text} for kind, text in preview.ends],
        "findings": outcome.findings,
        "over_quota": [{"key": one.key, "text": str(one), "fix": one.fix} for one in preview.shortfalls],
        "price": price(cost.estimate(spec, preview.on), preview.on),
        "checkpoints": checkpoints(spec).line,
    }
    print_json(SCHEMA, document)


def print_up_json(stack: str, outcome: OperationOutcome) -> None:
    """Print the outcome of a deployment for programs."""
    document = {
        "stack": stack,
        "succeeded": outcome.succeeded and not outcome.interrupted,
        "interrupted": outcome.interrupted,
        "seconds": round(outcome.seconds, 1),
        "errors": [error for error in outcome.errors if error],
        "changes": outcome.changes,
        "findings": outcome.findings,
    }
    print_json("trainstack.up/1", document)


def price(estimate: cost.CostEstimate, on: datetime.date) -> Mapping[str, Any]:
    """An estimate as JSON, in US dollars per month."""
    old = {one.name for one in estimate.old(on)}
    return {
        "minimum_usd": estimate.minimum,
        "expected_usd": estimate.expected,
        "maximum_usd": estimate.maximum,
        "items": [
            {
                "name": one.name,
                "minimum_usd": one.minimum,
                "expected_usd": one.expected,
                "maximum_usd": one.maximum,
                "date": one.date,
                "old": one.name in old,
            }
            for one in estimate.items
        ],
        "not_priced": [str(use) for use in estimate.not_priced],
    }
