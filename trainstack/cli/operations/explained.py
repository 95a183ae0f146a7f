"""Values of a spec as `trainstack explain` prints them."""

import json
from collections.abc import Sequence

import typer

from infra.stackspec.load import Provenance
from trainstack.cli.output import print_fields, print_json


def print_values(stack: str, values: Sequence[Provenance], *, as_json: bool) -> None:
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
        named = (("from", str(row.origin)), ("reason", row.origin.reason), ("meaning", row.description))
        print_fields([(f"    {name}", text) for name, text in named if text])
