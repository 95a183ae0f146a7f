"""Values of a spec as `trainstack explain` prints them."""

import json
from collections.abc import Sequence

import typer

from infra.stackspec.load import LoadedSpec, Provenance
from trainstack.cli.output import print_fields, print_json


def print_values(loaded: LoadedSpec, stack: str, values: Sequence[Provenance], *, as_json: bool) -> None:
    """Print each value with its origin, the reason for it and its meaning."""
    if as_json:
        rows = [
            {"path": one.path, "value": one.value, "origin": str(one.origin)}
            | {"reason": one.origin.reason, "meaning": one.description}
            for one in values
        ]
        print_json("trainstack.explain/1", {"stack": stack, "values": rows})
        return
    for row in values:
        typer.echo(f"{row.path} = {json.dumps(row.value, ensure_ascii=False)}")
        named = [("from", str(row.origin)), ("reason", row.origin.reason), ("meaning", row.description)]
        if row.path.startswith("budget."):
            named.append(("of", _budget_of(loaded)))
        print_fields([(f"    {name}", text) for name, text in named if text])


def _budget_of(loaded: LoadedSpec) -> str:
    """The stack that a budget of a cluster is of, in words; empty for other stacks."""
    member, name = loaded.member, loaded.spec.name
    if member is None:
        return ""
    if member.has_budget:
        return f"cluster {member.cluster}, a part of the budget of the whole stack {member.of.name}"
    return f"the whole stack {member.of.name}; `trainstack cost -s {name}` shows the part of this cluster"
