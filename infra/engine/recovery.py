"""What a killed engine leaves in a file backend: its lock, and operations whose outcome is unknown."""

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
    """A lock of the engine on a stack, as its own file says."""

    path: Path
    pid: int
    host: str
    since: datetime.datetime

    @property
    def is_stale(self) -> bool:
        """Whether its process is certainly gone: it ran on this host, and its number is free or new."""
        if not self.host:  # half written: its writer was killed, or writes right now
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
    """Another process works on the stack."""

    def __init__(self, lock: Lock) -> None:
        self.lock = lock
        super().__init__(f"process {lock.pid} on {lock.host} since {lock.since:%H:%M:%S}")


def locks(backend: Path, project: str, stack: str) -> list[Lock]:
    """The locks on a stack of a file backend in the folder `backend`; half written ones have no host."""
    found = []
    for path in sorted((backend / ".pulumi" / "locks").glob(f"**/{project}/{stack}/*.json")):
        with contextlib.suppress(FileNotFoundError):  # given back in this moment
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
    """Hold the engine's own lock on a stack, so that no engine starts meanwhile; the stale locks removed.

    As the engine does, the lock is written first and others are looked for then: of two that come at once, at
    most one goes on. Raises LockedError when another process holds the stack.
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
            lock.path.unlink(missing_ok=True)  # every lock has a name of its own: never that of a living one
        held = [lock for lock in others if lock not in stale]
        if held:
            raise LockedError(held[0])
        yield stale
    finally:
        own.path.unlink(missing_ok=True)


def restore(backend: Path, project: str, stack: str) -> bool:
    """Put the engine's own backup in the place of a state file that a kill left half written; whether it did.

    The backup is the state one save earlier, in which whatever was under way is noted as pending.
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
    """Remove the empty `.attrs` files of a kill: the backend stumbles over those, and needs none."""
    for path in (backend / ".pulumi").rglob("*.attrs"):
        if path.stat().st_size == 0:
            path.unlink()


def _readable(path: Path) -> bool:
    try:
        return "checkpoint" in json.loads(path.read_text())
    except (OSError, ValueError):
        return False


def pending(backend: Path, project: str, stack: str) -> list[tuple[str, str]]:
    """(operation, URN) of everything that was under way when an engine was killed."""
    try:
        latest = (
            json.loads(_checkpoint(backend, project, stack).read_text())["checkpoint"].get("latest") or {}
        )
    except (OSError, ValueError, KeyError):
        return []
    return [(one["type"], one["resource"]["urn"]) for one in latest.get("pending_operations") or []]


def resources(backend: Path, project: str, stack: str) -> list[dict[str, Any]]:
    """The resources of the engine's state as it saved them; secrets are encrypted."""
    try:
        content = json.loads(_checkpoint(backend, project, stack).read_text())
    except (OSError, ValueError):
        return []
    return list((content["checkpoint"].get("latest") or {}).get("resources") or [])


def settle(backend: Path, project: str, stack: str) -> None:
    """Forget the operations under way, once it is known what has become of them; nothing else may be running.

    The engine keeps pending creates for ever, and only an interactive refresh would drop them.
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
