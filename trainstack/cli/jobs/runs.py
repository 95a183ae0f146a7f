"""`trainstack runs` and `trainstack stop`: list and stop runs of a stack."""

import itertools
import time
from typing import TYPE_CHECKING, Annotated

import typer

from infra.errors import Problem, UserError
from infra.exit_codes import ExitCode
from trainstack.cli.output import Format, FormatOption, print_json, print_table, require_terminal
from trainstack.cli.stack import Rehearse, Stack, Yes

if TYPE_CHECKING:  # help needs none of them
    from infra.jobs.service import ServiceJob
    from trainstack.cli.jobs.opened import Opened

NEWEST = 20
SCHEMA = "trainstack.runs/1"

All = Annotated[bool, typer.Option("--all", help=f"Show all runs, not only the newest {NEWEST}.")]
Person = Annotated[str, typer.Option("--person", help="Only the runs of this person.")]
Name = Annotated[str, typer.Argument(help="Name of the run, as in `trainstack runs`.")]


def runs(
    stack: Stack = "",
    every: All = False,
    person: Person = "",
    rehearse: Rehearse = False,
    form: FormatOption = Format.TEXT,
) -> None:
    """Show the runs of a stack, newest first: person, machine, state and cost."""
    from infra.jobs import report  # noqa: PLC0415
    from infra.jobs.money import prices  # noqa: PLC0415
    from infra.jobs.submission import answered  # noqa: PLC0415
    from trainstack.cli.jobs.opened import opened  # noqa: PLC0415 - help needs none of them

    with opened(stack, rehearse=rehearse) as at:
        with answered():
            theirs = (job for job in at.service.jobs() if not person or job.person == person)
            found = list(theirs if every else itertools.islice(theirs, NEWEST))
        names = [one.name for one in at.outputs.people]
    if person and not found and person not in names:  # a person who was removed has runs
        fix = f"People are {', '.join(sorted(names))}."
        raise UserError([Problem("--person", person, "is not in the stack", fix, code="unknown-person")])
    known, unseen = prices(at.outputs.machines), at.service.unseen
    shortened = not every and len(found) == NEWEST
    if form is Format.JSON:
        rows = [report.document(job, known) for job in found]
        print_json(
            SCHEMA, {"stack": at.outputs.stack, "runs": rows, "shortened": shortened, "unseen": unseen}
        )
        return
    if unseen:
        typer.echo(f"{unseen} runs of others are not shown: your login is not allowed to read them.")
    if not found:
        typer.echo("No runs yet: `trainstack run FOLDER` starts one.")
    print_table(report.HEAD, [report.row(job, known) for job in found])
    if shortened:
        typer.echo(f"The newest {NEWEST}; --all shows the others.")


def stop(name: Name, stack: Stack = "", yes: Yes = False, rehearse: Rehearse = False) -> None:
    """Stop a run, and wait until billing ends. The script has two minutes to save."""
    from infra.jobs.money import prices  # noqa: PLC0415
    from infra.jobs.report import ending  # noqa: PLC0415
    from infra.jobs.submission import answered  # noqa: PLC0415
    from trainstack.cli.jobs.opened import opened  # noqa: PLC0415 - help needs none of them

    with opened(stack, rehearse=rehearse) as at:
        with answered():
            job = at.service.job(name)
        if job is None or job.stack not in ("", at.outputs.stack):
            fix = f"`trainstack runs {at.flags}` lists them."
            raise UserError([Problem("run", name, "is not a run of the stack", fix, code="unknown-run")])
        if job.state.over:
            typer.echo("The run has already ended.")
        else:
            if not yes:
                require_terminal()
                typer.confirm(f"Stop {name}?", abort=True)
            job = _stopped(at, name)
        for line in ending(job, prices(at.outputs.machines)):
            typer.echo(line)


def _stopped(at: "Opened", name: str) -> "ServiceJob":
    from infra.jobs.service import LostError  # noqa: PLC0415
    from infra.jobs.stopping import stopped  # noqa: PLC0415

    try:
        return stopped(at.service, name, typer.echo, time.sleep, at.look_s)
    except LostError as error:
        typer.echo(f"The state of the run is unknown: {error}. Stop it again.", err=True)
        raise typer.Exit(ExitCode.FAILED) from error
    except KeyboardInterrupt:
        typer.echo(f"\nStopped waiting; `trainstack runs {at.flags}` shows the state of the run.", err=True)
        raise typer.Exit(ExitCode.INTERRUPTED) from None
