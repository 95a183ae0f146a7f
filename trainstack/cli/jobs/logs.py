"""`trainstack logs`: the logs of a job, also of one that a manager sent to another cluster."""

from typing import TYPE_CHECKING, Annotated

import typer

from infra.errors import Problem, UserError
from trainstack.cli.scope import (
    ClusterLogin,
    Context,
    Kubeconfig,
    Namespace,
    OfStack,
    OfTeam,
    Scope,
    scope,
)
from trainstack.cli.stack import Rehearse

if TYPE_CHECKING:  # help needs none of it
    from trainstack.queues.pod_logs import RunningAt

Name = Annotated[str, typer.Argument(metavar="JOB", help="Name of the job, as in `trainstack queue`.")]
Tail = Annotated[int, typer.Option("--tail", min=1, help="Lines from the end of each container's log.")]


def logs(
    job: Name,
    *,
    stack: OfStack = None,
    team: OfTeam = "",
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    namespace: Namespace = "",
    tail: Tail = 100,
    rehearse: Rehearse = False,
) -> None:
    """Show the last lines of each container of a job that has not ended, with its pod, in the order of ranks.

    With the stack of a manager of several clusters, the job is found on the cluster that runs it. Reads with
    your login.
    """
    from trainstack.queues import pod_logs  # noqa: PLC0415 - help needs none of it

    login = ClusterLogin(kubeconfig, context, namespace)
    with scope(stack, team, login, rehearse=rehearse) as at:
        found = pod_logs.place(at.cluster, job, [at.only] if at.only else at.teams)
        if not found.cluster:
            _print(at, found, tail)
            return
        on = at.clusters.get(found.cluster)
    if on is None:
        rule = f"runs on cluster {found.cluster}, which this login does not reach"
        fix = "Name the stack of the manager with -s, or that cluster's kubeconfig with --kubeconfig."
        raise UserError([Problem("JOB", job, rule, fix, code="job-on-another-cluster")])
    typer.echo(f"{job} runs on cluster {found.cluster}", err=True)
    with scope(on, team, ClusterLogin(), rehearse=rehearse) as at:
        _print(at, found, tail)


def _print(at: Scope, job: "RunningAt", tail: int) -> None:
    from trainstack.queues import pod_logs  # noqa: PLC0415

    for line in pod_logs.lines(at.cluster, job, tail):
        typer.echo(line)
