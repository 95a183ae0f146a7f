"""Results of preflight checks, and the exit code that follows from them."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from infra.exit_codes import ExitCode
from infra.places import located


class State(StrEnum):
    """The result of a check."""

    READY = "ready"
    NOTE = "note"
    """The deployment can begin; an action remains for afterwards."""
    SHORT = "short"
    """The deployment would fail, or differ from the spec."""
    UNKNOWN = "unknown"
    """The check could not be made; never a pass."""


@dataclass(frozen=True)
class Answer:
    """One result of one check."""

    check: str
    state: State
    text: str
    fix: str = ""
    """A sentence, or a command that can be pasted."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "fix", located(self.fix))


def exit_code(answers: Sequence[Answer]) -> int:
    """0: ready. 1: a requirement is missing. 2: none is missing, but a check could not be made."""
    states = {answer.state for answer in answers}
    if State.SHORT in states:
        return ExitCode.FAILED
    return ExitCode.USAGE if State.UNKNOWN in states or not states else ExitCode.DONE
