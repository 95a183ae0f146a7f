"""JUnit XML report for CI: a suite per rule, a case per resource."""

from collections import Counter
from collections.abc import Sequence
from itertools import groupby
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from policies.audit import Audit
from policies.evaluate import RuleOutcome
from policies.exit_codes import is_counted
from policies.report.texts import DIFFER, differences, expired, found, place, printable, waived
from policies.severity import Severity

# For a case that did not pass: its element, and the counter of its suite.
_ELEMENTS = {
    "fail": ("failure", "failures"),
    "undetermined": ("error", "errors"),
    "waived": ("skipped", "skipped"),
    "not-applicable": ("skipped", "skipped"),
}
_COUNTERS = ("failures", "errors", "skipped")
"""The worst first."""


def document(audit: Audit) -> str:
    """The XML text. Undetermined outcomes are errors; waived and uncounted ones are skipped."""
    root = Element("testsuites", name="trainstack audit")
    _count(root, audit.outcomes, audit.fail_on)
    # Jenkins validates, and accepts this counter on suites only (jenkinsci/xunit-plugin, junit-10.xsd).
    del root.attrib["skipped"]
    for rule, outcomes in groupby(sorted(audit.outcomes, key=_key), lambda one: one.rule.id):
        rows = list(outcomes)
        suite = SubElement(root, "testsuite", name=f"{rule} {rows[0].rule.title}")
        _count(suite, rows, audit.fail_on)
        cases = [list(same) for _, same in groupby(rows, _key)]
        named = Counter(place(one[0]) for one in cases)
        for case in cases:
            # GitLab merges cases with the same name; children of two parents may share one.
            name = place(case[0])
            _case(suite, f"{name} {printable(case[0].urn)}" if named[name] > 1 else name, case, audit.fail_on)
    if audit.differences:  # in a suite without a case, which is not counted
        suite = SubElement(root, "testsuite", name=DIFFER)
        _count(suite, [], audit.fail_on)
        output = SubElement(suite, "system-out")
        output.text = "\n".join(f"{what} {text}" for what, text in differences(audit))
    indent(root)
    return tostring(root, encoding="unicode", xml_declaration=True)


def _element(outcome: RuleOutcome, fail_on: Severity) -> tuple[str, str] | None:
    """Element and counter of an outcome; None for a pass. An uncounted outcome fails no pipeline."""
    found = _ELEMENTS.get(outcome.result)
    return found if not found or is_counted(outcome, fail_on) else _ELEMENTS["waived"]


def _key(outcome: RuleOutcome) -> tuple[str, str]:
    return outcome.rule.id, outcome.urn


def _count(element: Element, outcomes: Sequence[RuleOutcome], fail_on: Severity) -> None:
    """Set the counters. A resource with several outcomes of a rule is one case with the worst of them."""
    cases: dict[tuple[str, str], set[str]] = {}
    for one in outcomes:
        found = _element(one, fail_on)
        cases.setdefault(_key(one), set()).update(found[1:] if found else ())
    counts = Counter(next((name for name in _COUNTERS if name in case), "") for case in cases.values())
    element.set("tests", str(len(cases)))
    for name in _COUNTERS:
        element.set(name, str(counts[name]))


def _case(suite: Element, name: str, outcomes: list[RuleOutcome], fail_on: Severity) -> None:
    """A case, with an element per outcome other than pass; without skipped ones if it fails."""
    case = SubElement(suite, "testcase", classname=outcomes[0].rule.id, name=name)
    failing = [one for one in outcomes if is_counted(one, fail_on) and one.result in ("fail", "undetermined")]
    for one in failing or outcomes:
        element = _element(one, fail_on)
        if element:
            message = waived(one) if one.result == "waived" else found(one)
            child = SubElement(case, element[0], message=message)
            if one.result == "fail":
                child.set("type", one.rule.severity)
                child.text = "\n".join(filter(None, (f"fix: {printable(one.fix)}", expired(one))))
