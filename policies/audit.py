"""Inputs and result of an audit; reports and evidence are made from them."""

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from policies.baseline import KnownFinding, stacks_of
from policies.coverage import WHOLE, Coverage
from policies.evaluate import RuleOutcome
from policies.exit_codes import AuditExitCode
from policies.judge import Judge
from policies.resource import Resource
from policies.severity import Severity

if TYPE_CHECKING:
    from policies.sources.live.join import Difference


@dataclass(frozen=True)
class Inputs:
    """Inputs of an audit. The same inputs and rules give the same result."""

    kind: str
    """Source: state, preview, snapshot or live."""
    at: datetime.datetime
    """The time of the audit, in UTC."""
    files: Mapping[str, str]
    """SHA-256 of every file that was read, by role: kind of source, waivers, config, baseline."""
    resources: Sequence[Resource]
    judge: Judge
    coverage: Coverage = WHOLE


@dataclass(frozen=True)
class Audit:
    """Outcomes after waivers and baseline, with the exit code."""

    source: str
    """Name of the file or account."""
    outcomes: Sequence[RuleOutcome]
    resources: int
    """Number of resources."""
    code: AuditExitCode
    advice: Sequence[str] = ()
    """Waivers that expire soon or are no longer needed."""
    fail_on: Severity = "low"
    """Least severity that counts."""
    resolved: Sequence[KnownFinding] | None = None
    """Violations of the baseline that no longer occur; None without a baseline."""
    inputs: Inputs | None = None
    differences: "Sequence[Difference] | None" = None
    """Differences between an account and its state; None if only one of them was read."""

    @property
    def stacks(self) -> frozenset[str]:
        """PROJECT/STACK or account of the judged resources, from their URNs."""
        judged = [one.resource for one in self.outcomes if one.resource]
        return stacks_of(one.urn for one in (self.inputs.resources if self.inputs else judged))
