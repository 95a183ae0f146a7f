"""Evidence: one JSON object per line, each of a registered kind (pure).

`line_of` writes what `parse` reads, both by the same frozen dataclasses. A line is written as soon as a phase
is complete, so that a run that dies later is still judged on what it had. An unreadable line is
recorded as such: the judge then reports ERROR instead of overlooking it.
"""

import dataclasses
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeVar, dataclass_transform

from smoke_training.reader import decode


@dataclass(frozen=True, kw_only=True)
class Record:
    """One line of evidence; `kind` names its form in the file."""

    kind: ClassVar[str]


UNREADABLE = 100  # lines that are reported

R = TypeVar("R", bound=Record)

KINDS: dict[str, type[Record]] = {}


@dataclass_transform(frozen_default=True, kw_only_default=True)
def kind(name: str) -> Callable[[type[R]], type[R]]:
    """Make a class a frozen dataclass, and the record of lines of this kind."""

    def register(of: type[R]) -> type[R]:
        record = dataclass(frozen=True, kw_only=True)(of)
        if name in KINDS:
            raise ValueError(f"evidence kind {name!r} is registered twice")
        KINDS[name] = record
        record.kind = name
        return record

    return register


class UndeliveredError(LookupError):
    """The evidence holds no record of the requested kind."""


@dataclass
class Evidence:
    """Everything read so far, in the order of the lines."""

    records: list[Record] = field(default_factory=list)
    unreadable: list[str] = field(default_factory=list)

    def of(self, record: type[R]) -> R | None:
        """The last record of a type, None if there is none."""
        return next((found for found in reversed(self.records) if isinstance(found, record)), None)

    def need(self, record: type[R]) -> R:
        """The last record of a type; UndeliveredError if there is none."""
        found = self.of(record)
        if found is None:
            raise UndeliveredError(record.kind)
        return found

    def all_of(self, record: type[R]) -> tuple[R, ...]:
        """Every record of a type."""
        return tuple(found for found in self.records if isinstance(found, record))


def document_of(record: Record) -> dict[str, Any]:
    """A record as the JSON object of its line."""
    return {"kind": record.kind, **dataclasses.asdict(record)}


def line_of(record: Record) -> str:
    """A record as one line of a samples file, without its line break; `parse` reads it back."""
    return json.dumps(document_of(record))


def parse(lines: Iterable[str]) -> Evidence:
    """Read evidence lines; never raises for their content, records what it could not read."""
    found = Evidence()
    for number, line in enumerate(lines, 1):
        try:
            found.records.append(_record(json.loads(line), found.records))
        except (TypeError, ValueError, KeyError, AttributeError) as error:
            if len(found.unreadable) < UNREADABLE:
                found.unreadable.append(f"evidence line {number}: {type(error).__name__}: {error}"[:1000])
            elif not found.records:  # something else, however long
                return found
    return found


def kind_of(line: str) -> str:
    """The kind of one evidence line, for progress reports."""
    try:
        return str(json.loads(line)["kind"])
    except (ValueError, KeyError, TypeError):
        return "unreadable"


def _record(line: dict[str, Any], earlier: Sequence[Record]) -> Record:
    name = line.pop("kind")
    if name not in KINDS:
        raise ValueError(f"unknown kind {name!r}")
    record: Record = decode(KINDS[name], line)
    if name == "world" and record in earlier:  # no run has the same processes again
        raise ValueError("the ranks of an earlier line once more: the file has a copy of its lines")
    return record
