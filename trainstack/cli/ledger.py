"""`trainstack ledger`: GPU-hours and dollars of teams, from their books in the cluster."""

import datetime
import re
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

import typer

from infra.errors import Problem, UserError
from trainstack.cli.access import deployed, kubeconfig_of, kubectl
from trainstack.cli.stack import Stack

Month = Annotated[
    str, typer.Option("--month", help="A month (UTC) such as 2026-11; without it, the one that goes on.")
]
Team = Annotated[str, typer.Option("--team", "-t", help="A team of the stack; without it, all of them.")]
Form = Annotated[
    Literal["table", "json", "csv", "focus"],
    typer.Option("--format", help="focus: rows of FOCUS 1.2, for bills of several places."),
]


def ledger(stack: Stack, month: Month = "", team: Team = "", form: Form = "table") -> None:
    """Show the GPU-hours that jobs of teams held, what they cost, and who waited or was exempt."""
    from trainstack.ledger import books, forms  # noqa: PLC0415 - help comes without them

    wanted = month or f"{datetime.datetime.now(datetime.UTC):%Y-%m}"
    if not re.fullmatch(r"\d{4}-(0[1-9]|1[0-2])", wanted):
        raise UserError([Problem("--month", month, "is no month", "Write year and month, such as 2026-11.")])
    exported, _ = deployed(stack, rehearse=False)
    namespaces = {row.name: row.namespace for row in exported.teams}
    if team and team not in namespaces:
        fix = f"Teams are {', '.join(sorted(namespaces))}."
        raise UserError([Problem("--team", team, "is no team of the stack", fix)])
    with tempfile.TemporaryDirectory(prefix="trainstack-") as folder:
        config = Path(folder, "kubeconfig")
        config.write_text(kubeconfig_of(exported, team))

        def ask(arguments: Sequence[str]) -> tuple[int, str, str]:
            done = kubectl(config, arguments, capture=True)
            return done.returncode, done.stdout, done.stderr

        chosen = {team: namespaces[team]} if team else namespaces
        found = [books.read(ask, name, namespace, wanted) for name, namespace in chosen.items()]
    typer.echo(forms.FORMS[form](found, wanted))
