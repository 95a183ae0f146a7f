"""Texts shared by the report formats."""

import re
from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING

from infra.exit_codes import OF_COMMAND
from policies.severity import SEVERITIES

if TYPE_CHECKING:
    from policies.audit import Audit
    from policies.evaluate import Result, RuleOutcome

DIFFER = "State and account differ (not counted in the exit code)"
# Control characters, which control terminals and are invalid in XML, and lone surrogates.
_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")


def printable(text: str) -> str:
    """An untrusted text on one line, without control characters."""
    return _UNPRINTABLE.sub("\N{REPLACEMENT CHARACTER}", text.replace("\n", " "))


def of(audit: "Audit", *results: "Result") -> "list[RuleOutcome]":
    """The outcomes with these results, the most severe first."""
    return sorted((one for one in audit.outcomes if one.result in results), key=_order)


def place(outcome: "RuleOutcome") -> str:
    """Name and kind of the resource."""
    about = outcome.resource
    if about is None:
        return "the stack"
    # Objects of a cluster with the same name differ by their namespace.
    named = about.origin == "live" and str(about.id).endswith(f"/{about.name}")
    return printable(f"{about.id if named else about.name} ({about.kind})")


def found(outcome: "RuleOutcome") -> str:
    """Message and property of an outcome, marked if it is advisory or known."""
    where = printable(_at(outcome.path))
    how = "advisory: " if outcome.advisory else "known: " if outcome.known else ""
    return f"{how}{printable(outcome.message)}{where}"


def waived(outcome: "RuleOutcome") -> str:
    """Reason, ticket, owner and last day of the waiver of a violation."""
    waiver = outcome.waiver
    assert waiver
    return printable(f"{waiver.reason} ({waiver.ticket}, {waiver.owner}, until {waiver.expires})")


def resolved(audit: "Audit") -> list[str]:
    """The violations of the baseline that no longer occur."""
    return [printable(f"{one.rule} {one.urn or 'the stack'}: {one.message}") for one in audit.resolved or ()]


def differences(audit: "Audit") -> list[tuple[str, str]]:
    """(missing, drifted or unmanaged; resource and message) of each difference of state and account."""
    return [
        (one.what, printable(f"{one.resource.name} ({one.resource.kind}): {one.message}{_at(one.path)}"))
        for one in audit.differences or ()
    ]


def _at(path: str) -> str:
    return f" ({path})" if path else ""


def expired(outcome: "RuleOutcome") -> str:
    """The expired waiver of a violation; empty without one."""
    waiver = outcome.waiver
    return (
        ""
        if waiver is None
        else printable(f"waived until {waiver.expires} ({waiver.ticket}, {waiver.owner})")
    )


def total(audit: "Audit") -> str:
    """Number of outcomes by result."""
    results = Counter(one.result for one in audit.outcomes)
    severe = _by_severity(one for one in audit.outcomes if one.result == "fail")
    rules = len({one.rule.id for one in audit.outcomes})
    known = sum(one.known for one in audit.outcomes if one.result == "fail")
    against = "" if audit.resolved is None else f", {known} of them known, {len(audit.resolved)} resolved"
    return (
        f"{rules} rules on {audit.resources} resources: {results['fail']} violations{severe}{against}, "
        f"{results['waived']} waived, {results['undetermined']} undetermined, {results['pass']} passed, "
        f"{results['not-applicable']} not applicable"
    )


def ending(audit: "Audit") -> str:
    """The exit code and its meaning; of a preview also how to judge what it leaves undetermined."""
    said = f"exit code {int(audit.code)}: {OF_COMMAND['audit'][audit.code]}"
    if audit.outcomes and not of(audit, "pass", "fail", "waived", "undetermined"):
        said += ". No rule applies to any resource, so nothing was judged"
    of_preview = audit.inputs is not None and audit.inputs.kind == "preview"
    if of_preview and of(audit, "undetermined"):
        said += ". Values that a preview does not know are known after `up`: audit the state then"
    return said


def _by_severity(failed: "Iterable[RuleOutcome]") -> str:
    counts = Counter(one.rule.severity for one in failed)
    text = ", ".join(f"{counts[one]} {one}" for one in reversed(SEVERITIES) if counts[one])
    return f" ({text})" if text else ""


def _order(outcome: "RuleOutcome") -> tuple[int, str, str]:
    urn = outcome.urn
    return -SEVERITIES.index(outcome.rule.severity), outcome.rule.id, urn
