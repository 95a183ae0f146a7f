"""Changes of several files of a client's folder at once: all of them or none, also after a kill.

New contents and a journal are written to `.trainstack/update/` first. The rename of the journal decides:
after it the changes are made, by this process or by the next one; before it no file of the client is touched.
"""

import fcntl
import hashlib
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from infra.errors import Problem, UserError
from infra.places import STATE_NAME
from trainstack.stamp import lock

STAGE = f"{STATE_NAME}/update"
JOURNAL = f"{STAGE}/journal.json"
_DRAFT = f"{JOURNAL}.draft"
_EDITED = f"Undo that edit, so that the update can be finished; or remove {STAGE} to give the update up."


@contextmanager
def exclusive(folder: Path) -> Iterator[None]:
    """Keep other updates of the folder away. Raises UserError while one runs."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        rule, fix = "another update of this folder runs", "Wait until it has ended."
        raise UserError([Problem("CLIENT", str(folder), rule, fix, code="client-update-running")]) from None
    else:
        yield
    finally:
        os.close(descriptor)


def interrupted(folder: Path) -> bool:
    """True after an update that was killed with its changes decided."""
    return (folder / JOURNAL).is_file()


def recover(folder: Path) -> list[str]:
    """Finish the changes of an update that was killed, and return the names of its files.

    Raises UserError where a file of it cannot be written.
    """
    if not interrupted(folder):
        shutil.rmtree(folder / STAGE, ignore_errors=True)
        return []
    journal = _read(folder)
    edited = [
        Problem(
            name, None, "was changed after an update that was killed", _EDITED, code="client-file-changed"
        )
        for name, row in journal.items()
        if _is_pending(folder, name, row) and _digest(folder / name) != row["before"]
    ]
    if edited:
        raise UserError(edited)
    _finish(folder, journal)
    return [*journal]


def _read(folder: Path) -> dict[str, dict[str, str | None]]:
    """The journal: by name the digest before, and the staged file. Raises UserError for another content."""
    try:
        journal = json.loads((folder / JOURNAL).read_text(encoding="utf-8"))
        valid = all(
            lock.is_inside(name) and {*row} == {"before", "file"} and (row["file"] or "0").isdigit()
            for name, row in journal.items()
        )
    except (OSError, ValueError, AttributeError, TypeError):
        valid = False
    if not valid:
        rule, fix = "is not the journal of an update", f"Remove {STAGE}."
        raise UserError([Problem(JOURNAL, None, rule, fix, code="client-journal-invalid")])
    return dict(journal)


def _is_pending(folder: Path, name: str, row: Mapping[str, str | None]) -> bool:
    return (folder / STAGE / row["file"]).exists() if row["file"] else (folder / name).exists()


def apply(folder: Path, before: Mapping[str, str | None], changes: Mapping[str, str | None]) -> None:
    """Write texts, and remove the files that are None; the lock comes last.

    `before` has the texts that the changes were made from: UserError, with nothing written, where one is
    another now, or where the folder cannot be written.
    """
    problems = [
        Problem(name, None, "was changed meanwhile", "Run the update again.", code="client-file-changed")
        for name, text in before.items()
        if _text(folder / name) != text
    ]
    if problems:
        raise UserError(problems)
    try:
        journal = _staged(folder, changes)
    except OSError as error:
        shutil.rmtree(folder / STAGE, ignore_errors=True)
        raise _not_written(folder, error) from error
    _finish(folder, journal)


def _staged(folder: Path, changes: Mapping[str, str | None]) -> dict[str, dict[str, str | None]]:
    """Write contents and journal; the changes are decided when it returns."""
    stage = folder / STAGE
    shutil.rmtree(stage, ignore_errors=True)
    stage.mkdir(parents=True)
    journal: dict[str, dict[str, str | None]] = {}
    for number, name in enumerate(sorted(changes, key=lambda name: (name == lock.LOCK, name))):
        text, target = changes[name], folder / name
        journal[name] = {"before": _digest(target), "file": None if text is None else str(number)}
        if text is not None:
            _write(stage / str(number), _as_on_disk(target, text), target)
    _write(folder / _DRAFT, json.dumps(journal).encode(), None)
    (folder / _DRAFT).replace(folder / JOURNAL)
    return journal


def _finish(folder: Path, journal: Mapping[str, Mapping[str, str | None]]) -> None:
    """Make the changes that are not made yet, then forget the journal."""
    try:
        for name, row in journal.items():
            target = folder / name
            if row["file"] is None:
                target.unlink(missing_ok=True)
                _without_empty(target.parent, folder)
            elif (staged := folder / STAGE / row["file"]).exists():
                target.parent.mkdir(parents=True, exist_ok=True)
                staged.replace(target)
        (folder / JOURNAL).unlink()
        shutil.rmtree(folder / STAGE, ignore_errors=True)
    except OSError as error:
        raise _not_written(folder, error, "The next `trainstack update` finishes the change.") from error


def _not_written(folder: Path, error: OSError, more: str = "") -> UserError:
    fix = f"Make room, or the folder one that you can write to. {more}".rstrip()
    rule = f"cannot be written: {error}"
    return UserError([Problem("CLIENT", str(folder), rule, fix, code="client-not-written")])


def _write(path: Path, content: bytes, like: Path | None) -> None:
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    if like is not None and like.exists():
        shutil.copymode(like, path)


def _as_on_disk(target: Path, text: str) -> bytes:
    """The text with the line ends of the file that it replaces."""
    crlf = target.is_file() and b"\r\n" in target.read_bytes()
    return (text.replace("\n", "\r\n") if crlf else text).encode()


def _text(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return None


def _digest(path: Path) -> str | None:
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else None


def _without_empty(folder: Path, root: Path) -> None:
    """Remove folders that a removed file leaves empty, below the root."""
    while folder != root and folder.is_dir() and not any(folder.iterdir()):
        folder.rmdir()
        folder = folder.parent
