"""The findings for a reader: the most severe first, the fix below each."""

from collections import Counter
from collections.abc import Iterator, Sequence

from policies.audit import Audit
from policies.catalogue import SEVERITIES
from policies.evaluate import Outcome

_TOLD = ("fail", "undetermined")


def lines(audit: Audit) -> Iterator[str]:
    """One paragraph for each violation, one line for each outcome that is waived or unknown, and the sum."""
    found = sorted((one for one in audit.outcomes if one.result in _TOLD), key=_order)
    for one in found:
        if one.result == "fail":
            yield f"{one.rule.severity.upper():8} {one.rule.id} {_place(one)}"
            yield f"         {one.rule.title}"
            yield f"         found: {one.message}{f' ({one.path})' if one.path else ''}"
            yield f"         fix:   {one.fix}"
            if one.waiver is not None:
                yield f"         waived until {one.waiver.expires} ({one.waiver.ticket}, {one.waiver.owner})"
            yield ""
    unknown = [one for one in found if one.result == "undetermined"]
    if unknown:
        yield "Could not be judged:"
        yield from (f"  {one.rule.id} {_place(one)}: {one.message}" for one in unknown)
        yield ""
    waived = sorted((one for one in audit.outcomes if one.result == "waived"), key=_order)
    if waived:
        yield "Waived:"
        yield from (f"  {one.rule.id} {_place(one)}: {_by(one)}" for one in waived)
        yield ""
    if audit.advice:
        yield from (f"Advice: {said}" for said in audit.advice)
        yield ""
    yield _sum(audit.outcomes, audit.resources)


def _order(outcome: Outcome) -> tuple[int, str, str]:
    urn = outcome.resource.urn if outcome.resource else ""
    return -SEVERITIES.index(outcome.rule.severity), outcome.rule.id, urn


def _place(outcome: Outcome) -> str:
    if outcome.resource is None:
        return "the stack"
    return f"{outcome.resource.name} ({outcome.resource.kind})"


def _by(outcome: Outcome) -> str:
    waiver = outcome.waiver
    assert waiver
    return f"{waiver.reason} ({waiver.ticket}, {waiver.owner}, until {waiver.expires})"


def _sum(outcomes: Sequence[Outcome], resources: int) -> str:
    results = Counter(one.result for one in outcomes)
    by_severity = Counter(one.rule.severity for one in outcomes if one.result == "fail")
    severe = ", ".join(f"{by_severity[one]} {one}" for one in reversed(SEVERITIES) if by_severity[one])
    rules = len({one.rule.id for one in outcomes})
    violations = f"{results['fail']} violations{f' ({severe})' if severe else ''}"
    return (
        f"{rules} rules on {resources} resources: {violations}, {results['waived']} waived, "
        f"{results['undetermined']} undetermined, {results['pass']} passed, "
        f"{results['not-applicable']} not applicable"
    )
