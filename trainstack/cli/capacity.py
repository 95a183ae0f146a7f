"""`trainstack capacity`: committed GPU capacity against its use and its queue, with a forecast and advice."""

import datetime
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from infra.errors import Problem, UserError
from trainstack.cli.ledger import chosen_month
from trainstack.cli.output import format_option, print_json, print_lines, print_table
from trainstack.cli.slurm.reached import Ssh
from trainstack.cli.stack import Rehearse, Stack

if TYPE_CHECKING:  # help needs none of them
    from infra.stackspec.stack import StackSpec
    from trainstack.capacity.history import History
    from trainstack.capacity.report import CapacityReport
    from trainstack.cli.ledgers.sources import CapacitySource

_LEAST_MONTHS = 6
"""Months of the ledger that a forecast of the next ones may need, and months to show."""
Months = Annotated[
    int | None,
    typer.Option("--months", min=1, max=36, help="Months to show, with the current one. Default: 6."),
]
Month = Annotated[str, typer.Option("--month", help="Show only this month (UTC), such as 2026-10.")]
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
Account = Annotated[
    bool,
    typer.Option(
        "--account",
        help="Read size and times of reservations and blocks from the cloud, with its read-only rights; "
        "always so for managed jobs.",
    ),
]

_HELP = "Output format; csv: a line per month and class; json: all, with teams, prices, forecast and advice."
Form = Annotated[str, format_option(("text", "json", "csv"), _HELP)]


def capacity(
    *,
    stack: Stack = "",
    months: Months = None,
    month: Month = "",
    ahead: Ahead = 1,
    ledger: Ledger = None,
    account: Account = False,
    ssh: Ssh = "",
    form: Form = "text",
    rehearse: Rehearse = False,
) -> None:
    """Show committed, held and idle GPU-hours per class and month, a forecast with its error, and advice.

    A class is a machine type. Reads the cluster with your login (ledger and queue), of a manager of several
    clusters for all of them; of a Slurm system `sacct` from PATH or over ssh; of managed jobs the service,
    with training plans and reservations; or files of the ledger. Changes nothing and buys nothing. What
    cannot be read, such as the book of a team, is reported after the rest; the command then fails.
    """
    from infra import stackspec  # noqa: PLC0415 - help needs none of them
    from trainstack.capacity.history import history  # noqa: PLC0415
    from trainstack.capacity.pools import pools  # noqa: PLC0415
    from trainstack.capacity.report import report  # noqa: PLC0415
    from trainstack.cli.ledgers import sources  # noqa: PLC0415

    if problems := list(_conflicts(months, month, ledger, account=account, rehearse=rehearse)):
        raise UserError(problems)
    spec = stackspec.load_file(stack).spec
    of = _source(spec, _last(months or 1, month), ledger, ssh, rehearse=rehearse)
    described, denied = of.described, list(of.problems)
    if account and not described:
        described, more = sources.of_account(spec)
        denied += more
    past = history(of.found)
    if not past.months:
        fix = "Wait for its first minutes, or name files with --ledger."
        raise UserError([*denied, Problem("ledger", stack, "covers no time yet", fix, code="ledger-empty")])
    found = pools(spec, past.end.date(), described)
    shown = _shown(past, months or _LEAST_MONTHS, month)
    _show(report(spec, found, past, of.live, shown=shown, ahead=ahead, described=described), form)
    if denied:
        raise UserError(denied)


def _conflicts(
    months: int | None, month: str, ledger: Sequence[Path] | None, *, account: bool, rehearse: bool
) -> "Sequence[Problem]":
    code, found = "option-conflict", []
    if months is not None and month:
        rule, fix = "shows one month, and --months several", "Leave out --month or --months."
        found.append(Problem("--month", month, rule, fix, "--months", code=code))
    if ledger and rehearse:
        rule, fix = "reads files instead of a rehearsal", "Leave out --rehearse or --ledger."
        found.append(Problem("--ledger", None, rule, fix, "--rehearse", code=code))
    if account and rehearse:
        rule, fix = "reads the cloud, and a rehearsal has no reservations to describe", "Leave out one."
        found.append(Problem("--account", None, rule, fix, "--rehearse", code=code))
    return found


def _source(
    spec: "StackSpec", months: Sequence[str], ledger: Sequence[Path] | None, ssh: str, *, rehearse: bool
) -> "CapacitySource":
    """The source of the hours, by the options and the layout."""
    from infra.stackspec.slurm.layout import SlurmLayout  # noqa: PLC0415 - help needs none of them
    from trainstack.capacity.pools import managed_machines  # noqa: PLC0415
    from trainstack.cli.ledgers import sources  # noqa: PLC0415

    is_slurm = isinstance(spec.layout, SlurmLayout)
    if ledger:
        return sources.of_files(spec, ledger, f"trainstack {'slurm ' if is_slurm else ''}ledger")
    if is_slurm:
        return sources.of_slurm(spec, months, ssh, rehearse=rehearse)
    if ssh:
        rule, fix = "is for Slurm systems, and this stack has none", "Leave it out."
        raise UserError([Problem("--ssh", ssh, rule, fix, code="option-conflict")])
    if managed_machines(spec):
        return sources.of_managed(spec, months, rehearse=rehearse)
    return sources.of_cluster(spec, months, rehearse=rehearse)


def _last(months: int, month: str) -> list[str]:
    """The last months, the current one included: those to show, and as many as a forecast may need."""
    from trainstack.ledger.periods import following  # noqa: PLC0415

    now = f"{datetime.datetime.now(datetime.UTC):%Y-%m}"
    first = min(following(now, 1 - max(months, _LEAST_MONTHS)), chosen_month(month) if month else now)
    found = [first]
    while found[-1] < now:
        found.append(following(found[-1]))
    return found


def _shown(past: "History", months: int, month: str) -> list[str]:
    """The months to show. Raises UserError for a month that the ledger does not have."""
    if not month:
        return sorted(past.months)[-months:]
    if chosen_month(month) in past.months:
        return [month]
    rule = f"the ledger has no hours of it: it covers {min(past.months)} to {max(past.months)}"
    raise UserError([Problem("--month", month, rule, "Choose another month.", code="ledger-month-missing")])


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
    for line in tables.ending_lines(made):
        typer.echo(line)
    for head, rows, title, texts in (
        (tables.TERMS, tables.term_rows(made), "use of commitments", 4),
        (tables.HOURS, tables.hour_rows(made), "nodes by the hour, last four weeks", 2),
        (tables.PAST, tables.past_rows(made), "GPU-hours", 2),
        (tables.TEAMS, tables.team_rows(made), "teams", 3),
        (tables.PRICES, tables.price_rows(made), "prices per GPU-hour in USD", 2),
        (tables.AHEAD, tables.ahead_rows(made), "forecast", 2),
    ):
        if rows:
            typer.echo()
            print_table(head, rows, title=title, right=head[texts:])
    typer.echo()
    if made.live is None or made.live.demand is None:
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
