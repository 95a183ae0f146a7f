"""The stack that a command works on, where its options name one or none."""

from pathlib import Path

import typer

from infra.errors import Problem, UserError
from infra.places import PROGRAM, STACK_FILES


def only() -> str:
    """The only stack of the folder. Raises UserError where there are several."""
    from infra.stackspec.load import stacks  # noqa: PLC0415 - help needs none of it

    known = stacks()
    if len(known) != 1:
        rule = f"the folder has {len(known) or 'no'} stacks, so one must be chosen"
        fix = f"Add -s NAME: {', '.join(known)}." if known else "Add a file Pulumi.NAME.yaml."
        raise UserError([Problem("--stack", None, rule, fix, code="stack-not-chosen")])
    return known[0]


def chosen(context: typer.Context, parameter: typer.CallbackParam, given: str) -> str:
    """The given stack, also an empty one: a script whose variable is not set must not get another stack.

    The stacks of `--project` are not those of the folder.
    """
    if context.params.get("project") is not None:
        return given
    source = context.get_parameter_source(str(parameter.name))
    if source is not None and source.name == "DEFAULT":
        return only()
    _note_unread(given)
    return given


def _note_unread(stack: str) -> None:
    """Say that a stack file of this folder is not read, because the folder is no client's."""
    here = Path(f"Pulumi.{stack}.yaml").absolute()
    if STACK_FILES is not None and here.parent != STACK_FILES and here.is_file():
        why = f"a folder of stacks has a Pulumi.yaml with `main: {PROGRAM}`"
        typer.echo(f"note: {here} is not read, but the one in {STACK_FILES}: {why}", err=True)
