"""`trainstack explain`: what a value is, where it comes from and why."""

from typing import Annotated

import typer

from infra.cli.options import Stack

Key = Annotated[str, typer.Argument(help="A key such as pools[0].capacity; without one, all keys.")]


def explain(key: Key = "", stack: Stack = "dev-aws") -> None:
    """Show a value of the spec with its origin, its reason and its meaning."""
    from infra import spec  # noqa: PLC0415

    for found in spec.load_file(stack).explain(key):
        typer.echo(f"{found.path} = {found.value!r}")
        typer.echo(f"    from    {found.origin}")
        if found.origin.reason:
            typer.echo(f"    reason  {found.origin.reason}")
        if found.description:
            typer.echo(f"    meaning {found.description}")
