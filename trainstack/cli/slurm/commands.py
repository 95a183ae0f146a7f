"""`trainstack slurm`: files for a Slurm that its owner runs, from the pools and teams of a stack file."""

import shlex
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from infra.errors import Problem, UserError
from trainstack.cli.ledger import Form, MonthOption, chosen_month, show
from trainstack.cli.output import Format, FormatOption, print_lines
from trainstack.cli.queue import show as show_queue
from trainstack.cli.scope import OfTeam
from trainstack.cli.slurm.reached import Ssh, commands, rehearsed
from trainstack.cli.stack import Rehearse, Stack

if TYPE_CHECKING:  # help needs none of them
    from infra.slurm import SlurmSystem

app = typer.Typer(
    help="Configure a Slurm system from a stack file, and account for its jobs.", no_args_is_help=True
)


@app.callback()
def _group() -> None: ...


@app.command()
def render(
    *,
    stack: Stack = "",
    out: Annotated[Path, typer.Option("--out", help="Folder for the files; made if missing.")],
    controller: Annotated[str, typer.Option("--controller", help="Host name of slurmctld.")] = "slurmctld",
    accounting: Annotated[
        str, typer.Option("--accounting-host", help="Host name of slurmdbd; default: the controller's.")
    ] = "",
    version: Annotated[
        str, typer.Option("--slurm-version", help="Version of Slurm, 22.05 or newer.", metavar="YY.MM")
    ] = "25.05",
    resume_program: Annotated[
        str,
        typer.Option("--resume-program", help="Program that starts machines; default: nodes always run."),
    ] = "",
    suspend_program: Annotated[
        str, typer.Option("--suspend-program", help="Program that ends machines.")
    ] = "",
    nodes_per_switch: Annotated[
        int,
        typer.Option("--nodes-per-switch", help="Nodes of a rack in pools with RDMA; default: one switch."),
    ] = 0,
    folder: Annotated[str, typer.Option("--folder", help="Folder of the files on the hosts.")] = "/etc/slurm",
) -> None:
    """Write slurm.conf, gres.conf, cgroup.conf, the topology, checks, and scripts for accounts and members.

    Pools become partitions, teams accounts with quotas and budgets. No cloud is contacted and no machine is
    made: docs/how-to/slurm/configure.md.
    """
    from infra import slurm, stackspec  # noqa: PLC0415 - help needs none of them

    options = slurm.SystemOptions(
        controller=controller,
        accounting=accounting,
        version=version,
        resume_program=resume_program,
        suspend_program=suspend_program,
        nodes_per_switch=nodes_per_switch,
        folder=folder,
    )
    found = slurm.system(stackspec.load_file(stack).spec, options)
    files = slurm.files(found)
    _write(out, files)
    gpus = sum(one.nodes * one.machine.gpus for one in found.partitions)
    print_lines(
        [
            f"{len(files)} files in {out}: {', '.join(files)}",
            f"partitions      {', '.join(one.name for one in found.partitions)}; {gpus} GPUs",
            f"accounts        {', '.join(one.name for one in found.accounts)}",
            "Next: docs/how-to/slurm/configure.md",
        ]
    )
    unpriced = [one.name for one in found.partitions if one.usd is None]
    if unpriced:
        print_lines(
            [f"note: no price in the catalog, so budgets in dollars do not count {', '.join(unpriced)}"]
        )


def _write(out: Path, files: Mapping[str, str]) -> None:
    """Write files into a folder, scripts as executable ones. Raises UserError."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            path = out / name
            path.write_text(text, encoding="utf-8")
            path.chmod(0o755 if name.endswith(".sh") else 0o644)
    except OSError as error:
        fix = "Name a folder that you may write."
        raise UserError([Problem("--out", str(out), str(error), fix, code="output-not-written")]) from None


@app.command()
def ledger(
    *,
    stack: Stack = "",
    month: MonthOption = "",
    ssh: Ssh = "",
    form: Form = "text",
    rehearse: Rehearse = False,
) -> None:
    """Show the GPU-hours that teams held in a month, and what they cost, from sacct.

    Runs `sacct` from PATH or over ssh. Attempts before a requeue count; prices are those of the catalog.
    """
    from trainstack.ledger import slurm as books  # noqa: PLC0415 - help needs none of it

    wanted = chosen_month(month, since="1970")
    system = _system(stack)
    rows = books.read_sacct(commands(stack, ssh, rehearse=rehearse), wanted)
    show(books.months(system, rows, wanted, int(time.time())), system.cluster, wanted, form)


@app.command()
def env(*, stack: Stack = "") -> None:
    """Print the variables by which a shell uses the Slurm of a rehearsed stack: eval "$(...)".

    Then sbatch, squeue and scancel reach it.
    """
    found = rehearsed(stack)
    for key in ("SLURM_CONF", "PATH"):
        typer.echo(f"export {key}={shlex.quote(found[key])}")


@app.command()
def queue(
    *,
    stack: Stack = "",
    team: OfTeam = "",
    ssh: Ssh = "",
    form: FormatOption = Format.TEXT,
    rehearse: Rehearse = False,
) -> None:
    """Show running jobs, waiting jobs with place, reason and planned start, and free GPUs of partitions.

    Runs squeue, sinfo, sacctmgr and sshare, from PATH or over ssh. Times are in UTC.
    """
    from trainstack.slurm.jobs import read  # noqa: PLC0415 - help needs none of them
    from trainstack.slurm.queue import report  # noqa: PLC0415

    system = _system(stack)
    only = _account(system, team) if team else None
    show_queue(report(system, read(commands(stack, ssh, rehearse=rehearse)), only), form)


def _system(stack: str) -> "SlurmSystem":
    from infra import slurm, stackspec  # noqa: PLC0415 - help needs none of them
    from infra.stackspec.clusters.large import clusters_of  # noqa: PLC0415

    spec = stackspec.load_file(stack).spec
    if clusters_of(spec.layout):
        rule, fix = "has no Slurm: Kueue queues its jobs", f"Use `trainstack queue -s {stack}`."
        raise UserError([Problem("stack", stack, rule, fix, code="stack-is-not-slurm")])
    return slurm.system(spec, slurm.SystemOptions())


def _account(system: "SlurmSystem", team: str) -> str:
    """The account of a team. Raises UserError for an unknown one."""
    for one in system.accounts:
        if team in (one.team, one.name):
            return one.name
    known = ", ".join(one.team for one in system.accounts)
    raise UserError(
        [Problem("--team", team, "is no team of the stack", f"Name one of {known}.", code="team-unknown")]
    )
