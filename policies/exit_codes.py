"""Exit codes of an audit, from `infra.exit_codes`, and the outcomes that decide them."""

from collections.abc import Iterable
from enum import IntEnum

from infra.exit_codes import ExitCode
from policies.evaluate import RuleOutcome
from policies.severity import SEVERITIES, Severity


class AuditExitCode(IntEnum):
    """Names of exit codes for an audit; evidence bundles contain them."""

    CLEAN = ExitCode.DONE
    INTERNAL_ERROR = ExitCode.FAILED
    USAGE = ExitCode.USAGE
    VIOLATIONS = ExitCode.VIOLATIONS
    """At least one violation of the failing severity or above."""
    UNDETERMINED = ExitCode.UNDETERMINED
    """No violation, but an undetermined outcome of that severity."""
    EXPIRED_WAIVERS = ExitCode.EXPIRED_WAIVERS
    """Violations, all of them with an expired waiver."""


def is_counted(outcome: RuleOutcome, fail_on: Severity) -> bool:
    """Return whether an outcome is new, of a mandatory rule, and of the failing severity or above."""
    binds = not (outcome.advisory or (outcome.known and outcome.result == "fail"))
    return binds and SEVERITIES.index(outcome.rule.severity) >= SEVERITIES.index(fail_on)


def exit_code(outcomes: Iterable[RuleOutcome], fail_on: Severity) -> AuditExitCode:
    """The exit code for outcomes."""
    counted = [outcome for outcome in outcomes if is_counted(outcome, fail_on)]
    failed = [outcome for outcome in counted if outcome.result == "fail"]
    if failed:
        expired = all(outcome.waiver for outcome in failed)
        return AuditExitCode.EXPIRED_WAIVERS if expired else AuditExitCode.VIOLATIONS
    undetermined = any(outcome.result == "undetermined" for outcome in counted)
    return AuditExitCode.UNDETERMINED if undetermined else AuditExitCode.CLEAN
