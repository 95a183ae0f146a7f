"""What a list of outcomes means for whoever has to go on or stop: the exit codes of `trainstack audit`."""

from collections.abc import Iterable
from enum import IntEnum

from policies.catalogue import SEVERITIES, Severity
from policies.evaluate import Outcome


class ExitCode(IntEnum):
    """Frozen: pipelines rely on them."""

    CLEAN = 0
    INTERNAL_ERROR = 1
    USAGE = 2
    VIOLATIONS = 3
    """At least one, of the severity that fails or above."""
    UNDETERMINED = 4
    """No violation, but something of that severity could not be judged."""
    EXPIRED_WAIVERS = 5
    """Violations, all of which somebody answered for until a day that is over."""


def counted(outcome: Outcome, fail_on: Severity) -> bool:
    """Whether an outcome is new, of a rule that binds, and of the severity that fails, or above."""
    binds = not (outcome.advisory or (outcome.known and outcome.result == "fail"))
    return binds and SEVERITIES.index(outcome.rule.severity) >= SEVERITIES.index(fail_on)


def verdict(outcomes: Iterable[Outcome], fail_on: Severity) -> ExitCode:
    """The exit code for these outcomes."""
    told = [outcome for outcome in outcomes if counted(outcome, fail_on)]
    failed = [outcome for outcome in told if outcome.result == "fail"]
    if failed:
        expired = all(outcome.waiver for outcome in failed)
        return ExitCode.EXPIRED_WAIVERS if expired else ExitCode.VIOLATIONS
    undetermined = any(outcome.result == "undetermined" for outcome in told)
    return ExitCode.UNDETERMINED if undetermined else ExitCode.CLEAN
