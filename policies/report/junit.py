"""The outcomes as JUnit XML, which every CI shows: a suite for each rule, a case for each resource."""

from collections import Counter
from collections.abc import Sequence
from itertools import groupby
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from policies.audit import Audit
from policies.evaluate import Outcome
from policies.exit_codes import is_counted
from policies.report.wording import DIFFER, differences, expired, found, place, printable, waived
from policies.severity import Severity

# Of a case that did not pass: the element, and the counter of its suite.
_ELEMENTS = {
    "fail": ("failure", "failures"),
    "undetermined": ("error", "errors"),
    "waived": ("skipped", "skipped"),
    "not-applicable": ("skipped", "skipped"),
}
_COUNTERS = ("failures", "errors", "skipped")
"""The worst first."""


def document(audit: Audit) -> str:
    """The XML text. What could not be judged is an error; what is waived or does not count is skipped."""
    root = Element("testsuites", name="trainstack audit")
    _count(root, audit.outcomes, audit.fail_on)
    # Jenkins validates, and knows this counter of suites alone (jenkinsci/xunit-plugin, junit-10.xsd).
    del root.attrib["skipped"]
    for rule, outcomes in groupby(sorted(audit.outcomes, key=_key), lambda one: one.rule.id):
        rows = list(outcomes)
        suite = SubElement(root, "testsuite", name=f"{rule} {rows[0].rule.title}")
        _count(suite, rows, audit.fail_on)
        cases = [list(same) for _, same in groupby(rows, _key)]
        named = Counter(place(one[0]) for one in cases)
        for case in cases:
            # GitLab takes cases of one name for one; children of two parents may have the same.
            name = place(case[0])
            _case(suite, f"{name} {printable(case[0].urn)}" if named[name] > 1 else name, case, audit.fail_on)
    if audit.differences:  # told in a suite without a case, which nothing counts
        suite = SubElement(root, "testsuite", name=DIFFER)
        _count(suite, [], audit.fail_on)
        told = SubElement(suite, "system-out")
        told.text = "\n".join(f"{what} {said}" for what, said in differences(audit))
    indent(root)
    return tostring(root, encoding="unicode", xml_declaration=True)


def _element(outcome: Outcome, fail_on: Severity) -> tuple[str, str] | None:
    """The element and the counter of an outcome; none of a pass. What does not count fails no pipeline."""
    told = _ELEMENTS.get(outcome.result)
    return told if not told or is_counted(outcome, fail_on) else _ELEMENTS["waived"]


def _key(outcome: Outcome) -> tuple[str, str]:
    return outcome.rule.id, outcome.urn


def _count(element: Element, outcomes: Sequence[Outcome], fail_on: Severity) -> None:
    """A resource that breaks a rule twice is one case, and counts by the worst of its outcomes."""
    cases: dict[tuple[str, str], set[str]] = {}
    for one in outcomes:
        told = _element(one, fail_on)
        cases.setdefault(_key(one), set()).update(told[1:] if told else ())
    counts = Counter(next((name for name in _COUNTERS if name in told), "") for told in cases.values())
    element.set("tests", str(len(cases)))
    for name in _COUNTERS:
        element.set(name, str(counts[name]))


def _case(suite: Element, name: str, outcomes: list[Outcome], fail_on: Severity) -> None:
    """One case, with an element for each outcome that is no pass; what fails is not skipped as well."""
    case = SubElement(suite, "testcase", classname=outcomes[0].rule.id, name=name)
    failing = [one for one in outcomes if is_counted(one, fail_on) and one.result in ("fail", "undetermined")]
    for one in failing or outcomes:
        told = _element(one, fail_on)
        if told:
            said = waived(one) if one.result == "waived" else found(one)
            child = SubElement(case, told[0], message=said)
            if one.result == "fail":
                child.set("type", one.rule.severity)
                child.text = "\n".join(filter(None, (f"fix: {printable(one.fix)}", expired(one))))
