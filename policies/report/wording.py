"""What every form of a report says in the same words."""

import re
from collections import Counter
from collections.abc import Iterable

from policies.audit import Audit
from policies.evaluate import Outcome, Result
from policies.severity import SEVERITIES

DIFFER = "State and account differ (not counted in the exit code)"
# Control characters, which steer terminals and which XML forbids, and halves of surrogate pairs.
_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")


def printable(text: str) -> str:
    """A text from a file that anybody may have written, on one line and without control characters."""
    return _UNPRINTABLE.sub("\N{REPLACEMENT CHARACTER}", text.replace("\n", " "))


def of(audit: Audit, *results: Result) -> list[Outcome]:
    """The outcomes with these results, the most severe first."""
    return sorted((one for one in audit.outcomes if one.result in results), key=_order)


def place(outcome: Outcome) -> str:
    """Name and kind of the resource."""
    about = outcome.resource
    if about is None:
        return "the stack"
    # In a cluster, many objects of one name are told apart by their namespace alone.
    named = about.origin == "live" and str(about.id).endswith(f"/{about.name}")
    return printable(f"{about.id if named else about.name} ({about.kind})")


def found(outcome: Outcome) -> str:
    """What was found, and at which property; whether it counts."""
    where = printable(_at(outcome.path))
    how = "advisory: " if outcome.advisory else "known: " if outcome.known else ""
    return f"{how}{printable(outcome.message)}{where}"


def waived(outcome: Outcome) -> str:
    """Who answers for a violation, why, and until when."""
    waiver = outcome.waiver
    assert waiver
    return printable(f"{waiver.reason} ({waiver.ticket}, {waiver.owner}, until {waiver.expires})")


def resolved(audit: Audit) -> list[str]:
    """The violations of the baseline that are gone."""
    return [printable(f"{one.rule} {one.urn or 'the stack'}: {one.message}") for one in audit.resolved or ()]


def differences(audit: Audit) -> list[tuple[str, str]]:
    """(missing, drifted or unmanaged; which resource and how) of each difference of state and account."""
    return [
        (one.what, printable(f"{one.resource.name} ({one.resource.kind}): {one.message}{_at(one.path)}"))
        for one in audit.differences or ()
    ]


def _at(path: str) -> str:
    return f" ({path})" if path else ""


def expired(outcome: Outcome) -> str:
    """That the waiver of a violation has ended; empty where it had none."""
    waiver = outcome.waiver
    return (
        ""
        if waiver is None
        else printable(f"waived until {waiver.expires} ({waiver.ticket}, {waiver.owner})")
    )


def total(audit: Audit) -> str:
    """How many outcomes of each kind."""
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


def _by_severity(failed: Iterable[Outcome]) -> str:
    counts = Counter(one.rule.severity for one in failed)
    told = ", ".join(f"{counts[one]} {one}" for one in reversed(SEVERITIES) if counts[one])
    return f" ({told})" if told else ""


def _order(outcome: Outcome) -> tuple[int, str, str]:
    urn = outcome.urn
    return -SEVERITIES.index(outcome.rule.severity), outcome.rule.id, urn
