"""What a check of an account found, and what follows from all of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from infra.errors import USAGE_EXIT_CODE

SHORTFALL_EXIT_CODE = 1


class State(StrEnum):
    """What is known after a check."""

    READY = "ready"
    NOTE = "note"
    """Nothing stands in the way of the deployment; something remains to be done after it."""
    SHORT = "short"
    """The deployment would fail, or would do something else than the spec says."""
    UNKNOWN = "unknown"
    """The check could not be made, which is never a pass."""


@dataclass(frozen=True)
class Answer:
    """What one check says of one thing."""

    check: str
    state: State
    said: str
    fix: str = ""
    """What to do: a sentence, or a command as it can be pasted."""


def exit_code(answers: Sequence[Answer]) -> int:
    """0: ready. 1: something is missing. 2: nothing that was asked is missing, but not all could be asked."""
    states = {answer.state for answer in answers}
    if State.SHORT in states:
        return SHORTFALL_EXIT_CODE
    return USAGE_EXIT_CODE if State.UNKNOWN in states or not states else 0
