"""`trainstack queue`: running and waiting jobs of a stack, with reasons and estimates, and its rules."""

from typing import TYPE_CHECKING

import typer

from trainstack.cli.output import Format, FormatOption, print_json, print_lines, print_table
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
from trainstack.cli.stack import Rehearse, Stack

if TYPE_CHECKING:  # help needs none of it
    from trainstack.queues.report import Report

app = typer.Typer(help="Show running and waiting jobs of a cluster, with reasons and estimated starts.")


@app.callback(invoke_without_command=True)
def queue(
    called: typer.Context,
    *,
    stack: OfStack = None,
    team: OfTeam = "",
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    namespace: Namespace = "",
    everyone: Everyone = False,
    form: FormatOption = Format.TEXT,
    rehearse: Rehearse = False,
) -> None:
    """Show running jobs, waiting jobs with place, reason and estimated start, and free capacity of pools.

    Reads the cluster with your login, and notes what it denies. Members need only a kubeconfig. Times are in
    UTC.
    """
    if called.invoked_subcommand is not None:
        return
    from trainstack.queues import report as reports  # noqa: PLC0415 - help needs none of them
    from trainstack.queues.reading import read  # noqa: PLC0415

    login = ClusterLogin(kubeconfig, context, namespace, everyone)
    with scope(stack, team, login, rehearse=rehearse) as found_in:
        state = read(found_in.cluster, found_in.only)
    found = reports.report(state, found_in.name, found_in.teams, found_in.only)
    show(found, form)


def show(found: "Report", form: Format) -> None:
    """Print a report on a queue."""
    from trainstack.queues import report as reports  # noqa: PLC0415 - help needs none of them
    from trainstack.queues import table  # noqa: PLC0415

    if form is Format.JSON:
        print_json(reports.SCHEMA, reports.document(found))
        return
    typer.echo(f"{found.stack} at {found.taken:%Y-%m-%d %H:%M} UTC")
    for title, head, rows in table.tables(found):
        typer.echo()
        print_table(head, rows, title=title)
    print_lines(f"note: {note}" for note in found.notes)


@app.command()
def rules(stack: Stack = "", form: FormatOption = Format.TEXT) -> None:
    """Show the rules of the queues in plain language, from the stack file alone."""
    from infra import stackspec  # noqa: PLC0415
    from stacks.queues import queue_objects  # noqa: PLC0415
    from trainstack.queues.rules import sections  # noqa: PLC0415

    spec = stackspec.load_file(stack).spec
    found = sections(queue_objects(spec), {team.name for team in spec.teams})
    if form is Format.JSON:
        rows = [{"title": title, "rules": sentences} for title, sentences in found]
        print_json("trainstack.queue-rules/1", {"stack": stack, "sections": rows})
        return
    for title, sentences in found:
        typer.echo("\n".join([f"{title}:", *(f"  - {sentence}" for sentence in sentences)]))
