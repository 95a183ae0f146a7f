"""Effects of a second value of each field of the spec, on each cloud."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Honoured:
    """The stack is another one: a line of the difference says so."""

    at: str
    """Where the value is written, such as `layout.pools.0.disk_gib`."""
    value: Any
    seen: str
    """A regular expression that finds the line, and none in the differences of other batches."""
    batch: str
    """Fields of one batch are changed at once, for composing takes a second."""
    also: Mapping[str, Any] = field(default_factory=dict)
    """What has to change with it."""


@dataclass(frozen=True)
class Refused:
    """Loading refuses the value, and says what to write instead."""

    at: str
    value: Any
    path: str
    """Where the problem is."""
    instead: str
    """A regular expression that finds the alternative in the fix."""
    also: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Estimated:
    """The value is only about the estimate of cost, and the stack is the same one."""

    at: str
    value: Any
    why: str


Outcome = Honoured | Refused | Estimated
