"""`trainstack queue`: what runs and waits in a stack, why and until when, and by which rules."""

import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from infra.errors import Problem, UserError
from trainstack.cli.access import deployed, kubeconfig_of, namespace_of
from trainstack.cli.stack import Rehearse, Stack

if TYPE_CHECKING:  # help comes without them
    from infra.outputs.cluster import StackOutputs
    from rehearsal.client import Rehearsal


class Format(StrEnum):
    """How the queue is shown."""

    TABLE = "table"
    JSON = "json"


app = typer.Typer(help="What runs and what waits in a stack, why and until when.")

OfStack = Annotated[
    str | None, typer.Option("--stack", "-s", help="The stack: a file stacks/config/Pulumi.<stack>.yaml.")
]
Team = Annotated[
    str, typer.Option("--team", "-t", help="Only the jobs of a team; its members may see no others.")
]
As = Annotated[Format, typer.Option("--format", "-f", help="For people, or for programs.")]


@app.callback(invoke_without_command=True)
def queue(
    context: typer.Context,
    stack: OfStack = None,
    team: Team = "",
    form: As = Format.TABLE,
    rehearse: Rehearse = False,
) -> None:
    """Show what runs, what waits with its place, when it starts and why it waits, and what pools have left.

    Asks the cluster with your own login; what you may not see is said. Times are in UTC.
    """
    if context.invoked_subcommand is not None:
        return
    if stack is None:
        raise UserError([Problem("--stack", None, "names the stack", "Add -s NAME.")])
    from infra.clouds.kubectl import connected  # noqa: PLC0415 - help comes without them
    from trainstack.queues.reading import read  # noqa: PLC0415
    from trainstack.queues.report import document, report  # noqa: PLC0415
    from trainstack.queues.table import lines  # noqa: PLC0415

    exported, rehearsal = deployed(stack, rehearse=rehearse)
    only = namespace_of(exported, team) if team else None
    with _kubeconfig(exported, rehearsal, team) as config, connected(None, config) as cluster:
        state = read(cluster, only)
    found = report(state, exported.stack, {one.namespace: one.name for one in exported.teams}, only)
    if form is Format.JSON:
        typer.echo(json.dumps(document(found), indent=2))
    else:
        typer.echo("\n".join(lines(found)))


@app.command()
def rules(stack: Stack) -> None:
    """Say by which rules jobs wait, in plain language, from the stack file; no cluster is asked."""
    from infra import stackspec  # noqa: PLC0415
    from stacks.queues import queue_objects  # noqa: PLC0415
    from trainstack.queues.rules import lines  # noqa: PLC0415

    spec = stackspec.load_file(stack).spec
    typer.echo("\n".join(lines(queue_objects(spec), {team.name for team in spec.teams})))


@contextmanager
def _kubeconfig(exported: "StackOutputs", rehearsal: "Rehearsal | None", team: str) -> Iterator[Path]:
    """The stack's kubeconfig, with which people log in to the cloud; of a rehearsal, its control plane's.

    Raises UserError where a rehearsal has no API server.
    """
    if rehearsal is not None:
        yield rehearsed_kubeconfig(rehearsal, exported.stack)
        return
    with tempfile.TemporaryDirectory(prefix="trainstack-") as folder:
        config = Path(folder, "kubeconfig")
        config.write_text(kubeconfig_of(exported, team))
        yield config


def rehearsed_kubeconfig(rehearsal: "Rehearsal", stack: str) -> Path:
    """Where a rehearsed cluster is a real one, its administrator's. Raises UserError for the emulation."""
    from rehearsal.cluster_kind import real_cluster  # noqa: PLC0415
    from rehearsal.realcluster.real_provider import admin_kubeconfig  # noqa: PLC0415

    if not real_cluster(rehearsal.home):
        rule = "the emulated Kubernetes has objects and no queue that moves"
        fix = f"Rehearse with a real control plane: trainstack up -s {stack} --rehearse --cluster real."
        raise UserError([Problem("--rehearse", stack, rule, fix)])
    return admin_kubeconfig(rehearsal.home)
