"""What an audit found, and what it was made from: all that reports and evidence are made of."""

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from policies.baseline import Known, stacks_of
from policies.coverage import WHOLE, Coverage
from policies.evaluate import Outcome
from policies.exit_codes import AuditExitCode
from policies.judge import Judge
from policies.resource import Resource
from policies.severity import Severity

if TYPE_CHECKING:
    from policies.sources.live.join import Difference


@dataclass(frozen=True)
class Inputs:
    """All that decides what an audit finds, besides the rules: the same again gives the same again."""

    kind: str
    """What was judged: state, preview, or another source."""
    at: datetime.datetime
    """The time of the audit, in UTC."""
    files: Mapping[str, str]
    """SHA-256 of every file that was read, by what it is: its kind, waivers, config, baseline."""
    resources: Sequence[Resource]
    judge: Judge
    coverage: Coverage = WHOLE


@dataclass(frozen=True)
class Audit:
    """Outcomes after waivers, with the verdict."""

    source: str
    """What was judged: the name of a file."""
    outcomes: Sequence[Outcome]
    resources: int
    """How many there were."""
    code: AuditExitCode
    advice: Sequence[str] = ()
    """What to do about waivers before they expire."""
    fail_on: Severity = "low"
    """The least severity that counts."""
    resolved: Sequence[Known] | None = None
    """Violations of the baseline that are gone; None without a baseline."""
    inputs: Inputs | None = None
    differences: "Sequence[Difference] | None" = None
    """In which an account differs from its state; None where only one of them was read."""

    @property
    def stacks(self) -> frozenset[str]:
        """PROJECT/STACK or the account of what was judged, as far as its URNs say."""
        told = [one.resource for one in self.outcomes if one.resource]
        return stacks_of(one.urn for one in (self.inputs.resources if self.inputs else told))
