"""Reports of a rehearsal for programs: JSON, and JUnit for CI; and the page for a browser."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from infra import pages
from infra.engine.stack import OperationOutcome
from rehearsal.projects import coverage
from rehearsal.projects.reports import Form
from rehearsal.projects.reports.model import UNCHANGED, ProjectReport, RehearsalStep
from rehearsal.projects.reports.text import outcome_line, standing_line

SCHEMA = "trainstack.rehearsal/1"
_PAGE = Path(__file__).with_name("page.html.j2")


class Case(NamedTuple):
    """One check of a rehearsal: a step, the clean end, or an assertion."""

    suite: str
    name: str
    result: Literal["passed", "failed", "error", "skipped"]
    found: str = ""
    seconds: float | None = None


def write(report: ProjectReport, form: Form) -> str:
    """The report in a form other than text."""
    match form:
        case "json":
            return json.dumps(document(report), indent=2)
        case "junit":
            return junit(report)
        case "html":
            return page(report)
    raise ValueError(form)


def document(report: ProjectReport) -> dict[str, Any]:
    """The report as JSON (docs/reference/schemas/projects/rehearsal.schema.json)."""
    return {
        "schema": SCHEMA,
        "project": report.project,
        "stack": report.stack,
        "passed": report.passed,
        "steps": [_step(one) for one in report.steps],
        "may_replace": report.unsure,
        "left_behind": report.left,
        "assertions": [
            {"path": one.path, "name": one.name, "passed": one.passed, "found": one.found}
            for one in report.assertions
        ],
        "emulation": {
            standing.value.replace(" ", "_"): [
                {"type": token, "resources": count} for token, count in types.items()
            ]
            for standing, types in report.standings.items()
        },
        "left_out": dict(report.unused),
        "only_secrets": [*report.secret],
        "not_emulated": coverage.lacking(report.errors),
        "requires": [*report.requires],
        "pinned": report.pins,
    }


def _step(step: RehearsalStep) -> dict[str, Any]:
    outcome = step.outcome or OperationOutcome(succeeded=False)
    result = "not tried" if step.outcome is None else "done" if outcome.succeeded else "failed"
    return {
        "name": step.name,
        "result": result,
        "seconds": round(outcome.seconds, 1),
        "counts": outcome.changes,
        "errors": [one for one in outcome.errors if one],
        "changes": [
            {"operation": one.operation, "type": one.type, "name": one.name, "changed": [*one.changed]}
            for one in step.changes
        ],
    }


def cases(report: ProjectReport) -> Iterator[Case]:
    """The checks of a rehearsal, in their order."""
    for step in report.steps:
        outcome = step.outcome
        if outcome is None:
            yield Case("steps", step.name, "skipped", "not tried, as a step before it failed")
        elif not outcome.succeeded:
            yield Case("steps", step.name, "error", "\n".join(outcome.errors) or "failed", outcome.seconds)
        elif step.name == UNCHANGED and outcome.changed:
            changes = "\n".join(map(str, step.changes))
            yield Case("steps", step.name, "failed", f"changes without a cause:\n{changes}", outcome.seconds)
        else:
            yield Case("steps", step.name, "passed", seconds=outcome.seconds)
    if any(one.name == "destroy" for one in report.steps):
        left = f"{report.left} resources are left in the emulated clouds" if report.left else ""
        yield Case("steps", "destroy leaves nothing", "failed" if left else "passed", left)
    for one in report.assertions:
        name = f"{one.path} {one.name}"
        yield Case("assertions", name, "passed" if one.passed else "failed", one.found)


def junit(report: ProjectReport) -> str:
    """JUnit XML: a suite of the steps, one of the assertions, and one about what is emulated."""
    found = list(cases(report))
    root = Element("testsuites", name=f"trainstack rehearsal of {_text(report.project)}")
    # Jenkins validates, and accepts `skipped` on suites only (jenkinsci/xunit-plugin, junit-10.xsd).
    _count(root, found, skipped=False)
    for suite in dict.fromkeys(one.suite for one in found):
        rows = [one for one in found if one.suite == suite]
        element = SubElement(root, "testsuite", name=suite)
        _count(element, rows, skipped=True)
        for row in rows:
            _case(element, report.project, row)
    element = SubElement(root, "testsuite", name="emulation")
    _count(element, [], skipped=True)
    lines = [f"{one.value}: {standing_line(one, types)}" for one, types in report.standings.items()]
    lines += [f"may be replaced: {one}" for one in report.unsure]
    lines += [f"pinned: {one}" for one in report.pins]
    SubElement(element, "system-out").text = _text("\n".join(lines))
    indent(root)
    return tostring(root, encoding="unicode", xml_declaration=True)


def _count(element: Element, rows: list[Case], *, skipped: bool) -> None:
    names = {"failures": "failed", "errors": "error"} | ({"skipped": "skipped"} if skipped else {})
    element.set("tests", str(len(rows)))
    for name, result in names.items():
        element.set(name, str(sum(row.result == result for row in rows)))


def _case(suite: Element, project: str, row: Case) -> None:
    case = SubElement(suite, "testcase", classname=_text(f"{project}.{row.suite}"), name=_text(row.name))
    if row.seconds is not None:
        case.set("time", f"{row.seconds:.1f}")
    element = {"failed": "failure", "error": "error", "skipped": "skipped"}.get(row.result)
    if element:
        message, _, rest = _text(row.found).partition("\n")
        child = SubElement(case, element, message=message)
        child.text = rest or None


def _text(text: str) -> str:
    """A text without characters that XML 1.0 does not have."""
    return "".join(one if one in "\t\n" or " " <= one < "\ud800" or one >= "\ue000" else "?" for one in text)


def page(report: ProjectReport) -> str:
    """One HTML file without requests to other hosts."""
    values: Mapping[str, Any] = {
        "report": report,
        "cases": list(cases(report)),
        "steps": [(one.name, outcome_line(one.outcome), one.changes) for one in report.steps],
        "standings": [
            (one.value, standing_line(one, {}) if not types else "", types)
            for one, types in report.standings.items()
        ],
        "lacking": coverage.lacking(report.errors),
    }
    return pages.rendered(_PAGE, values)
