"""Read and write the files of commands; a DocumentError names the file and the problem."""

import codecs
import gzip
import hashlib
import io
import sys
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from smoke_training import evidence, plan
from smoke_training.model import SCHEMA
from smoke_training.plan import Plan
from smoke_training.reader import DocumentError, parsed
from smoke_training.record import run_record

T = TypeVar("T")
LONGEST = 1 << 20  # bytes of one part of a line
_NEEDED = ("run_id", "verdict", "plan", "checks", "comparable")


def text(path: Path) -> str:
    """The text of a file, gzip or plain."""
    return "".join(lines(path))


def lines(path: Path, errors: str = "strict") -> Iterator[str]:
    """Yield the lines of a file, gzip or plain, or of the standard input (`-`); long ones come in parts.

    `errors` is what is done with bytes that are no UTF-8, as `bytes.decode` names it.
    """
    try:
        with open(0 if path == Path("-") else path, "rb") as stream:  # noqa: PTH123 - 0 is the standard input
            source = gzip.GzipFile(fileobj=stream) if stream.peek(2)[:2] == b"\x1f\x8b" else stream
            if source.peek(2)[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):  # PowerShell's `>`
                text = io.TextIOWrapper(source, "utf-16", errors)
                yield from iter(lambda: text.readline(LONGEST), "")
            while raw := source.readline(LONGEST):
                yield raw.decode(errors=errors)
    except (EOFError, zlib.error, UnicodeDecodeError) as error:
        raise DocumentError([f"{path}: damaged or cut: {error}"]) from error
    except OSError as error:
        raise DocumentError([f"{path}: {error.strerror or error}; name a readable file"]) from error


def write(path: Path | None, content: str) -> None:
    """A text to a file, whose missing folders are created; without a path to the standard output."""
    try:
        if path is None:
            sys.stdout.write(content)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content)
    except OSError as error:
        raise DocumentError([f"{path}: {error.strerror or error}"]) from error


def read(path: Path, parse: Callable[[str], T]) -> T:
    """Parse a file; every problem that `parse` reports gets the file's name as prefix."""
    content = text(path)
    try:
        return parse(content)
    except DocumentError as error:
        raise DocumentError([f"{path}: {problem}" for problem in error.problems]) from error


def planned(path: Path) -> Plan:
    """Read the plan of a validation."""
    return read(path, plan.parse)


def result(path: Path) -> dict[str, Any]:
    """Read the result document of a run; its schema must be the current one."""
    return read(path, _result)


def _result(content: str) -> dict[str, Any]:
    found = parsed(content, "result")
    if found.get("schema") != SCHEMA:
        rule = f'must be "{SCHEMA}"; read it with the version of smoke_training that wrote it'
        raise DocumentError([f"schema: got {found.get('schema')!r}; {rule}"])
    if missing := [key for key in _NEEDED if key not in found]:
        raise DocumentError([f"not a complete result: {', '.join(missing)} missing"])
    return found


def samples(path: Path, sha256: str | None = None) -> list[str]:
    """The lines of a samples file, all of them readable, and with this digest where one is given."""
    found = text(path).splitlines()
    if unreadable := evidence.parse(found).unreadable:
        rule = "every line must be one evidence record of this version; was the file cut?"
        raise DocumentError([f"{path}: {'; '.join(unreadable[:5])}; {rule}"])
    digest = hashlib.sha256(run_record.text_of(found)).hexdigest()
    if sha256 not in (None, digest):
        rule = f"these are not the samples of the run, or not all of them ({len(found)} lines)"
        raise DocumentError([f"{path}: SHA-256 is {digest}, the result names {sha256}; {rule}"])
    return found


def samples_of(document: dict[str, Any], path: Path) -> list[str]:
    """The samples beside the result at `path`, which must be those of its run."""
    digests = {item["name"]: item["sha256"] for item in document.get("artifacts", ())}
    return samples(run_record.beside(path, run_record.SAMPLES), digests.get(run_record.SAMPLES))
