"""`trainstack ledger`: GPU-hours and dollars of teams, from their books in the cluster."""

import datetime
import re
from collections.abc import Sequence
from typing import Annotated

import typer

from infra.errors import Problem, UserError
from trainstack.cli.access import deployed, kubeconfig_file, kubectl, namespace_of
from trainstack.cli.output import format_option, print_json, print_table
from trainstack.cli.stack import Stack

SCHEMA = "trainstack.ledger/1"

Month = Annotated[
    str, typer.Option("--month", help="A month (UTC) such as 2026-11; the current one by default.")
]
Team = Annotated[str, typer.Option("--team", "-t", help="A team of the stack; all teams by default.")]
_HELP = "Output format; focus: rows of FOCUS 1.2, for bills of several providers."
Form = Annotated[str, format_option(("text", "json", "csv", "focus"), _HELP)]


def ledger(stack: Stack, month: Month = "", team: Team = "", form: Form = "text") -> None:
    """Show the GPU-hours that teams held, what they cost, and which jobs waited or were exempt."""
    from trainstack.ledger import books, forms  # noqa: PLC0415 - help needs none of them

    wanted = month or f"{datetime.datetime.now(datetime.UTC):%Y-%m}"
    if not re.fullmatch(r"\d{4}-(0[1-9]|1[0-2])", wanted):
        fix = "Write year and month, such as 2026-11."
        raise UserError([Problem("--month", month, "must be a month", fix, code="month-invalid")])
    exported, _ = deployed(stack, rehearse=False)
    namespaces = {row.name: row.namespace for row in exported.teams}
    chosen = {team: namespace_of(exported, team)} if team else namespaces
    with kubeconfig_file(exported, team) as config:

        def ask(arguments: Sequence[str]) -> tuple[int, str, str]:
            done = kubectl(config, arguments, capture=True)
            return done.returncode, done.stdout, done.stderr

        found = [books.read(ask, name, namespace, wanted) for name, namespace in chosen.items()]
    if form == "json":
        document = {"stack": exported.stack, "month": wanted, "teams": forms.documents(found)}
        print_json(SCHEMA, document)
    elif form == "text":
        print_table(forms.HEAD, forms.rows(found), right=forms.HEAD[3:])
        if notes := forms.notes(found, wanted):
            typer.echo("\n" + "\n".join(notes))
    else:
        typer.echo(forms.CSV_FORMS[form](found, wanted))
