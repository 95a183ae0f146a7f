"""The result of `trainstack drift`: resources that differ from the state."""

from infra.engine.console import new_console
from infra.engine.plan import RefreshPlan
from infra.engine.stack import OperationOutcome
from trainstack.cli.operations import summary
from trainstack.cli.output import print_json, print_table

SCHEMA = "trainstack.drift/1"


def print_drift(stack: str, outcome: OperationOutcome, plan: RefreshPlan, *, as_json: bool) -> None:
    """Print the result as JSON or as text."""
    if as_json:
        document = {
            "stack": stack,
            "succeeded": outcome.succeeded,
            "errors": [error for error in outcome.errors if error],
            "changes": outcome.changes,
            "drifted": plan.steps,
        }
        print_json(SCHEMA, document)
    elif not outcome.succeeded:
        summary.of_changes("drift", outcome)
    elif not plan.steps:
        new_console().print(f"stack {stack}: no drift", markup=False, highlight=False)
    else:
        head = ("found", "type", "name", "properties")
        names = {"update": "changed", "delete": "gone"}
        rows = [(names[one.operation], one.type, one.name, ", ".join(one.changed)) for one in plan.steps]
        print_table(head, rows)
