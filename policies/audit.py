"""What an audit found: what every form of a report is made from."""

from collections.abc import Sequence
from dataclasses import dataclass

from policies.evaluate import Outcome
from policies.verdict import ExitCode


@dataclass(frozen=True)
class Audit:
    """Outcomes after waivers, with the verdict; `resources` is how many there were."""

    outcomes: Sequence[Outcome]
    resources: int
    code: ExitCode
    advice: Sequence[str] = ()
    """What to do about waivers before they expire."""
