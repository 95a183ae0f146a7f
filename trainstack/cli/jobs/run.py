"""`trainstack run`: train with a folder, as a job of the stack's managed service."""

import datetime
import sys
from pathlib import Path
from time import sleep
from typing import TYPE_CHECKING, Annotated

import typer

from infra.errors import Problem, UserError
from infra.exit_codes import ExitCode
from trainstack.cli.output import print_fields
from trainstack.cli.stack import Rehearse, Stack, Yes

if TYPE_CHECKING:  # help needs none of them
    from infra.jobs.submission import Submission
    from trainstack.cli.jobs.opened import Opened

Folder = Annotated[Path, typer.Argument(help="The folder with the script; all of it is uploaded.")]
Arguments = Annotated[
    list[str] | None, typer.Argument(help="After --: arguments of the script.", metavar="-- ARGUMENTS")
]
Script = Annotated[str, typer.Option("--script", help="Path of the script in the folder.")]
On = Annotated[str, typer.Option("--on", help="Machine of the stack, by its name or machine type.")]
Spot = Annotated[
    bool | None,
    typer.Option("--spot/--no-spot", help="Use spot machines, which can be reclaimed at any time, or never."),
]
Nodes = Annotated[int, typer.Option("--nodes", help="Number of machines.")]
MaxHours = Annotated[
    float | None, typer.Option("--max-hours", help="Hours after which the service stops the run; required.")
]
MaxWait = Annotated[
    float,
    typer.Option(
        "--max-wait",
        help="With spot or flex-start: further hours to wait, which are not billed.",
    ),
]
KeepWarm = Annotated[
    int,
    typer.Option("--keep-warm", help="Minutes for which machines stay reserved for your next run; billed."),
]
As = Annotated[str, typer.Option("--as", help="The person of the stack who owns the run.")]
Dataset = Annotated[
    str,
    typer.Option(
        "--dataset", help="Name of the dataset, synthetic or none: recorded; required without --data."
    ),
]
Data = Annotated[
    str, typer.Option("--data", help="s3://BUCKET/FOLDER/, copied to /opt/ml/input/data/data of each node.")
]
Task = Annotated[
    str,
    typer.Option("--task", help="Purpose, recorded with the run. `evaluation*` gets read-only data access."),
]
Send = Annotated[
    list[str] | None,
    typer.Option(
        "--send", help="File of the folder that looks like a secret and is none; repeatable.", metavar="FILE"
    ),
]
Tune = Annotated[
    str, typer.Option("--tune", help="File of the folder with the hyperparameters that the service searches.")
]
Fault = Annotated[
    list[str] | None,
    typer.Option("--fault", help="With --rehearse: fault to inject (jobs:interrupted=5).", metavar="FAULT"),
]
Resume = Annotated[str, typer.Option("--resume", help="A run that has ended: continue from its checkpoints.")]
Detach = Annotated[bool, typer.Option("--detach", help="Start the run without waiting for its end.")]


def run(
    folder: Folder,
    stack: Stack = "",
    arguments: Arguments = None,
    *,
    script: Script = "train.py",
    send: Send = None,
    on: On = "",
    spot: Spot = None,
    nodes: Nodes = 1,
    max_hours: MaxHours = None,
    max_wait: MaxWait = 12.0,
    keep_warm: KeepWarm = 0,
    person: As = "",
    dataset: Dataset = "",
    data: Data = "",
    task: Task = "training",
    tune: Tune = "",
    resume: Resume = "",
    detach: Detach = False,
    rehearse: Rehearse = False,
    fault: Fault = None,
    yes: Yes = False,
) -> None:
    """Train with a folder: check price and budget, start a job of the managed service, show its log."""
    from infra.jobs.aws.search.tuning import read  # noqa: PLC0415
    from infra.jobs.options import RunOptions  # noqa: PLC0415
    from infra.jobs.submission import prepare  # noqa: PLC0415
    from trainstack.cli.jobs.opened import opened  # noqa: PLC0415 - help needs none of them

    options = RunOptions(
        folder=folder,
        script=script,
        arguments=tuple(arguments or ()),
        send=tuple(send or ()),
        machine=on,
        spot=spot,
        nodes=nodes,
        max_hours=max_hours,
        max_wait_hours=max_wait,
        keep_warm_minutes=keep_warm,
        person=person,
        dataset=dataset,
        data=data,
        task=task,
        tune=read(folder, tune) if tune else None,
        resume=resume,
    )
    with opened(stack, rehearse=rehearse, faults=fault or ()) as at:
        submission = prepare(at.outputs, options, at.service, datetime.datetime.now(datetime.UTC))
        show(submission)
        confirm(submission, confirmed=yes)
        raise typer.Exit(started(at, submission, detach=detach))


def show(run: "Submission") -> None:
    """Print the run that would be started, and its price."""
    order, packed = run.order, run.pack
    bought = "reserved" if order.machine.reservation else "flex-start" if order.flex_start else "on demand"
    machine = f"{order.nodes} x {order.machine.machine} ({order.machine.name})"
    rows = [
        ("run", run.name),
        ("for", f"{order.person.name} ({order.person.team}), {order.options.task} on {order.dataset}"),
    ]
    if order.reads_only:
        rows.append(("rights", "evaluation: reads data, models and checkpoints, writes only results"))
    rows += [
        ("packed", f"{len(packed.files)} files, {packed.size / 1e3:,.0f} kB, {packed.version}"),
        ("machine", f"{machine}, {'spot' if order.spot else bought}, at most {order.max_hours:g} h"),
    ]
    if tuning := order.options.tune:
        searched = f"{tuning.goal.lower()} {tuning.metric} over {', '.join(tuning.ranges)}"
        trials = f"{tuning.trials} trials at most, {tuning.parallel} at a time"
        rows.append(("search", f"{searched}: {trials}"))
    rows += [("warning", str(one)) for one in packed.warnings]
    if run.kept_warm:
        rows.append(("kept warm", run.kept_warm))
    cheaper = "; the discount is known at the end" if order.spot or order.flex_start else ""
    rows.append(("price", f"{run.price}{cheaper}"))
    rows += [("budget", f"{'over, ' if room.broken else ''}{room}") for room in run.rooms]
    if run.unseen:
        rows.append(("budget", f"excludes {run.unseen} jobs of others, which your login cannot read"))
    print_fields(rows)


def confirm(run: "Submission", *, confirmed: bool) -> None:
    """Ask for confirmation where the price is unknown. Raises UserError without a terminal."""
    if run.price.usd is not None or confirmed:
        return
    if not sys.stdin.isatty():
        rule = f"the price of {run.order.machine.machine} is unknown, so no budget counts the run"
        fix = "Look its price up, then add --yes."
        raise UserError([Problem("--yes", None, rule, fix, code="price-unknown")])
    typer.confirm("Start it at an unknown price?", abort=True)


def started(at: "Opened", run: "Submission", *, detach: bool) -> int:
    """Start a run, follow it, and return the exit code of the command."""
    from infra.jobs.service import LostError  # noqa: PLC0415
    from infra.jobs.submission import start  # noqa: PLC0415

    see = f"trainstack runs {at.flags}"
    try:
        start(run, at.service, typer.echo)
    except LostError as error:
        text = f"The connection was lost during the start: {error}. Check with `{see}`."
        typer.echo(text, err=True)
        return ExitCode.FAILED
    except KeyboardInterrupt:
        typer.echo(f"Interrupted during the start. Check with `{see}`.", err=True)
        return ExitCode.INTERRUPTED
    stop = f"trainstack stop {run.name} {at.flags}"
    if detach:
        typer.echo(f"started    `{see}` shows it, `{stop}` stops it")
        return 0
    try:
        return followed(at, run.name)
    except KeyboardInterrupt:
        typer.echo(f"\nThe run continues and is billed. `{see}` shows it, `{stop}` stops it.", err=True)
        return ExitCode.INTERRUPTED


def followed(at: "Opened", name: str) -> int:
    """Show a run until it ends; 0 if it completed."""
    from infra.jobs.following import follow  # noqa: PLC0415
    from infra.jobs.money import prices  # noqa: PLC0415
    from infra.jobs.report import ending  # noqa: PLC0415
    from infra.jobs.service import JobState  # noqa: PLC0415

    try:
        job = follow(at.service, name, typer.echo, sleep, at.look_s)
    except UserError as error:
        typer.echo(f"The run cannot be followed: {error} The run continues.", err=True)
        return ExitCode.FAILED
    for line in ending(job, prices(at.outputs.machines)):
        typer.echo(line)
    return 0 if job.state is JobState.COMPLETED else ExitCode.FAILED
