"""Evidence: one JSON object per line, each of a registered kind (pure: parsing only).

A line is written as soon as a phase is complete, so that a run that dies later is still judged on what it
had. A line that cannot be read is remembered as such: the judge then reports ERROR instead of overlooking
it.
"""

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from smoke_training.decode import decode

T = TypeVar("T")

KINDS: dict[str, type] = {}


def kind(name: str) -> Callable[[type[T]], type[T]]:
    """Register a frozen dataclass as what lines of this kind hold."""

    def register(record: type[T]) -> type[T]:
        if name in KINDS:
            raise ValueError(f"evidence kind {name!r} is registered twice")
        KINDS[name] = record
        return record

    return register


@dataclass
class Evidence:
    """Everything read so far, in the order of the lines."""

    records: list[object] = field(default_factory=list)
    unreadable: list[str] = field(default_factory=list)

    def of(self, record: type[T]) -> T | None:
        """The last record of a type, None if there is none."""
        return next((found for found in reversed(self.records) if isinstance(found, record)), None)

    def all_of(self, record: type[T]) -> tuple[T, ...]:
        """Every record of a type."""
        return tuple(found for found in self.records if isinstance(found, record))


def parse(lines: Iterable[str]) -> Evidence:
    """Read evidence lines; never raises for their content, records what it could not read."""
    found = Evidence()
    for number, line in enumerate(lines, 1):
        try:
            found.records.append(_record(json.loads(line)))
        except (TypeError, ValueError, KeyError, AttributeError) as error:
            found.unreadable.append(f"evidence line {number}: {type(error).__name__}: {error}")
    return found


def kind_of(line: str) -> str:
    """The kind of one evidence line, for progress reports."""
    try:
        return str(json.loads(line)["kind"])
    except (ValueError, KeyError, TypeError):
        return "unreadable"


def _record(line: dict[str, Any]) -> object:
    name = line.pop("kind")
    if name not in KINDS:
        raise ValueError(f"unknown kind {name!r}")
    return decode(KINDS[name], line)
