"""`trainstack queue`: running and waiting jobs of a stack, with reasons and estimates, and its rules."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from infra.errors import Problem, UserError
from trainstack.cli.access import deployed, kubeconfig_file, namespace_of
from trainstack.cli.output import Format, FormatOption, print_json, print_table
from trainstack.cli.stack import Rehearse, Stack

if TYPE_CHECKING:  # help needs none of them
    from infra.outputs.cluster import StackOutputs
    from rehearsal.client import Rehearsal


app = typer.Typer(help="Show running and waiting jobs of a stack, with reasons and estimated starts.")

OfStack = Annotated[
    str | None, typer.Option("--stack", "-s", help="The stack: a file stacks/config/Pulumi.<stack>.yaml.")
]
Team = Annotated[
    str, typer.Option("--team", "-t", help="Only jobs of this team; its members are denied others.")
]


@app.callback(invoke_without_command=True)
def queue(
    context: typer.Context,
    stack: OfStack = None,
    team: Team = "",
    form: FormatOption = Format.TEXT,
    rehearse: Rehearse = False,
) -> None:
    """Show running jobs, waiting jobs with place, reason and estimated start, and free capacity of pools.

    Reads the cluster with your login, and notes what it denies. Times are in UTC.
    """
    if context.invoked_subcommand is not None:
        return
    if stack is None:
        raise UserError([Problem("--stack", None, "is required", "Add -s NAME.", code="option-missing")])
    from infra.clouds.kubectl import connected  # noqa: PLC0415 - help needs none of them
    from trainstack.queues import report as reports  # noqa: PLC0415
    from trainstack.queues import table  # noqa: PLC0415
    from trainstack.queues.reading import read  # noqa: PLC0415

    exported, rehearsal = deployed(stack, rehearse=rehearse)
    only = namespace_of(exported, team) if team else None
    with _kubeconfig(exported, rehearsal, team) as config, connected(None, config) as cluster:
        state = read(cluster, only)
    found = reports.report(state, exported.stack, {one.namespace: one.name for one in exported.teams}, only)
    if form is Format.JSON:
        print_json(reports.SCHEMA, reports.document(found))
        return
    typer.echo(f"{found.stack} at {found.taken:%Y-%m-%d %H:%M} UTC")
    for title, head, rows in table.tables(found):
        typer.echo()
        print_table(head, rows, title=title)
    for note in found.notes:
        typer.echo(f"note: {note}")


@app.command()
def rules(stack: Stack, form: FormatOption = Format.TEXT) -> None:
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


@contextmanager
def _kubeconfig(exported: "StackOutputs", rehearsal: "Rehearsal | None", team: str) -> Iterator[Path]:
    """The kubeconfig of the stack, or of the control plane of its rehearsal.

    Raises UserError where a rehearsal has no API server.
    """
    if rehearsal is not None:
        yield rehearsed_kubeconfig(rehearsal, exported.stack)
        return
    with kubeconfig_file(exported, team) as config:
        yield config


def rehearsed_kubeconfig(rehearsal: "Rehearsal", stack: str) -> Path:
    """The kubeconfig of the administrator. Raises UserError where the cluster is only emulated."""
    from rehearsal.cluster_kind import real_cluster  # noqa: PLC0415
    from rehearsal.realcluster.real_provider import admin_kubeconfig  # noqa: PLC0415

    if not real_cluster(rehearsal.home):
        rule = "emulated Kubernetes does not run Kueue"
        fix = f"Rehearse with a real control plane: trainstack up -s {stack} --rehearse --cluster real."
        raise UserError([Problem("--rehearse", stack, rule, fix, code="queue-needs-control-plane")])
    return admin_kubeconfig(rehearsal.home)
