"""Lock of a stack for one operation, and recovery from a killed one."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from infra.engine import recovery
from infra.engine.console import new_console
from infra.errors import Problem, UserError
from rehearsal.client import Rehearsal


@contextmanager
def alone(clouds: Rehearsal, project: str, stack: str) -> Iterator[None]:
    """Hold the stack for one operation; the kernel frees it with this process.

    Raises UserError when another command works on the stack, be it `trainstack` or `pulumi`.
    """
    folder = clouds.home / "locks"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / f"{project}.{stack}").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise _busy(stack, "another trainstack command") from None
        for line in recover(clouds, project, stack):
            new_console().print(f"  {line}", markup=False, highlight=False, soft_wrap=True)
        yield


def recover(clouds: Rehearsal, project: str, stack: str) -> list[str]:
    """Repair what a killed engine left of a stack; returns the steps taken. Raises UserError if one runs."""
    backend = clouds.home / "state"
    try:
        with recovery.locked(backend, project, stack) as stale:
            done = [
                f"recovered: removed the lock of process {lock.pid} of {lock.since:%Y-%m-%d %H:%M:%S}, "
                "which is gone"
                for lock in stale
            ]
            return done + _settle(clouds, backend, project, stack)
    except recovery.LockedError as error:
        raise _busy(stack, str(error)) from None


def _settle(clouds: Rehearsal, backend: Path, project: str, stack: str) -> list[str]:
    """Reconcile the state of the engine with that of the clouds; returns the steps taken."""
    done = []
    if recovery.restore(backend, project, stack):
        done.append("recovered: the state file was half written, the engine's backup is used instead")
    pending = recovery.pending(backend, project, stack)
    if not pending:
        return done
    creates = [urn for operation, urn in pending if operation == "creating"]
    taken_back = clouds.recover(creates)  # without creates, too: a deletion may still be in progress
    recovery.settle(backend, project, stack)
    for operation, urn in pending:
        done.append(f"recovered: {urn.rsplit('::', 1)[-1]} was {operation} when the last run was killed")
    if taken_back:
        done.append(f"recovered: deleted what those creates had made: {', '.join(taken_back)}")
    return done


def _busy(stack: str, holder: str) -> UserError:
    rule = f"is being worked on by {holder}"
    fix = "Wait for it, or interrupt it with Ctrl-C."
    return UserError([Problem("--stack", stack, rule, fix, code="stack-is-busy")])
