"""The outcomes as JUnit XML, which every CI shows: a suite for each rule, a case for each resource."""

from collections import Counter
from collections.abc import Sequence
from itertools import groupby
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from policies.audit import Audit
from policies.evaluate import Outcome
from policies.report.wording import expired, found, place, printable, waived

# Of a case that did not pass: the element, and the counter of its suite.
_ELEMENTS = {
    "fail": ("failure", "failures"),
    "undetermined": ("error", "errors"),
    "waived": ("skipped", "skipped"),
    "not-applicable": ("skipped", "skipped"),
}


def document(audit: Audit) -> str:
    """The XML text. What could not be judged is an error; what is waived or not applicable is skipped."""
    root = Element("testsuites", name="trainstack audit")
    _count(root, audit.outcomes)
    for rule, outcomes in groupby(sorted(audit.outcomes, key=_key), lambda one: one.rule.id):
        rows = list(outcomes)
        suite = SubElement(root, "testsuite", name=f"{rule} {rows[0].rule.title}")
        _count(suite, rows)
        for _, same in groupby(rows, _key):
            _case(suite, list(same))
    indent(root)
    return tostring(root, encoding="unicode", xml_declaration=True)


def _element(outcome: Outcome) -> tuple[str, str] | None:
    """The element and the counter of an outcome; none of a pass. What does not bind fails no pipeline."""
    told = _ELEMENTS.get(outcome.result)
    return _ELEMENTS["waived"] if told and outcome.advisory else told


def _key(outcome: Outcome) -> tuple[str, str]:
    return outcome.rule.id, outcome.resource.urn if outcome.resource else ""


def _count(element: Element, outcomes: Sequence[Outcome]) -> None:
    """A resource that breaks a rule twice is one case, and counts by the first of its outcomes."""
    first = {_key(one): _element(one) for one in reversed(outcomes)}
    counts = Counter(told[1] for told in first.values() if told)
    element.set("tests", str(len(first)))
    for name in ("failures", "errors", "skipped"):
        element.set(name, str(counts[name]))


def _case(suite: Element, outcomes: list[Outcome]) -> None:
    """One case, with an element for each outcome that is no pass."""
    case = SubElement(suite, "testcase", classname=outcomes[0].rule.id, name=place(outcomes[0]))
    for one in outcomes:
        told = _element(one)
        if told:
            said = waived(one) if one.result == "waived" else found(one)
            child = SubElement(case, told[0], message=said)
            if one.result == "fail":
                child.set("type", one.rule.severity)
                child.text = "\n".join(filter(None, (f"fix: {printable(one.fix)}", expired(one))))
