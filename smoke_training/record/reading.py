"""Reading results and samples back, with errors that say what is wrong with which file."""

import gzip
import hashlib
import json
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from smoke_training import evidence
from smoke_training.evidence import Evidence
from smoke_training.record import accepted, book
from smoke_training.record.accepted import ResultError

Result = dict[str, Any]


@dataclass(frozen=True)
class Samples:
    """The lines of a samples file and what they hold."""

    lines: list[str]
    found: Evidence


def result(path: Path) -> Result:
    """The result document at `path`; ResultError names file, fault and remedy."""
    text = _text(path)
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ResultError(f"{path}: not readable as JSON ({error}); is the file complete?") from error
    return accepted.checked(document, str(path))


def samples(path: Path) -> Samples:
    """The samples at `path` (gzip or plain); ResultError when a line cannot be read."""
    lines = _text(path).splitlines()
    found = evidence.parse(lines)
    if found.unreadable:
        rule = "every line must be one evidence record of this version; was the file cut?"
        raise ResultError(f"{path}: {'; '.join(found.unreadable[:5])}; {rule}")
    return Samples(lines, found)


def samples_of(document: Result, path: Path) -> Samples:
    """The samples beside the result at `path`; ResultError when they are not those of the run."""
    target = book.beside(path, book.SAMPLES)
    read = samples(target)
    recorded = {item["name"]: item["sha256"] for item in document.get("artifacts", ())}.get(book.SAMPLES)
    digest = hashlib.sha256(book.text_of(read.lines)).hexdigest()
    if recorded is not None and digest != recorded:
        raise ResultError(
            f"{target}: SHA-256 is {digest}, the result names {recorded}; these are not the samples of the "
            f"run, or not all of them ({len(read.lines)} lines)"
        )
    return read


def _text(path: Path) -> str:
    try:
        raw = path.read_bytes()
        return (gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw).decode()
    except OSError as error:
        raise ResultError(f"{path}: {error.strerror or error}") from error
    except (EOFError, zlib.error, UnicodeDecodeError) as error:
        raise ResultError(f"{path}: damaged or cut: {error}") from error
