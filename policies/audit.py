"""What an audit found: what every form of a report is made from."""

from collections.abc import Sequence
from dataclasses import dataclass

from policies.evaluate import Outcome
from policies.verdict import ExitCode


@dataclass(frozen=True)
class Audit:
    """Outcomes after waivers, with the verdict."""

    source: str
    """What was judged: the name of a file."""
    outcomes: Sequence[Outcome]
    resources: int
    """How many there were."""
    code: ExitCode
    advice: Sequence[str] = ()
    """What to do about waivers before they expire."""
