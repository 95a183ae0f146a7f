"""`trainstack ledger`: GPU-hours and dollars of teams, from their books in the cluster."""

import datetime
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from infra.errors import Problem, UserError
from trainstack.cli.output import format_option, print_json, print_lines, print_table
from trainstack.cli.scope import (
    ClusterLogin,
    Context,
    Everyone,
    Kubeconfig,
    Namespace,
    OfStack,
    OfTeam,
    scope,
)
from trainstack.cli.stack import Rehearse

if TYPE_CHECKING:
    from trainstack.ledger.books import Month

SCHEMA = "trainstack.ledger/1"

MonthOption = Annotated[
    str, typer.Option("--month", help="A month (UTC) such as 2026-11; the current one by default.")
]
_HELP = "Output format; focus: rows of FOCUS 1.2, for bills of several providers."
Form = Annotated[str, format_option(("text", "json", "csv", "focus"), _HELP)]


def ledger(
    *,
    stack: OfStack = None,
    month: MonthOption = "",
    team: OfTeam = "",
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    namespace: Namespace = "",
    everyone: Everyone = False,
    form: Form = "text",
    rehearse: Rehearse = False,
) -> None:
    """Show the GPU-hours that teams held, what they cost, and which jobs waited or were exempt.

    Reads the cluster with your login. Members need only a kubeconfig, and see their own team. Teams whose
    book cannot be read are reported after the others; the command then fails.
    """
    from trainstack.ledger import books  # noqa: PLC0415 - help needs none of them

    wanted = chosen_month(month)
    found: list[books.Month] = []
    problems: list[Problem] = []
    login = ClusterLogin(kubeconfig, context, namespace, everyone)
    with scope(stack, team, login, rehearse=rehearse) as of:
        for space, name in of.teams.items():
            if of.only in (None, space):
                try:
                    found.append(books.read(of.cluster.get, name, space, wanted))
                except UserError as error:
                    problems += error.problems
    if not found:
        raise UserError(problems)
    show(found, of.name, wanted, form)
    if problems:
        raise UserError(problems)


def chosen_month(month: str, since: str = "0001") -> str:
    """The month of an option, by default the current one. Raises UserError for none, or before `since`."""
    wanted = month or f"{datetime.datetime.now(datetime.UTC):%Y-%m}"
    if not re.fullmatch(r"[0-9]{4}-(0[1-9]|1[0-2])", wanted) or wanted < since:
        fix = "Write year and month, such as 2026-11."
        raise UserError([Problem("--month", month, "must be a month", fix, code="month-invalid")])
    return wanted


def show(found: "Sequence[Month]", stack: str, month: str, form: Form) -> None:
    """Print the month of each team in a form."""
    from trainstack.ledger import forms  # noqa: PLC0415 - help needs none of it

    if form == "json":
        print_json(SCHEMA, {"stack": stack, "month": month, "teams": forms.documents(found)})
    elif form == "text":
        if rows := forms.rows(found):
            print_table(forms.HEAD, rows, right=forms.HEAD[3:])
        else:
            print_lines([f"No GPU-hours in {month}."])
        if notes := forms.notes(found, month):
            print_lines(["", *notes])
    else:
        typer.echo(forms.CSV_FORMS[form](found, month))
