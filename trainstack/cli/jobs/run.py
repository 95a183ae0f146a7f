"""`trainstack run`: a folder becomes a job of the stack's managed service."""

import datetime
import sys
from pathlib import Path
from time import sleep
from typing import TYPE_CHECKING, Annotated

import typer

from infra.errors import Problem, UserError
from trainstack.cli.stack import Rehearse, Stack, Yes

if TYPE_CHECKING:  # help comes without them
    from infra.jobs.submission import Submission
    from trainstack.cli.jobs.opened import Opened

FAILED_EXIT_CODE, INTERRUPTED_EXIT_CODE = 1, 130

Folder = Annotated[Path, typer.Argument(help="The folder with the script; all of it goes along.")]
Arguments = Annotated[
    list[str] | None, typer.Argument(help="After --, what the script is given.", metavar="[-- ARGUMENTS]")
]
Script = Annotated[str, typer.Option("--script", help="The script, by its path in the folder.")]
On = Annotated[
    str, typer.Option("--on", help="A machine of the stack, by its name there or the service's type.")
]
Spot = Annotated[
    bool | None,
    typer.Option("--spot/--no-spot", help="Spare machines, cheaper and taken back at any time; or never."),
]
Nodes = Annotated[int, typer.Option("--nodes", help="How many machines.")]
MaxHours = Annotated[
    float | None, typer.Option("--max-hours", help="Hours of running after which the service ends it.")
]
MaxWait = Annotated[
    float,
    typer.Option("--max-wait", help="With spot: hours to wait for machines besides, which cost nothing."),
]
KeepWarm = Annotated[
    int,
    typer.Option("--keep-warm", help="Minutes that the machines wait for your next run; they are billed."),
]
As = Annotated[str, typer.Option("--as", help="Whose run it is: a person of the stack.")]
Dataset = Annotated[
    str, typer.Option("--dataset", help="What it trains on, for the record; synthetic or none, too.")
]
Data = Annotated[
    str, typer.Option("--data", help="s3://BUCKET/FOLDER/, copied to /opt/ml/input/data/data of each node.")
]
Task = Annotated[
    str,
    typer.Option(
        "--task", help="What it is for, for the record; one that begins with evaluation reads alone."
    ),
]
Tune = Annotated[
    str, typer.Option("--tune", help="A file of the folder: what the service searches in runs of the script.")
]
Fault = Annotated[
    list[str] | None,
    typer.Option("--fault", help="With --rehearse: what befalls it, as jobs:interrupted=5.", metavar="FAULT"),
]
Resume = Annotated[str, typer.Option("--resume", help="A run that is over: go on from its checkpoints.")]
Detach = Annotated[bool, typer.Option("--detach", help="Start it, and do not wait.")]


def run(
    folder: Folder,
    stack: Stack,
    arguments: Arguments = None,
    *,
    script: Script = "train.py",
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
    """Train with a folder: check price and budget, start a job of the managed service, show what it writes.

    Exit codes: 0 completed, 1 failed or stopped, 2 usage or refused, 130 interrupted (the run goes on).
    """
    from infra.jobs.aws.search.tuning import read  # noqa: PLC0415
    from infra.jobs.options import Options  # noqa: PLC0415
    from infra.jobs.submission import prepare  # noqa: PLC0415
    from trainstack.cli.jobs.opened import opened  # noqa: PLC0415 - help comes without them

    options = Options(
        folder=folder,
        script=script,
        arguments=tuple(arguments or ()),
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
    """What would be started, and what it would cost."""
    order, packed = run.order, run.pack
    bought = "reserved" if order.machine.reservation else "on demand"
    spot = "spot" if order.spot else bought
    typer.echo(f"run        {run.name}")
    typer.echo(
        f"for        {order.person.name} ({order.person.team}), {order.options.task} on {order.dataset}"
    )
    if order.reads_only:
        typer.echo("rights     of an evaluation: reads data, models and checkpoints, writes results alone")
    typer.echo(f"packed     {len(packed.files)} files, {packed.size / 1e3:,.0f} kB, {packed.version}")
    machine = f"{order.nodes} x {order.machine.machine} ({order.machine.name}), {spot}"
    typer.echo(f"machine    {machine}, at most {order.max_hours:g} h")
    if tuning := order.options.tune:
        searched = f"{tuning.goal.lower()} {tuning.metric} over {', '.join(tuning.ranges)}"
        typer.echo(f"search     {searched}: {tuning.trials} trials at most, {tuning.parallel} at a time")
    cheaper = "; spot is billed for less, by how much shows at the end" if order.spot else ""
    typer.echo(f"price      {run.price}{cheaper}")
    for room in run.rooms:
        typer.echo(f"budget     {'over, ' if room.broken else ''}{room}")
    if run.unseen:
        typer.echo(f"budget     not counted: {run.unseen} jobs of others, which your login may not read")


def confirm(run: "Submission", *, confirmed: bool) -> None:
    """Ask where nobody knows the price. Raises UserError where nobody can be asked."""
    if run.price.usd is not None or confirmed:
        return
    if not sys.stdin.isatty():
        rule = f"nobody knows what {run.order.machine.machine} costs, so no budget counts it"
        raise UserError([Problem("--yes", None, rule, "Look its price up, then add --yes.")])
    typer.confirm("Start it at an unknown price?", abort=True)


def started(at: "Opened", run: "Submission", *, detach: bool) -> int:
    """Start a run and follow it; the exit code of the command."""
    from infra.jobs.service import LostError  # noqa: PLC0415
    from infra.jobs.submission import start  # noqa: PLC0415

    see = f"trainstack runs {at.flags}"
    try:
        start(run, at.service, typer.echo)
    except LostError as error:
        typer.echo(
            f"The connection was lost while it was started: {error}. Whether it runs says `{see}`.", err=True
        )
        return FAILED_EXIT_CODE
    except KeyboardInterrupt:
        typer.echo(f"Interrupted while it was started. Whether it runs says `{see}`.", err=True)
        return INTERRUPTED_EXIT_CODE
    stop = f"trainstack stop {run.name} {at.flags}"
    if detach:
        typer.echo(f"started    `{see}` shows it, `{stop}` stops it")
        return 0
    try:
        return followed(at, run.name)
    except KeyboardInterrupt:
        typer.echo(f"\nThe run goes on, and is billed. `{see}` shows it, `{stop}` stops it.", err=True)
        return INTERRUPTED_EXIT_CODE


def followed(at: "Opened", name: str) -> int:
    """Show a run until it is over; 0 if it completed."""
    from infra.jobs.following import follow  # noqa: PLC0415
    from infra.jobs.money import prices  # noqa: PLC0415
    from infra.jobs.report import ending  # noqa: PLC0415
    from infra.jobs.service import JobState  # noqa: PLC0415

    try:
        job = follow(at.service, name, typer.echo, sleep, at.look_s)
    except UserError as error:
        typer.echo(f"The run cannot be followed: {error} It goes on by itself.", err=True)
        return FAILED_EXIT_CODE
    for line in ending(job, prices(at.outputs.machines)):
        typer.echo(line)
    return 0 if job.state is JobState.COMPLETED else FAILED_EXIT_CODE
