"""The place where commands of Slurm run for a stack: here, a host, or a rehearsal."""

import os
from typing import TYPE_CHECKING, Annotated

import typer

from infra.errors import Problem, UserError

if TYPE_CHECKING:  # help needs none of it
    from trainstack.slurm.commands import SlurmCommands

Ssh = Annotated[
    str,
    typer.Option(
        "--ssh",
        help="Run Slurm's commands on this host, as the configuration of ssh names it; default: here.",
        metavar="HOST",
    ),
]


def commands(stack: str, ssh: str, *, rehearse: bool) -> "SlurmCommands":
    """The place where commands of Slurm run. Raises UserError for a rehearsal without a running Slurm."""
    from trainstack.slurm.commands import SlurmCommands  # noqa: PLC0415 - help needs none of it

    if not rehearse:
        return SlurmCommands(ssh)
    if ssh:
        rule, fix = "names another host than that of the rehearsal", "Leave out one of the two."
        raise UserError([Problem("--ssh", ssh, rule, fix, "--rehearse", code="option-conflict")])
    return SlurmCommands(environment=rehearsed(stack))


def rehearsed(stack: str) -> dict[str, str]:
    """The environment of commands that reach it. Raises UserError where none runs."""
    from infra.outputs import cluster as outputs  # noqa: PLC0415 - help needs none of them
    from infra.outputs import slurm as slurm_outputs  # noqa: PLC0415
    from rehearsal.slurm import cluster, running  # noqa: PLC0415
    from trainstack.cli.operations.session import not_deployed, open_engine  # noqa: PLC0415

    engine, home = open_engine(stack, rehearse=True)
    found = {key: output.value for key, output in engine.outputs().items()}
    if outputs.KEY not in found:
        raise not_deployed(stack, rehearse=True)
    if home is None or not slurm_outputs.is_of_slurm(found):
        rule, fix = "is no Slurm system", "Name a stack of the profile large-slurm."
        raise UserError([Problem("stack", stack, rule, fix, code="stack-is-not-slurm")])
    name = slurm_outputs.parse(found).cluster_id
    if not cluster.answers(running.folder(home.home, name)):
        fix = f"Run `trainstack up -s {stack} --rehearse` again, which starts it."
        rule = "its Slurm does not run: it ended with the rehearsal's process"
        raise UserError([Problem("stack", stack, rule, fix, code="slurm-ended")])
    return {**os.environ, **running.environment(home.home, name)}
