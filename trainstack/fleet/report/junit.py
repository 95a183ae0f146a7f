"""JUnit XML of a fleet command: a suite per client, a case per stack."""

import re
from collections.abc import Sequence
from itertools import groupby
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from trainstack.fleet.outcome import StackOutcome, State
from trainstack.fleet.report.document import FleetReport, headline

# Characters that XML 1.0 has no form for.
_INVALID = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_ELEMENTS = {
    State.DONE: None,
    State.VIOLATED: ("failure", "failures"),
    State.FAILED: ("failure", "failures"),
    State.CHANGED: ("failure", "failures"),
    State.UNUSABLE: ("error", "errors"),
    State.TIMED_OUT: ("error", "errors"),
    State.INTERRUPTED: ("error", "errors"),
    State.NOT_STARTED: ("skipped", "skipped"),
}


def document(report: FleetReport) -> str:
    """The XML text."""
    root = Element("testsuites", name=f"trainstack fleet {report.command}")
    _count(root, report.outcomes)
    del root.attrib["skipped"]  # Jenkins accepts it on suites only (jenkinsci/xunit-plugin, junit-10.xsd)
    for client, group in groupby(sorted(report.outcomes, key=lambda one: one.id), lambda one: one.client):
        outcomes = list(group)
        suite = SubElement(root, "testsuite", name=client)
        _count(suite, outcomes)
        for one in outcomes:
            case = SubElement(
                suite, "testcase", classname=client, name=one.stack or client, time=f"{one.seconds:.1f}"
            )
            if element := _ELEMENTS[one.state]:
                text = _INVALID.sub("?", headline(report.command, one))
                SubElement(case, element[0], message=text, type=one.state.value)
    indent(root)
    return tostring(root, encoding="unicode", xml_declaration=True)


def _count(element: Element, outcomes: Sequence[StackOutcome]) -> None:
    found = [kind[1] for one in outcomes if (kind := _ELEMENTS[one.state])]
    element.set("tests", str(len(outcomes)))
    for counter in ("failures", "errors", "skipped"):
        element.set(counter, str(found.count(counter)))
    element.set("time", f"{sum(one.seconds for one in outcomes):.1f}")
