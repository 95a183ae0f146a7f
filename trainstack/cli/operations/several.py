"""Operations on all stacks of a large stack: its clusters in parallel, its manager after or before."""

import os
import signal
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import typer

from infra.errors import Problem, UserError
from infra.exit_codes import ExitCode
from infra.naming import cluster_stack
from infra.stackspec import StackSpec
from infra.stackspec.clusters import large
from infra.stackspec.load import require_file
from trainstack.cli.output import require_terminal
from trainstack.fleet.child import Child, Ended

_PASSED = (
    "yes", "rehearse", "fault", "faults", "cluster", "provider", "verbose", "now", "policy_pack",
    "policy_pack_config",
)  # fmt: skip
SHOWN_EVERY_S = 15.0
"""Seconds between two lines about stacks that change."""
AT_ONCE = 4
"""Stacks of clusters that change at the same time."""
REHEARSED_AT_ONCE = max(1, min(AT_ONCE, (os.cpu_count() or 1) // 4))
"""The same for `up` in a rehearsal: validations that share processors are undecided, and run again."""


def stacks_of(spec: StackSpec | None) -> list[str]:
    """The stacks of the clusters of a large stack, else none. Raises UserError without their files."""
    if spec is None:
        return []
    found, problems = list[str](), list[Problem]()
    for one in large.clusters_of(spec.layout):
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


@dataclass(frozen=True)
class Clusters:
    """The stacks of the clusters of a large stack, for an operation; those of any other stack are none."""

    operation: str
    stacks: Sequence[str]
    manager: str
    options: Sequence[str]
    """Options for the commands of the stacks, which ask no question."""
    at_once: int = AT_ONCE

    def before_manager(self, *, to_stderr: bool) -> None:
        """Run the operation on all of them, each whatever happens to others.

        Raises typer.Exit where one fails: the manager then is not changed, as it connects to clusters that
        are as its spec says.
        """
        codes = self.run(to_stderr=to_stderr)
        if failed := _failed(codes):
            typer.echo(f"{self.manager} was not changed: {failed}. Repeat the command.", err=True)
            raise typer.Exit(_code(codes))

    def after_manager(self) -> None:
        """Run the operation on all of them, each whatever happens to others.

        Raises typer.Exit where one fails, such as one that cannot be reached, by name.
        """
        codes = self.run()
        if failed := _failed(codes):
            typer.echo(f"Not done: {failed}. Repeat the command.", err=True)
            raise typer.Exit(_code(codes))

    def run(self, *, to_stderr: bool = False) -> Mapping[str, int]:
        """Run the operation on all of them and print their output; returns the exit code of each.

        An interruption reaches those that run, and no other one is started. `to_stderr`: standard output has
        the document of the manager alone.
        """
        if not self.stacks:
            return {}
        typer.echo(f"{self.operation} of {', '.join(self.stacks)} ...", err=True)
        codes = dict.fromkeys(self.stacks, int(ExitCode.INTERRUPTED))
        stopped = threading.Event()
        with tempfile.TemporaryDirectory(prefix="trainstack-") as logs:
            children = {stack: self._child(stack, Path(logs, stack)) for stack in self.stacks}

            def interrupt(*_: object) -> None:
                stopped.set()
                for one in children.values():  # not here: it may hold the lock that the signal broke into
                    threading.Thread(target=one.interrupt).start()

            with ThreadPoolExecutor(self.at_once) as pool, _on_interruption(interrupt):
                running = {
                    pool.submit(lambda one: None if stopped.is_set() else one.run(None), child): stack
                    for stack, child in children.items()
                }
                for done in _each(running, children):
                    ended, stack = done.result(), running[done]
                    if ended is None:
                        continue
                    codes[stack] = ExitCode.INTERRUPTED if ended.interrupted else ended.code
                    typer.echo(f"\n{stack}\n{ended.output.rstrip()}", err=to_stderr)
                    if ended.code:
                        typer.echo(ended.log.rstrip(), err=True)
        return codes

    def _child(self, stack: str, logs: Path) -> Child:
        logs.mkdir()
        return Child([self.operation, "-s", stack, *self.options], Path.cwd(), dict(os.environ), logs)


def _each(
    running: Mapping[Future[Ended | None], str], children: Mapping[str, Child]
) -> Iterator[Future[Ended | None]]:
    """The commands as they end; meanwhile the last line of each that runs is shown from time to time."""
    left = set(running)
    while left:
        done, left = wait(left, SHOWN_EVERY_S, FIRST_COMPLETED)
        yield from done
        for one in sorted(left, key=running.__getitem__) if not done else ():
            if said := children[running[one]].said():
                typer.echo(f"  {running[one]}: {said.strip()}", err=True)


def clusters_of(
    spec: StackSpec | None, operation: str, given: Mapping[str, object], left: Sequence[str] = ()
) -> Clusters:
    """The stacks for an operation, once all are confirmed together. Raises UserError and typer.Abort.

    `given`: options of the present command; without `yes`, an operation is not to be confirmed. `left`:
    stacks of clusters that were in the large stack before.
    """
    stacks = [*stacks_of(spec), *left]
    name = spec.name if spec else ""
    if stacks and given.get("yes") is False:
        require_terminal()
        typer.confirm(f"Run `{operation}` on {', '.join([*stacks, name])}?", abort=True)
    confirmed = {**given, "yes": True} if "yes" in given else given
    at_once = REHEARSED_AT_ONCE if operation == "up" and given.get("rehearse") else AT_ONCE
    return Clusters(operation, stacks, name, words(confirmed), at_once)


def words(given: Mapping[str, object]) -> list[str]:
    """The options for the commands of the other stacks, of those of a command."""
    found = []
    for key in _PASSED:
        value, name = given.get(key), f"--{key.replace('_', '-')}"
        for one in value if isinstance(value, list | tuple) else [value]:
            if one is True:
                found.append(name)
            elif one not in (None, False):
                found += [name, str(getattr(one, "value", one))]
    return found


def _failed(codes: Mapping[str, int]) -> str:
    """The stacks that are not done, with the reason."""
    happened = {stack: "was interrupted" for stack, code in codes.items() if code == ExitCode.INTERRUPTED}
    return ", ".join(f"{one} {happened.get(one, 'failed')}" for one, code in codes.items() if code)


def _code(codes: Mapping[str, int]) -> int:
    """The exit code of all: of violations only where nothing else failed."""
    found = {code for code in codes.values() if code}
    if ExitCode.INTERRUPTED in found:
        return ExitCode.INTERRUPTED
    return ExitCode.VIOLATIONS if found == {ExitCode.VIOLATIONS} else ExitCode.FAILED


@contextmanager
def _on_interruption(handler: Callable[..., None]) -> Iterator[None]:
    before = {number: signal.signal(number, handler) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, old in before.items():
            signal.signal(number, old)
