"""`trainstack capacity`: committed GPU capacity against its use and its queue, with a forecast and advice."""

import datetime
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from infra.errors import Problem, UserError
from trainstack.cli.output import Format, FormatOption, print_json, print_lines, print_table
from trainstack.cli.scope import ClusterLogin, scope
from trainstack.cli.stack import Rehearse, Stack

if TYPE_CHECKING:  # help needs none of them
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


def capacity(
    *,
    stack: Stack = "",
    months: Months = 6,
    ahead: Ahead = 1,
    ledger: Ledger = None,
    form: FormatOption = Format.TEXT,
    rehearse: Rehearse = False,
) -> None:
    """Show committed, held and idle GPU-hours per class and month, a forecast with its error, and advice.

    A class is a machine type. Reads the cluster with your login (ledger and queue), or files of the ledger.
    Changes nothing and buys nothing. Teams whose book cannot be read are reported after the others; the
    command then fails.
    """
    from infra import stackspec  # noqa: PLC0415 - help needs none of them
    from trainstack.capacity import classes  # noqa: PLC0415
    from trainstack.capacity.history import history, read_files  # noqa: PLC0415
    from trainstack.capacity.report import report  # noqa: PLC0415

    spec = stackspec.load_file(stack).spec
    classes.layout(spec)
    problems: list[Problem] = []
    live: Live | None = None
    if ledger:
        if rehearse:
            rule, fix = "reads files instead of a rehearsal", "Leave out --rehearse or --ledger."
            raise UserError([Problem("--ledger", None, rule, fix, "--rehearse", code="option-conflict")])
        found = read_files(ledger)
        if found[0].stack != spec.name:
            rule, fix = f"is of stack {found[0].stack}", f"Write it with `trainstack ledger -s {spec.name}`."
            raise UserError([Problem("--ledger", str(ledger[0]), rule, fix, code="ledger-of-other-stack")])
    else:
        found, live, problems = _read(stack, max(months, _LEAST_MONTHS), rehearse=rehearse)
    past = history(found)
    if not past.months:
        fix = "Wait for its first minutes, or name files with --ledger."
        raise UserError([*problems, Problem("ledger", stack, "covers no time yet", fix, code="ledger-empty")])
    pools = classes.pools(spec, past.end.date())
    made = report(spec, pools, past, live, shown=months, ahead=ahead)
    _show(made, form)
    if problems:
        raise UserError(problems)


def _read(stack: str, months: int, *, rehearse: bool) -> "tuple[list[LedgerMonth], Live, list[Problem]]":
    """Documents of the ledger of the last months, the queue, and problems with books of single teams."""
    from trainstack.capacity.demand import demand, resumable  # noqa: PLC0415
    from trainstack.capacity.history import parsed  # noqa: PLC0415
    from trainstack.capacity.periods import following  # noqa: PLC0415
    from trainstack.capacity.report import Live  # noqa: PLC0415
    from trainstack.ledger import books, forms  # noqa: PLC0415
    from trainstack.queues.reading import read  # noqa: PLC0415

    now = f"{datetime.datetime.now(datetime.UTC):%Y-%m}"
    found: list[LedgerMonth] = []
    problems: dict[str, Problem] = {}
    with scope(stack, "", ClusterLogin(), rehearse=rehearse) as of:
        for month in (following(now, count) for count in range(1 - months, 1)):
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
        return found, Live(demand(state), resumable(of.cluster, state), denied), [*problems.values()]


def _show(made: "CapacityReport", form: Format) -> None:
    from trainstack.capacity import report as reports  # noqa: PLC0415

    if form is Format.JSON:
        print_json(reports.SCHEMA, reports.document(made))
        return
    typer.echo(f"{made.stack} ({made.cloud} {made.region}), ledger until {made.past.end:%Y-%m-%d %H:%M} UTC")
    _section("committed", reports.commitments(made) or ["nothing: no reservation, no block, no min_nodes"])
    typer.echo()
    print_table(reports.PAST, reports.past_rows(made), title="GPU-hours", right=reports.PAST[2:])
    typer.echo()
    print_table(reports.AHEAD, reports.ahead_rows(made), title="forecast", right=reports.AHEAD[2:])
    typer.echo()
    if made.live is None:
        typer.echo("queue: not read (--ledger)")
    else:
        rows = reports.queue_rows(made)
        print_table(reports.QUEUE, rows, title="queue" if rows else "queue: empty", right=reports.QUEUE[2:])
    _section("advice", reports.advice_lines(made) or ["none: nothing is committed, and no job held GPUs"])
    if made.notes:
        _section("notes", made.notes)


def _section(title: str, lines: Sequence[str]) -> None:
    typer.echo(f"\n{title}")
    print_lines(f"  {line}" for line in lines)
