"""`trainstack runs` and `trainstack stop`: what runs and ran in a stack, and how it is ended."""

import itertools
import sys
import time
from typing import TYPE_CHECKING, Annotated

import typer

from infra.errors import Problem, UserError
from trainstack.cli.jobs.run import FAILED_EXIT_CODE, INTERRUPTED_EXIT_CODE
from trainstack.cli.stack import Rehearse, Stack, Yes

if TYPE_CHECKING:  # help comes without them
    from infra.jobs.service import ServiceJob
    from trainstack.cli.jobs.opened import Opened

NEWEST = 20

All = Annotated[bool, typer.Option("--all", help=f"All that the service knows, not the newest {NEWEST}.")]
Person = Annotated[str, typer.Option("--person", help="Only the runs of this person.")]
Name = Annotated[str, typer.Argument(help="The run, as `trainstack runs` names it.")]


def runs(stack: Stack, every: All = False, person: Person = "", rehearse: Rehearse = False) -> None:
    """Show the runs of a stack, newest first: whose, on what, what became of them, what they cost."""
    from infra.jobs.money import prices  # noqa: PLC0415
    from infra.jobs.report import table  # noqa: PLC0415
    from infra.jobs.submission import answered  # noqa: PLC0415
    from trainstack.cli.jobs.opened import opened  # noqa: PLC0415 - help comes without them

    with opened(stack, rehearse=rehearse) as at:
        names = [one.name for one in at.outputs.people]
        if person and person not in names:
            fix = f"People are {', '.join(sorted(names))}."
            raise UserError(
                [Problem("--person", person, "is not a person of the stack", fix, code="unknown-person")]
            )
        with answered():
            theirs = (job for job in at.service.jobs() if not person or job.person == person)
            found = list(theirs if every else itertools.islice(theirs, NEWEST))
        if at.service.unseen:
            typer.echo(f"{at.service.unseen} runs of others are not shown: your login may not read them.")
        if not found:
            typer.echo("No runs yet: `trainstack run FOLDER` starts one.")
            return
        for line in table(found, prices(at.outputs.machines)):
            typer.echo(line)
        if not every and len(found) == NEWEST:
            typer.echo(f"The newest {NEWEST}; --all shows the others.")


def stop(name: Name, stack: Stack, yes: Yes = False, rehearse: Rehearse = False) -> None:
    """Stop a run, and wait until it is over and billed no more. Its script has two minutes to save.

    Exit codes: 0 it is over, 1 it is not known whether it is, 2 usage or refused, 130 interrupted.
    """
    from infra.jobs.money import prices  # noqa: PLC0415
    from infra.jobs.report import ending  # noqa: PLC0415
    from infra.jobs.submission import answered  # noqa: PLC0415
    from trainstack.cli.jobs.opened import opened  # noqa: PLC0415 - help comes without them

    with opened(stack, rehearse=rehearse) as at:
        with answered():
            job = at.service.job(name)
        if job is None or job.stack not in ("", at.outputs.stack):
            fix = f"`trainstack runs {at.flags}` names them."
            raise UserError([Problem("run", name, "is no run of the stack", fix)])
        if job.state.over:
            typer.echo("It is over already.")
        else:
            _confirm(name, confirmed=yes)
            job = _stopped(at, name)
        for line in ending(job, prices(at.outputs.machines)):
            typer.echo(line)


def _stopped(at: "Opened", name: str) -> "ServiceJob":
    """Stop a run; the job when it is over. Ends the process where that is not known."""
    from infra.jobs.service import LostError  # noqa: PLC0415
    from infra.jobs.stopping import stopped  # noqa: PLC0415

    try:
        return stopped(at.service, name, typer.echo, time.sleep, at.look_s)
    except LostError as error:
        typer.echo(f"It is not known whether it still runs: {error}. Stop it again.", err=True)
        raise typer.Exit(FAILED_EXIT_CODE) from error
    except KeyboardInterrupt:
        typer.echo(
            f"\nNobody waits any more; `trainstack runs {at.flags}` shows whether it is over.", err=True
        )
        raise typer.Exit(INTERRUPTED_EXIT_CODE) from None


def _confirm(name: str, *, confirmed: bool) -> None:
    if confirmed:
        return
    if not sys.stdin.isatty():
        raise UserError([Problem("--yes", None, "confirmation needs a terminal", "Add --yes.")])
    typer.confirm(f"Stop {name}?", abort=True)
