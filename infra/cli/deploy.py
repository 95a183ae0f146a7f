"""`trainstack up`, `preview`, `refresh` and `destroy`."""

from typing import Annotated

import typer

from infra.cli.options import Rehearse, Stack, Yes

Fault = Annotated[
    list[str] | None,
    typer.Option(
        "--fault", help="With --rehearse: a fault for this run, such as smoke:slow-rank=1.", metavar="FAULT"
    ),
]


def up(stack: Stack, rehearse: Rehearse = False, yes: Yes = False, fault: Fault = None) -> None:
    """Create and change what the stack file asks for, then validate it by a real training run."""
    from infra.cli.session import open_session  # noqa: PLC0415

    open_session(stack, rehearse=rehearse, faults=fault or ()).up(confirmed=yes)


def preview(stack: Stack, rehearse: Rehearse = False) -> None:
    """Say what `up` would do, and what the stack would cost."""
    from infra.cli.session import open_session  # noqa: PLC0415

    open_session(stack, rehearse=rehearse).preview()


def refresh(stack: Stack, rehearse: Rehearse = False, yes: Yes = False) -> None:
    """Take over into the state what changed outside of it."""
    from infra.cli.session import open_session  # noqa: PLC0415

    open_session(stack, rehearse=rehearse).refresh(confirmed=yes)


def destroy(stack: Stack, rehearse: Rehearse = False, yes: Yes = False) -> None:
    """Delete everything the stack created."""
    from infra.cli.session import open_session  # noqa: PLC0415

    open_session(stack, rehearse=rehearse).destroy(confirmed=yes)
