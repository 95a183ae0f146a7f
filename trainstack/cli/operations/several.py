"""Operations on all stacks of a large stack: its clusters in parallel, its manager after or before."""

import os
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import typer
from click import get_current_context

from infra.errors import Problem, UserError
from infra.exit_codes import ExitCode
from infra.naming import cluster_stack
from infra.stackspec import StackSpec
from infra.stackspec.layouts import LargeLayout
from infra.stackspec.load import require_file
from trainstack.cli.output import require_terminal
from trainstack.fleet.child import Child, Ended

_PASSED = (
    "rehearse", "fault", "faults", "cluster", "provider", "verbose", "now", "policy_pack",
    "policy_pack_config",
)  # fmt: skip
AT_ONCE = 4
"""Stacks of clusters that change at the same time."""


def stacks_of(spec: StackSpec | None) -> list[str]:
    """The stacks of the clusters of a large stack, else none. Raises UserError without their files."""
    if spec is None or not isinstance(spec.layout, LargeLayout):
        return []
    found, problems = [], list[Problem]()
    for one in spec.layout.clusters:
        stack = cluster_stack(spec.name, one.name)
        try:
            require_file(stack)
        except UserError:
            rule = f"cluster {one.name} has no file Pulumi.{stack}.yaml"
            own = f"`trainstack:of: {spec.name}` and `trainstack:cluster: {one.name}`"
            fix = f"Write it, with {own} in `config`."
            problems.append(Problem("--stack", stack, rule, fix, code="cluster-file-missing"))
        found.append(stack)
    if problems:
        raise UserError(problems)
    return found


def before_manager(operation: str, spec: StackSpec, *, confirmed: bool) -> bool:
    """Run an operation on the stacks of all clusters; returns whether it is confirmed for the manager.

    Options are those of the present command. Raises typer.Exit where one fails: the manager then is not
    changed, as it connects to clusters that are as its spec says.
    """
    stacks = asked(operation, spec, confirmed=confirmed)
    failed = _run(operation, stacks, words(get_current_context().params)) if stacks else []
    if failed:
        typer.echo(f"{spec.name} was not changed, as {', '.join(failed)} failed.", err=True)
        raise typer.Exit(ExitCode.FAILED)
    return bool(stacks)


def after_manager(operation: str, stacks: Sequence[str]) -> None:
    """Run an operation on the stacks of all clusters, each whatever happens to others.

    Raises typer.Exit where one fails, such as one that cannot be reached, by name.
    """
    failed = _run(operation, stacks, words(get_current_context().params)) if stacks else []
    if failed:
        typer.echo(f"Not done: {', '.join(failed)}. The others are; repeat the command.", err=True)
        raise typer.Exit(ExitCode.FAILED)


def asked(operation: str, spec: StackSpec | None, *, confirmed: bool) -> list[str]:
    """The stacks of the clusters, once all are confirmed together. Raises typer.Abort."""
    stacks = stacks_of(spec)
    if stacks and spec and not confirmed:
        require_terminal()
        typer.confirm(f"Run `{operation}` on {', '.join([*stacks, spec.name])}?", abort=True)
    return stacks


def words(given: Mapping[str, object]) -> list[str]:
    """Options for the commands of the other stacks, which ask no question."""
    found = ["--yes"]
    for key in _PASSED:
        value, name = given.get(key), f"--{key.replace('_', '-')}"
        for one in value if isinstance(value, list) else [value]:
            if one is True:
                found.append(name)
            elif one not in (None, False):
                found += [name, str(getattr(one, "value", one))]
    return found


def _run(operation: str, stacks: Sequence[str], options: Sequence[str]) -> list[str]:
    """Run a command for each stack; returns the stacks where it failed."""
    variables = dict(os.environ)
    failed = []
    with tempfile.TemporaryDirectory(prefix="trainstack-") as logs, ThreadPoolExecutor(AT_ONCE) as pool:

        def one(stack: str) -> Ended:
            folder = Path(logs, stack)
            folder.mkdir()
            return _child(operation, stack, options, variables, folder).run(None)

        for stack, ended in zip(stacks, pool.map(one, stacks), strict=True):
            typer.echo(ended.output.rstrip())
            if ended.code:
                typer.echo(ended.log.rstrip(), err=True)
                failed.append(stack)
    return failed


def _child(
    operation: str, stack: str, options: Sequence[str], variables: Mapping[str, str], logs: Path
) -> Child:
    return Child([operation, "-s", stack, *options], Path.cwd(), variables, logs)
