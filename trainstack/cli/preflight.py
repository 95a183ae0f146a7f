"""`trainstack preflight`: asks the real account or project, before anything is deployed into it."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from infra.errors import Problem, UserError
from trainstack.cli.stack import Stack

if TYPE_CHECKING:
    from trainstack.preflight.answers import Answer

Skip = Annotated[
    list[str] | None,
    typer.Option("--skip", help="A check that is not to be made, by its name; may be repeated."),
]
Save = Annotated[
    Path | None,
    typer.Option("--save", help="Write what is left of the quotas, for `up --rehearse --faults FILE`."),
]


def preflight(stack: Stack, skip: Skip = None, save: Save = None) -> None:
    """Ask the account or project whether the stack can be deployed: rights, quotas, machines, the way in.

    Only reads. Exit codes: 0 ready; 1 something is missing; 2 not everything could be asked, or bad input.
    """
    from infra import stackspec  # noqa: PLC0415 - help comes without them
    from trainstack.preflight.answers import State, exit_code  # noqa: PLC0415
    from trainstack.preflight.deployment import preflight_of  # noqa: PLC0415

    made = preflight_of(stackspec.load_file(stack).spec)
    unknown = sorted({*(skip or ())} - set(made.checks))
    if unknown:
        fix = f"Checks are {', '.join(made.checks)}."
        raise UserError([Problem("--skip", name, "there is no such check", fix) for name in unknown])
    answers = made.ask([name for name in made.checks if name not in (skip or ())])
    _show(answers)
    for name in skip or ():
        typer.echo(f"skipped  {name}")
    if save and answers[0].state is State.READY:  # it is the stack's account that has answered
        left = "".join(f"  {key}: {amount:g}\n" for key, amount in made.left().items())
        save.write_text(f"# What {made.place} has left of its quotas.\nquotas:\n{left}")
        where = made.place.partition(" ")[0]
        typer.echo(f"\nRehearse in this {where}: trainstack up -s {stack} --rehearse --faults {save}")
    raise typer.Exit(exit_code(answers))


def _show(answers: Sequence["Answer"]) -> None:
    for answer in answers:
        typer.echo(f"{answer.state:8} {answer.check}: {answer.said}")
        if answer.fix:
            typer.echo(f"         {answer.fix}")
