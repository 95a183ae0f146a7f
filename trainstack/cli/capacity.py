"""`trainstack capacity`: committed GPU capacity against its use and its queue, with a forecast and advice."""

import datetime
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from infra.errors import Problem, UserError
from trainstack.cli.output import format_option, print_json, print_lines, print_table
from trainstack.cli.scope import ClusterLogin, scope
from trainstack.cli.slurm.reached import Ssh, commands
from trainstack.cli.stack import Rehearse, Stack

if TYPE_CHECKING:  # help needs none of them
    from infra.stackspec.stack import StackSpec
    from trainstack.capacity.history import LedgerMonth
    from trainstack.capacity.report import CapacityReport, Live

_LEAST_MONTHS = 6
"""Months of the ledger that a forecast of the next ones may need."""
Months = Annotated[int, typer.Option("--months", min=1, max=36, help="Months to show, with the current one.")]
Ahead = Annotated[int, typer.Option("--ahead", min=1, max=6, help="Months to forecast.")]
Ledger = Annotated[
    list[Path] | None,
    typer.Option(
        "--ledger",
        metavar="FILE",
        help="Output of `trainstack ledger --format json`, of one or several months, instead of the cluster. "
        "Repeatable. The queue is not read then.",
    ),
]

_HELP = "Output format; csv: a line per month and class; json: all, with teams, prices, forecast and advice."
Form = Annotated[str, format_option(("text", "json", "csv"), _HELP)]


def capacity(
    *,
    stack: Stack = "",
    months: Months = 6,
    ahead: Ahead = 1,
    ledger: Ledger = None,
    ssh: Ssh = "",
    form: Form = "text",
    rehearse: Rehearse = False,
) -> None:
    """Show committed, held and idle GPU-hours per class and month, a forecast with its error, and advice.

    A class is a machine type. Reads the cluster with your login (ledger and queue), of a manager of several
    clusters for all of them; of a Slurm system `sacct` from PATH or over ssh; or files of the ledger.
    Changes nothing and buys nothing. Teams whose book cannot be read are reported after the others; the
    command then fails.
    """
    from infra import stackspec  # noqa: PLC0415 - help needs none of them
    from infra.stackspec.slurm.layout import SlurmLayout  # noqa: PLC0415
    from trainstack.capacity import classes  # noqa: PLC0415
    from trainstack.capacity.history import history, read_files  # noqa: PLC0415
    from trainstack.capacity.report import report  # noqa: PLC0415

    spec = stackspec.load_file(stack).spec
    classes.require_pools(spec)
    problems: list[Problem] = []
    live: Live | None = None
    if ledger:
        if rehearse:
            rule, fix = "reads files instead of a rehearsal", "Leave out --rehearse or --ledger."
            raise UserError([Problem("--ledger", None, rule, fix, "--rehearse", code="option-conflict")])
        found = read_files(ledger)
        if found[0].stack != spec.name:
            slurm = "slurm " if isinstance(spec.layout, SlurmLayout) else ""
            rule, fix = (
                f"is of stack {found[0].stack}",
                f"Write it with `trainstack {slurm}ledger -s {spec.name}`.",
            )
            raise UserError([Problem("--ledger", str(ledger[0]), rule, fix, code="ledger-of-other-stack")])
    elif isinstance(spec.layout, SlurmLayout):
        found = _read_sacct(spec, max(months, _LEAST_MONTHS), ssh, rehearse=rehearse)
    elif ssh:
        rule, fix = "is for Slurm systems, and this stack has none", "Leave it out."
        raise UserError([Problem("--ssh", ssh, rule, fix, code="option-conflict")])
    else:
        found, live, problems = _read(spec, max(months, _LEAST_MONTHS), rehearse=rehearse)
    past = history(found)
    if not past.months:
        fix = "Wait for its first minutes, or name files with --ledger."
        raise UserError([*problems, Problem("ledger", stack, "covers no time yet", fix, code="ledger-empty")])
    pools = classes.pools(spec, past.end.date())
    made = report(spec, pools, past, live, shown=months, ahead=ahead)
    _show(made, form)
    if problems:
        raise UserError(problems)


def _last(months: int) -> list[str]:
    """The last months, the current one included."""
    from trainstack.ledger.periods import following  # noqa: PLC0415

    now = f"{datetime.datetime.now(datetime.UTC):%Y-%m}"
    return [following(now, count) for count in range(1 - months, 1)]


def _read_sacct(spec: "StackSpec", months: int, ssh: str, *, rehearse: bool) -> "list[LedgerMonth]":
    """Documents of the last months from `sacct`. Raises UserError where it had no job with GPUs."""
    from infra import slurm  # noqa: PLC0415
    from trainstack.capacity import sacct  # noqa: PLC0415
    from trainstack.capacity.history import parsed  # noqa: PLC0415

    system = slurm.system(spec, slurm.SystemOptions())
    reached = commands(spec.name, ssh, rehearse=rehearse)
    bodies = sacct.documents(system, reached, _last(months), int(time.time()))
    if not bodies:
        rule, fix = "sacct has no job with GPUs in these months", "Ask for more of them with --months."
        raise UserError([Problem("ledger", spec.name, rule, fix, code="ledger-empty")])
    return [parsed(one, one["month"]) for one in bodies]


def _read(
    spec: "StackSpec", months: int, *, rehearse: bool
) -> "tuple[list[LedgerMonth], Live, list[Problem]]":
    """Documents of the ledger of the last months, the queue, and problems with books of single teams."""
    from trainstack.capacity import classes  # noqa: PLC0415
    from trainstack.capacity.demand import demand, resumable  # noqa: PLC0415
    from trainstack.capacity.history import parsed  # noqa: PLC0415
    from trainstack.capacity.report import Live  # noqa: PLC0415
    from trainstack.ledger import books, forms  # noqa: PLC0415
    from trainstack.queues.reading import read  # noqa: PLC0415

    found: list[LedgerMonth] = []
    problems: dict[str, Problem] = {}
    with scope(spec.name, "", ClusterLogin(), rehearse=rehearse) as of:
        for month in _last(months):
            teams: list[books.Month] = []
            for space, name in of.teams.items():
                try:
                    teams.append(books.read(of.cluster.get, name, space, month))
                except UserError as error:
                    problems |= {str(one): one for one in error.problems}
            if teams:
                body = {"schema": "trainstack.ledger/1", "stack": of.name, "month": month}
                found.append(parsed({**body, "teams": forms.documents(teams)}, month))
        if not found:
            raise UserError(problems.values())
        state = read(of.cluster, None)
        denied = [str(one) for one in state.refusals]
        known = classes.pools(spec, datetime.datetime.now(datetime.UTC).date())
        shares = {pool.flavor: pool.shares for pool in known}
        live = Live(demand(state, shares), resumable(of.cluster, state, shares), denied)
        return found, live, [*problems.values()]


def _show(made: "CapacityReport", form: str) -> None:
    from trainstack.capacity import report, tables  # noqa: PLC0415

    if form == "json":
        print_json(report.SCHEMA, report.document(made))
        return
    if form == "csv":
        typer.echo(tables.as_csv(made))
        return
    typer.echo(f"{made.stack} ({made.cloud} {made.region}), ledger until {made.past.end:%Y-%m-%d %H:%M} UTC")
    _section("committed", tables.commitments(made) or ["nothing: no reservation, no block, no min_nodes"])
    for head, rows, title, texts in (
        (tables.PAST, tables.past_rows(made), "GPU-hours", 2),
        (tables.TEAMS, tables.team_rows(made), "teams", 3),
        (tables.PRICES, tables.price_rows(made), "prices per GPU-hour in USD", 2),
        (tables.AHEAD, tables.ahead_rows(made), "forecast", 2),
    ):
        typer.echo()
        print_table(head, rows, title=title, right=head[texts:])
    typer.echo()
    if made.live is None:
        typer.echo("queue: not read")
    else:
        rows = tables.queue_rows(made)
        print_table(tables.QUEUE, rows, title="queue" if rows else "queue: empty", right=tables.QUEUE[2:])
    _section("advice", tables.advice_lines(made) or ["none: nothing is committed, and no job held GPUs"])
    if made.notes:
        _section("notes", made.notes)


def _section(title: str, lines: Sequence[str]) -> None:
    typer.echo(f"\n{title}")
    print_lines(f"  {line}" for line in lines)
