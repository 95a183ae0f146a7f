"""Recovery of a file backend after a killed engine: its lock, and operations of unknown outcome."""

import contextlib
import datetime
import json
import os
import socket
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

# The clock of a process start and that of a lock's timestamp may differ by this much.
_CLOCK_S = 2.0


@dataclass(frozen=True)
class Lock:
    """A lock of the engine on a stack, from its file."""

    path: Path
    pid: int
    host: str
    since: datetime.datetime

    @property
    def is_stale(self) -> bool:
        """Return whether its process has ended: it ran on this host, and its pid is unused or reused."""
        if not self.host:  # partially written: its writer was killed, or is writing
            return time.time() - self.since.timestamp() > _CLOCK_S
        if self.host != socket.gethostname():
            return False
        try:
            started = psutil.Process(self.pid).create_time()
        except psutil.NoSuchProcess:
            return True
        except psutil.AccessDenied:
            return False
        return started > self.since.timestamp() + _CLOCK_S


class LockedError(Exception):
    """Another process holds the lock of the stack."""

    def __init__(self, lock: Lock) -> None:
        self.lock = lock
        super().__init__(f"process {lock.pid} on {lock.host} since {lock.since:%H:%M:%S}")


def locks(backend: Path, project: str, stack: str) -> list[Lock]:
    """The locks on a stack of a file backend in the folder `backend`; partially written ones have no host."""
    found = []
    for path in sorted((backend / ".pulumi" / "locks").glob(f"**/{project}/{stack}/*.json")):
        with contextlib.suppress(FileNotFoundError):  # released meanwhile
            found.append(_read(path))
    return found


def _read(path: Path) -> Lock:
    written = datetime.datetime.fromtimestamp(path.stat().st_mtime, datetime.UTC)
    try:
        content = json.loads(path.read_text())
        since = datetime.datetime.fromisoformat(str(content["timestamp"]))
        return Lock(path, int(content["pid"]), str(content["hostname"]), since)
    except (ValueError, KeyError):
        return Lock(path, 0, "", written)


@contextmanager
def locked(backend: Path, project: str, stack: str) -> Iterator[list[Lock]]:
    """Hold the engine's own lock on a stack, so that no engine starts; yield the removed stale locks.

    As in the engine, the lock is written first and others are listed then: of two concurrent processes, at
    most one continues. Raises LockedError when another process holds the stack.
    """
    folder = backend / ".pulumi" / "locks" / "organization" / project / stack
    folder.mkdir(parents=True, exist_ok=True)
    now = datetime.datetime.now(datetime.UTC)
    own = Lock(folder / f"{uuid.uuid4()}.json", os.getpid(), socket.gethostname(), now)
    content = {"pid": own.pid, "username": "", "hostname": own.host, "timestamp": now.isoformat()}
    own.path.write_text(json.dumps(content))
    try:
        others = [lock for lock in locks(backend, project, stack) if lock.path != own.path]
        stale = [lock for lock in others if lock.is_stale]
        for lock in stale:
            lock.path.unlink(missing_ok=True)  # names of locks are unique: never that of a live one
        held = [lock for lock in others if lock not in stale]
        if held:
            raise LockedError(held[0])
        yield stale
    finally:
        own.path.unlink(missing_ok=True)


def restore(backend: Path, project: str, stack: str) -> bool:
    """Replace a state file that a kill left incomplete by the engine's backup; return whether it did.

    The backup is the state one save earlier, in which running operations are recorded as pending.
    """
    _drop_torn_attributes(backend)
    path = _checkpoint(backend, project, stack)
    backup = path.with_name(f"{path.name}.bak")
    if not path.exists() or _readable(path) or not _readable(backup):
        return False
    draft = path.with_suffix(".restored")
    draft.write_bytes(backup.read_bytes())
    draft.chmod(path.stat().st_mode)
    draft.replace(path)
    return True


def _drop_torn_attributes(backend: Path) -> None:
    """Remove empty `.attrs` files after a kill: the backend fails on them, and needs none."""
    for path in (backend / ".pulumi").rglob("*.attrs"):
        if path.stat().st_size == 0:
            path.unlink()


def _readable(path: Path) -> bool:
    try:
        return "checkpoint" in json.loads(path.read_text())
    except (OSError, ValueError):
        return False


def pending(backend: Path, project: str, stack: str) -> list[tuple[str, str]]:
    """(operation, URN) of every operation that was running when the engine was killed."""
    try:
        latest = (
            json.loads(_checkpoint(backend, project, stack).read_text())["checkpoint"].get("latest") or {}
        )
    except (OSError, ValueError, KeyError):
        return []
    return [(one["type"], one["resource"]["urn"]) for one in latest.get("pending_operations") or []]


def resources(backend: Path, project: str, stack: str) -> list[dict[str, Any]]:
    """The resources of the saved state; secrets are encrypted."""
    try:
        content = json.loads(_checkpoint(backend, project, stack).read_text())
    except (OSError, ValueError):
        return []
    return list((content["checkpoint"].get("latest") or {}).get("resources") or [])


def settle(backend: Path, project: str, stack: str) -> None:
    """Remove pending operations, once their outcome is known; no engine may be running.

    The engine keeps pending creates, and only an interactive refresh would remove them.
    """
    path = _checkpoint(backend, project, stack)
    content = json.loads(path.read_text())
    content["checkpoint"]["latest"].pop("pending_operations", None)
    draft = path.with_suffix(".settled")
    draft.write_text(json.dumps(content, indent=4))
    draft.chmod(path.stat().st_mode)
    draft.replace(path)


def _checkpoint(backend: Path, project: str, stack: str) -> Path:
    return backend / ".pulumi" / "stacks" / project / f"{stack}.json"
