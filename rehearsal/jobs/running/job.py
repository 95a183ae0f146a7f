"""One job of any managed service in a thread of its own."""

import abc
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Generic, TypeVar

from rehearsal.dataplane import folders
from rehearsal.jobs.running.machine import MachineProcess
from rehearsal.workloads.addresses import Addresses

RecordT = TypeVar("RecordT")
MachineT = TypeVar("MachineT", bound=MachineProcess)
_PATIENCE_S = 15.0


class JobThread(abc.ABC, Generic[RecordT, MachineT]):
    """A job that runs in `folder`; names of its addresses begin with `owner`.

    `keep` is called with the record after every change.
    """

    def __init__(
        self, job: RecordT, *, owner: str, folder: Path, addresses: Addresses, keep: Callable[[RecordT], None]
    ) -> None:
        self._job, self._owner, self._folder, self._addresses = job, f"{owner}|", folder, addresses
        self._keep = keep
        self._machines: list[MachineT] = []
        self._lock = threading.Lock()
        self._stop, self._killed = threading.Event(), threading.Event()
        self.over = threading.Event()
        self._thread = threading.Thread(target=self._run, name=owner, daemon=True)

    @property
    def job(self) -> RecordT:
        """The current record of the job."""
        return self._job

    @abc.abstractmethod
    def _run(self) -> None:
        """The thread's work until the job ends; sets `over`."""

    def kill(self) -> None:
        """End the programs at once because the daemon stops; returns when no process is left."""
        self._killed.set()
        self._stop.set()
        self._thread.join(_PATIENCE_S)

    def _rows(self, shared: Mapping[str, Any]) -> list[dict[str, Any]]:
        """A row for each machine; `shared` is the row of a job without machines."""
        return [{**shared, **machine.describe()} for machine in list(self._machines)] or [dict(shared)]

    def _addressed(self, names: Sequence[str]) -> dict[str, str]:
        """An address for each machine; stable until `_clear`."""
        return {name: self._addresses.of(f"{self._owner}{name}") for name in names}

    def _change(self, change: Callable[[RecordT], RecordT]) -> None:
        with self._lock:
            self._job = change(self._job)
            self._keep(self._job)

    def _clear(self) -> None:
        for machine in self._machines:
            machine.kill()
        self._machines = []
        self._addresses.release(self._owner)
        folders.remove(self._folder)
