"""Files as a whole: what another tool wrote, or what is wrong with it, and what an audit writes."""

import contextlib
import json
import uuid
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

from infra.errors import Problem, UserError

MOST_BYTES = 128 * 1024 * 1024
"""Of one file. A resource takes about 8 KiB in an export, so this is some 15,000 of them."""
_MOST_PROBLEMS = 20


class Complaints:
    """Everything that is wrong with a file."""

    def __init__(self, file: str) -> None:
        self._file = file
        self._found: list[Problem] = []

    def add(self, path: str, value: object, rule: str, fix: str) -> None:
        """Note one problem; a long value is cut."""
        shown = value if value is None or len(repr(value)) <= 60 else f"{repr(value)[:60]}..."
        if len(self._found) < _MOST_PROBLEMS:
            self._found.append(Problem(f"{self._file}: {path}" if path else self._file, shown, rule, fix))

    def wants(self, holder: Mapping[str, Any], key: str, form: type, path: str, fix: str) -> Any:
        """The value of a key, or an empty one of the form where it is absent; another form is a complaint."""
        value = holder.get(key)
        if value is None:
            return form()
        if not isinstance(value, form) or (form is not bool and isinstance(value, bool)):
            self.add(f"{path}.{key}" if path else key, value, f"must be {_NAMES[form]}", fix)
            return form()
        return value

    def end(self) -> None:
        """Raise UserError if there is any."""
        if self._found:
            raise UserError(self._found)


_NAMES = {dict: "an object", list: "a list", str: "a text", bool: "true or false", int: "a number"}


def refuse(file: str, rule: str, fix: str) -> UserError:
    """The error about a file as a whole."""
    return UserError([Problem(file, None, rule, fix)])


def write_whole(path: Path, text: str, fix: str) -> None:
    """Write a file whole or not at all, for its owner alone. Raises UserError."""
    draft = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    try:
        draft.touch(mode=0o600, exist_ok=False)
        draft.write_text(text)
        draft.replace(path)
    except OSError as error:
        raise refuse(str(path), f"cannot be written: {error.strerror}", fix) from None
    finally:
        with contextlib.suppress(OSError):
            draft.unlink()


_PARTS = "Audit the stack in parts, or leave out what is no state."


def content(path: Path, fix: str) -> bytes:
    """The bytes of a file or pipe. Raises UserError where it cannot be read, is empty or too large."""
    with opened(path, fix) as stream:
        return whole(stream, str(path), fix)


@contextlib.contextmanager
def opened(path: Path, fix: str) -> Iterator[BinaryIO]:
    """A file or pipe to read from, once. Raises UserError where it cannot be read."""
    try:
        with path.open("rb") as stream:
            yield stream
    except OSError as error:
        raise refuse(str(path), f"cannot be read: {error.strerror}", fix) from None


def whole(stream: BinaryIO, file: str, fix: str, begun: bytes = b"", smaller: str = _PARTS) -> bytes:
    """What was read of it already, and the rest. Raises UserError where that is empty or too large."""
    data = begun + stream.read(max(0, MOST_BYTES + 1 - len(begun)))
    if len(data) > MOST_BYTES:
        raise refuse(file, _too_large(), smaller)
    if not data.strip():
        raise refuse(file, "is empty", fix)
    return data


def first_line(stream: BinaryIO) -> bytes:
    """The first line, or so much of it that it is too large."""
    return stream.readline(MOST_BYTES + 1)


def each_line(stream: BinaryIO, file: str, line: bytes) -> Iterator[bytes]:
    """The line that was read already, and all after it. Raises UserError for one that is too large."""
    number = 1
    while line:
        if len(line) > MOST_BYTES:
            raise refuse(f"{file}:{number}", _too_large(), "Write one value a line.")
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
        raise refuse(file, "is nested too deeply for a state", fix) from None
    except UnicodeDecodeError as error:
        raise refuse(file, f"is not text: {error.reason} at byte {error.start}", fix) from None
    except ValueError as error:
        raise refuse(file, f"is not valid JSON, or was cut off: {error}", fix) from None


def lines(told: Iterable[bytes], file: str, fix: str) -> Iterator[tuple[int, Any]]:
    """(line number, JSON value) of the lines of a file with one value a line. Raises UserError."""
    for number, line in enumerate(told, start=1):
        if line.strip():
            yield number, parsed(line, f"{file}:{number}", fix)
