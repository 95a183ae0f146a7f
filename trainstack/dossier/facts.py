"""Facts of a stack for its report: the same facts give the same report."""

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from infra.engine.golang import SetupError
from infra.engine.plan import DriftStep
from infra.errors import Problem, UserError
from infra.gate import Gate
from infra.stackspec.load import LoadedSpec

if TYPE_CHECKING:  # slow to import
    from policies.audit import Audit
    from trainstack.advice import Advice
    from trainstack.versions.pins import Row as Pinned

Row = Mapping[str, Any]
Source = Literal["state", "preview", "none"]


@dataclass(frozen=True)
class ValidationResult:
    """The last validation of a pool, or of a stack without a cluster."""

    pool: str
    uri: str
    result: Mapping[str, Any] | None = None
    error: str = ""
    """Why the result cannot be read."""


@dataclass(frozen=True)
class Missing:
    """A part of the report that could not be made, and why."""

    why: str


UNREAD = "the state cannot be read"
"""Gap of the parts that are made from the state, whose own gap has the reason."""


def is_missing(error: UserError | SetupError) -> bool:
    """Return whether the backend answered that it has no such stack."""
    found = error.codes if isinstance(error, UserError) else ()
    return [code for code, _ in found] == ["stack-not-found"]


@dataclass(frozen=True)
class StackFacts:
    """Facts of one stack."""

    stack: str
    at: datetime.datetime
    """Time of the report, in UTC."""
    version: str
    """Version of trainstack."""
    rehearsed: bool
    loaded: LoadedSpec | None
    """None: values of the stack file are not of their types."""
    problems: Sequence[Problem]
    """What is wrong with the stack file."""
    source: Source
    """Source of `resources`: the state of a stack, or without one the preview of its first `up`."""
    resources: Sequence[Row]
    why: str = ""
    """Why there are no resources."""
    unread: UserError | SetupError | None = None
    """Why the state was not read."""
    outputs: Mapping[str, Any] | None = None
    """The outputs of the last `up` that finished."""
    gates: Sequence[Gate] = ()
    results: Sequence[ValidationResult] = ()
    audit: "Audit | Missing" = Missing("not evaluated")
    evidence: Mapping[str, bytes] = field(default_factory=dict)
    """Files of an evidence bundle of the audit, by name, where they were asked for."""
    versions: "Sequence[Pinned] | Missing" = Missing("not read")
    drift: Sequence[DriftStep] | Missing = Missing("not compared")
    advice: "Advice | Missing" = Missing("not estimated")
    is_example: bool = True
    """Whether the question of `advice` is the default one."""

    @property
    def state(self) -> str:
        """`deployed`, `unfinished` or `absent`, as in `trainstack status`; `unknown` where it was not read.

        A backend that has no such stack is read: its state is absent.
        """
        if self.unread is not None and not is_missing(self.unread):
            return "unknown"
        if self.source != "state":
            return "absent"
        return "deployed" if self.outputs else "unfinished"

    @property
    def deployed(self) -> Sequence[Row]:
        """Resources of the state: what exists, not what is planned."""
        return self.resources if self.source == "state" else ()
