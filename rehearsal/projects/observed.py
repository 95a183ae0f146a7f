"""Observations of a program in a rehearsal: its resources, outputs and changes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class SeenResource:
    """A resource after an operation: its inputs and outputs; the engine masks secrets."""

    type: str
    name: str
    """Its name in the program."""
    values: Mapping[str, object]


@dataclass(frozen=True)
class SeenChange:
    """A change of one resource: `create`, `update`, `replace` or `delete`."""

    operation: str
    type: str
    name: str
    changed: tuple[str, ...] = ()
    """Paths of the inputs that differ."""

    def __str__(self) -> str:
        return f"{self.operation} {self.name}" + (f" ({', '.join(self.changed)})" if self.changed else "")


@dataclass(frozen=True)
class Observed:
    """The state after the first `up`, or that which a preview plans, and all changes until then."""

    resources: Sequence[SeenResource]
    outputs: Mapping[str, object]
    changes: Sequence[SeenChange]
