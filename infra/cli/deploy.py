"""`trainstack up`, `preview`, `refresh` and `destroy`."""

from pathlib import Path
from typing import Annotated

import typer

from infra.cli.options import Rehearse, Stack, Yes

Fault = Annotated[
    list[str] | None,
    typer.Option(
        "--fault",
        help="With --rehearse: a fault for this run, smoke:slow-rank=1 or aws:eks/nodeGroup:capacity@2.",
        metavar="FAULT",
    ),
]
Scenario = Annotated[
    Path | None,
    typer.Option("--faults", help="With --rehearse: a YAML file of faults, capacity and quotas."),
]


def up(
    stack: Stack,
    rehearse: Rehearse = False,
    yes: Yes = False,
    fault: Fault = None,
    faults: Scenario = None,
) -> None:
    """Create and change what the stack file asks for, then validate it by a real training run."""
    from infra.cli.session import open_session  # noqa: PLC0415

    open_session(stack, rehearse=rehearse, faults=fault or (), scenario=faults).up(confirmed=yes)


def preview(stack: Stack, rehearse: Rehearse = False, faults: Scenario = None) -> None:
    """Say what `up` would do, and what the stack would cost."""
    from infra.cli.session import open_session  # noqa: PLC0415

    open_session(stack, rehearse=rehearse, scenario=faults).preview()


def refresh(stack: Stack, rehearse: Rehearse = False, yes: Yes = False) -> None:
    """Take over into the state what changed outside of it."""
    from infra.cli.session import open_session  # noqa: PLC0415

    open_session(stack, rehearse=rehearse).refresh(confirmed=yes)


def destroy(stack: Stack, rehearse: Rehearse = False, yes: Yes = False) -> None:
    """Delete everything the stack created."""
    from infra.cli.session import open_session  # noqa: PLC0415

    open_session(stack, rehearse=rehearse).destroy(confirmed=yes)
