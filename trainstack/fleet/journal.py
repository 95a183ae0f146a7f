"""Journal of a fleet command: what has ended is on disk, so that a killed command can be continued."""

import datetime
import fcntl
import hashlib
import json
import os
import shutil
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from infra.errors import Problem, UserError
from infra.places import STATE_NAME
from trainstack.fleet.outcome import FINISHED, StackOutcome, State
from trainstack.fleet.stacks import FleetStack

_KEPT = 20
"""Runs whose journals and logs are kept."""
_CONTINUED_H = {"up": 12.0}
"""Age in hours up to which a command is continued."""
_READING_H = 1.0
"""The same for commands that change nothing: their results grow old."""


@dataclass
class FleetJournal:
    """The journal of a run, held by this process."""

    folder: Path
    """Logs and results of the run; private to the user."""
    earlier: Mapping[tuple[str, str], StackOutcome] = field(default_factory=dict)
    """Outcomes of the run that is continued, by phase and stack; without stacks that have changed since."""
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _held: int = -1

    @classmethod
    def begin(cls, base: Path, words: Sequence[str], stacks: Sequence[FleetStack], *, fresh: bool) -> Self:
        """Continue the last run of this command on these stacks if it was not finished, else begin one.

        Raises UserError where the journal cannot be written.
        """
        runs = base / STATE_NAME / "fleet"
        key = hashlib.sha256(json.dumps([*words, *sorted(one.id for one in stacks)]).encode()).hexdigest()
        try:
            runs.mkdir(mode=0o700, parents=True, exist_ok=True)
            (base / STATE_NAME / ".gitignore").write_text("*\n")
            _tidy(runs)
            if not fresh and (found := cls._continued(runs, key, stacks)):
                return found
            now = datetime.datetime.now(datetime.UTC)
            folder = runs / f"{now:%Y%m%dT%H%M%S.%f}-{words[0]}"
            folder.mkdir(mode=0o700)
            journal = cls(folder, _held=_hold(folder) or -1)
            journal.record("begin", key=key, words=[*words])
        except OSError as error:
            rule, fix = f"cannot be written: {error.strerror}", "Make it a folder that you can write to."
            raise UserError(
                [Problem("journal", str(runs), rule, fix, code="journal-not-writable")]
            ) from error
        return journal

    @classmethod
    def _continued(cls, runs: Path, key: str, stacks: Sequence[FleetStack]) -> Self | None:
        for folder in sorted(runs.iterdir(), reverse=True):
            records = list(_records(folder))
            if not records or records[0].get("key") != key:
                continue
            begun = datetime.datetime.strptime(folder.name.split("-")[0], "%Y%m%dT%H%M%S.%f")
            age = datetime.datetime.now(datetime.UTC) - begun.replace(tzinfo=datetime.UTC)
            command = str(records[0]["words"][0])
            limit = datetime.timedelta(hours=_CONTINUED_H.get(command, _READING_H))
            ended = any(one["event"] == "end" for one in records)
            if ended or age > limit or (held := _hold(folder)) is None:
                return None
            digests = {one.id: one.digest() for one in stacks}
            # A deployment that was killed has changed what its preview compared.
            begun_up = {one["stack"] for one in records if one["event"] == "start" and one["phase"] == "up"}
            earlier = {
                (one["phase"], one["stack"]): _outcome(one["outcome"])
                for one in records
                if one["event"] == "outcome"
                and digests.get(one["stack"]) == one["digest"]
                and (one["phase"] == "up" or one["stack"] not in begun_up)
            }
            return cls(folder, earlier, _held=held)
        return None

    def finished(self, phase: str, stack: FleetStack) -> StackOutcome | None:
        """The outcome of a stack that is not repeated; None without one."""
        found = self.earlier.get((phase, stack.id))
        return found if found and found.state in FINISHED else None

    def record(self, event: str, **values: Any) -> None:
        """Append a record, which is on disk when this returns."""
        line = json.dumps({"event": event, **values}, default=str)
        with self._lock, (self.folder / "journal.jsonl").open("a", encoding="utf-8") as file:
            file.write(f"{line}\n")
            file.flush()
            os.fsync(file.fileno())

    def outcome(self, phase: str, stack: FleetStack, digest: str, outcome: StackOutcome) -> None:
        """Record the outcome of a phase for a stack with this digest."""
        self.record("outcome", phase=phase, stack=stack.id, digest=digest, outcome=outcome.document)

    def logs(self, stack: FleetStack) -> Path:
        """The folder of a stack's output and log."""
        folder = self.folder / stack.client.name / stack.name
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return folder

    def work(self, stack: FleetStack) -> Path:
        """A path for the temporary files of a stack's command; absent."""
        folder = self.folder / "work" / hashlib.sha256(stack.id.encode()).hexdigest()[:10]
        remove(folder)
        folder.parent.mkdir(mode=0o700, exist_ok=True)
        return folder

    def end(self) -> None:
        """Record that the run is finished: the next one begins anew."""
        self.record("end")


def hold_stack(base: Path, stack: FleetStack) -> int | None:
    """Hold the lock of a stack for a command that changes it; None while another process holds it.

    A command keeps the descriptor, so the lock of one whose fleet was killed lasts until it has ended.
    """
    folder = base / STATE_NAME / "fleet-locks"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return _lock(folder / f"{stack.client.name}.{stack.name}.lock")


def remove(folder: Path) -> None:
    """Remove temporary files of a command, if there are any; links are not followed."""
    shutil.rmtree(folder, ignore_errors=True)


def _hold(folder: Path) -> int | None:
    return _lock(folder / "lock")


def _lock(path: Path) -> int | None:
    held = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(held)
        return None
    return held


def _records(folder: Path) -> Iterator[dict[str, Any]]:
    """The records; the last one of a killed run may be cut."""
    try:
        lines = (folder / "journal.jsonl").read_text(encoding="utf-8").splitlines()
    except OSError:
        return
    for line in lines:
        try:
            yield json.loads(line)
        except ValueError:
            return


def _outcome(document: Mapping[str, Any]) -> StackOutcome:
    return StackOutcome(**{**document, "state": State(document["state"])})


def _tidy(runs: Path) -> None:
    """Remove temporary files of killed runs, and the oldest runs."""
    folders = sorted((one for one in runs.iterdir() if one.is_dir()), reverse=True)
    for number, folder in enumerate(folders):
        held = _hold(folder)
        if held is None:
            continue
        remove(folder / "work" if number < _KEPT else folder)
        os.close(held)
