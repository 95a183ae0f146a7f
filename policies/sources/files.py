"""Read input files of an audit with all their problems, and write its output files atomically."""

import contextlib
import json
import uuid
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

from infra.errors import Problem, UserError

MOST_BYTES = 128 * 1024 * 1024
"""Maximum size of a file. A resource takes about 8 KiB in an export: some 15,000 resources."""
_MOST_PROBLEMS = 20


class FileProblems:
    """Problems of a file."""

    def __init__(self, file: str) -> None:
        self._file = file
        self._found: list[Problem] = []

    def add(self, path: str, value: object, rule: str, fix: str, code: str) -> None:
        """Add a problem; a long value is truncated."""
        shown = value if value is None or len(repr(value)) <= 60 else f"{repr(value)[:60]}..."
        if len(self._found) < _MOST_PROBLEMS:
            place = f"{self._file}: {path}" if path else self._file
            self._found.append(Problem(place, shown, rule, fix, code=code))

    def wants(self, holder: Mapping[str, Any], key: str, form: type, path: str, fix: str) -> Any:
        """The value of a key, or an empty value if it is absent; adds a problem for another type."""
        value = holder.get(key)
        if value is None:
            return form()
        if not isinstance(value, form) or (form is not bool and isinstance(value, bool)):
            self.add(
                f"{path}.{key}" if path else key,
                value,
                f"must be {_NAMES[form]}",
                fix,
                "file-value-wrong-type",
            )
            return form()
        return value

    def end(self) -> None:
        """Raise UserError if there are problems."""
        if self._found:
            raise UserError(self._found)


_NAMES = {dict: "an object", list: "a list", str: "a text", bool: "true or false", int: "a number"}


def file_error(file: str, rule: str, fix: str, code: str) -> UserError:
    """The error about a whole file."""
    return UserError([Problem(file, None, rule, fix, code=code)])


def write_atomically(path: Path, text: str, fix: str) -> None:
    """Write a file atomically with mode 0600. Raises UserError."""
    draft = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    try:
        draft.touch(mode=0o600, exist_ok=False)
        draft.write_text(text)
        draft.replace(path)
    except OSError as error:
        raise file_error(
            str(path), f"cannot be written: {error.strerror}", fix, "output-file-unwritable"
        ) from None
    finally:
        with contextlib.suppress(OSError):
            draft.unlink()


_PARTS = "Audit the stack in parts."


def read_file(path: Path, fix: str) -> bytes:
    """The bytes of a file or pipe. Raises UserError if it cannot be read, is empty or too large."""
    with open_file(path, fix) as stream:
        return read_all(stream, str(path), fix)


@contextlib.contextmanager
def open_file(path: Path, fix: str) -> Iterator[BinaryIO]:
    """Open a file or pipe to read it once. Raises UserError if it cannot be read."""
    try:
        with path.open("rb") as stream:
            yield stream
    except OSError as error:
        raise file_error(
            str(path), f"cannot be read: {error.strerror}", fix, "input-file-unreadable"
        ) from None


def read_all(stream: BinaryIO, file: str, fix: str, begun: bytes = b"", smaller: str = _PARTS) -> bytes:
    """The bytes read before, and the rest. Raises UserError if they are empty or too large."""
    data = begun + stream.read(max(0, MOST_BYTES + 1 - len(begun)))
    if len(data) > MOST_BYTES:
        raise file_error(file, _too_large(), smaller, "input-file-too-large")
    if not data.strip():
        raise file_error(file, "is empty", fix, "input-file-empty")
    return data


def first_line(stream: BinaryIO) -> bytes:
    """The first line, cut after the maximum size."""
    return stream.readline(MOST_BYTES + 1)


def each_line(stream: BinaryIO, file: str, line: bytes) -> Iterator[bytes]:
    """The line read before, and all later lines. Raises UserError for a line that is too large."""
    number = 1
    while line:
        if len(line) > MOST_BYTES:
            fix = "Write one value per line."
            raise file_error(f"{file}:{number}", _too_large(), fix, "input-file-too-large")
        yield line
        line = first_line(stream)
        number += 1


def _too_large() -> str:
    return f"is larger than {MOST_BYTES >> 20} MiB"


def parsed(data: bytes, file: str, fix: str) -> Any:
    """The JSON value of a file. Raises UserError."""
    try:
        return json.loads(data)
    except RecursionError:
        raise file_error(
            file, "is nested too deeply for a state", fix, "input-file-nested-too-deeply"
        ) from None
    except UnicodeDecodeError as error:
        rule = f"is not text: {error.reason} at byte {error.start}"
        raise file_error(file, rule, fix, "input-file-not-text") from None
    except ValueError as error:
        rule = f"is not valid JSON, or was cut off: {error}"
        raise file_error(file, rule, fix, "input-file-invalid-json") from None


def lines(rows: Iterable[bytes], file: str, fix: str) -> Iterator[tuple[int, Any]]:
    """(line number, JSON value) of a file with one value per line. Raises UserError."""
    for number, line in enumerate(rows, start=1):
        if line.strip():
            yield number, parsed(line, f"{file}:{number}", fix)
