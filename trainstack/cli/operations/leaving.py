"""Clusters that leave a large stack: those that its file names no more, and those that it still has."""

import contextlib
from collections.abc import Mapping
from typing import Any

import typer

from infra.engine.stack import EngineStack
from infra.errors import Problem, UserError
from infra.outputs import cluster as outputs
from infra.outputs import manager as manager_outputs
from infra.stackspec import StackSpec
from infra.stackspec.load import members_left
from trainstack.cli.operations.session import Session, open_engine


def refuse_of_manager(session: Session) -> None:
    """Raise UserError for a cluster to which a deployed manager sends jobs.

    Its jobs would count as lost, and start elsewhere minutes later; the manager could not be changed
    meanwhile. The state says it, so an old stack file and one without the cluster make no difference.
    """
    place = _record(session.engine).get("worker")
    if not place:
        return
    of, cluster = str(place["of"]), str(place["cluster"])
    found: Mapping[str, Any] = {}
    with contextlib.suppress(UserError):  # no stack, or no file of that name
        found = _record(open_engine(of, rehearse=session.rehearsal is not None)[0])
    if found.get("schema_version") == manager_outputs.SCHEMA and cluster in found["clusters"]:
        flag = " --rehearse" if session.rehearsal else ""
        rule = f"its manager {of} sends jobs to it"
        fix = (
            f"Remove {cluster} from layout.clusters of {of}, run `trainstack up -s {of}{flag}`, which moves "
            f"its jobs, and repeat this command. `trainstack destroy -s {of}{flag}` ends all."
        )
        raise UserError([Problem("--stack", session.name, rule, fix, code="cluster-of-manager")])


def left_of(spec: StackSpec | None, *, rehearse: bool) -> list[str]:
    """Stacks of clusters that were in this large stack, and whose resources exist."""
    found = []
    for stack in members_left(spec) if spec else ():
        with contextlib.suppress(UserError):  # it was never deployed
            if any(one.get("custom") for one in open_engine(stack, rehearse=rehearse)[0].resources()):
                found.append(stack)
    return found


def name_left(spec: StackSpec | None, *, rehearse: bool) -> None:
    """Print the clusters that get no jobs of their manager any more, and cost."""
    flag = " --rehearse" if rehearse else ""
    for stack in left_of(spec, rehearse=rehearse):
        end = f"trainstack destroy -s {stack}{flag}"
        typer.echo(f"  {stack} is no cluster of this stack any more, and still runs: {end}", err=True)


def _record(engine: EngineStack) -> dict[str, Any]:
    exported = engine.outputs()
    return dict(exported[outputs.KEY].value or {}) if outputs.KEY in exported else {}
