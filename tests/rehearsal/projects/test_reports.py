"""Assertions about a rehearsal, and the forms of its report."""

import json
from collections import Counter
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from pulumi.automation.events import DiagnosticEvent, EngineEvent
from rich.console import Console

from infra.engine.stack import OperationOutcome
from infra.errors import MAY_REPLACE, UserError
from rehearsal.projects import assertions, documentation
from rehearsal.projects.observed import Observed, SeenChange, SeenResource
from rehearsal.projects.reports import forms
from rehearsal.projects.reports.model import DESTROY, UNCHANGED, UP, ProjectReport, RehearsalStep
from rehearsal.projects.reports.text import show
from tests.browser.chromium import browser, program
from tests.policies.report.test_reports import JENKINS
from tests.trainstack.cli.command import checked, run

BUCKET, DATABASE = "aws:s3/bucket:Bucket", "aws:rds/instance:Instance"
LATER = "x-04da6b54-80e4-46f7-96ec-b56ff0331ba9"
LOGS = {"forceDestroy": False, "tags": {"owner": "data"}, "versions": [{"on": True}]}
SEEN = Observed(
    [
        SeenResource(BUCKET, "logs", LOGS),
        SeenResource(DATABASE, "db", {"password": "[secret]", "port": 1, "address": LATER}),
    ],
    {"url": "https://a.example", "key": "[secret]", "none": None},
    [SeenChange("replace", DATABASE, "db", ("engine",)), SeenChange("create", BUCKET, "logs")],
)
HOSTILE = "a\x1b[31m|`<b>\n\ud800]]>&\"'"


def held(text: str, folder: Path) -> list[bool]:
    (folder / "rehearsal.yaml").write_text(text)
    found = assertions.of_project(folder)
    assert found is not None
    return [one.passed for one in assertions.judge(found, SEEN)]


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("{name: logs}", True),
        ("{type: 'aws:s3/*', count: 1}", True),
        ("{type: 'aws:s3/*', count: 2}", False),
        ("{type: 'aws:sqs/*'}", False),
        ("{type: 'aws:sqs/*', count: 0}", True),
        ("{name: logs, properties: {forceDestroy: false, tags.owner: data, 'versions[0].on': true}}", True),
        ("{name: logs, properties: {forceDestroy: true}}", False),
        ("{name: logs, properties: {tags: {owner: data}, acl: null}}", True),
        ("{name: logs, properties: {forceDestroy: null}}", False),
        ("{name: logs, properties: {acl: private}}", False),
        ("{name: db, properties: {port: 1}}", True),
        # YAML's `true` is no number, a secret and what a preview does not know are not compared.
        ("{name: db, properties: {port: true}}", False),
        ("{name: db, properties: {password: '[secret]'}}", False),
        ("{name: db, properties: {address: x}}", False),
    ],
)
def test_a_resource_is_as_asserted(text: str, holds: bool, tmp_path: Path) -> None:
    assert held(f"resources: [{text}]", tmp_path) == [holds]


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("{url: {}}", True),
        ("{none: {}}", True),
        ("{other: {}}", False),
        ("{url: {equals: 'https://a.example'}}", True),
        ("{url: {equals: a}}", False),
        ("{url: {matches: '^https://'}}", True),
        ("{url: {matches: '^ftp'}}", False),
        ("{key: {}}", True),
        ("{key: {matches: secret}}", False),
    ],
)
def test_an_output_is_as_asserted(text: str, holds: bool, tmp_path: Path) -> None:
    assert held(f"outputs: {text}", tmp_path) == [holds]


def test_changes_that_must_not_happen(tmp_path: Path) -> None:
    rows = (
        "{operation: replace, name: d?}",
        "{operation: replace, type: 'aws:s3/*'}",
        "{operation: delete, name: '*'}",
    )
    assert held(f"never: [{', '.join(rows)}]", tmp_path) == [False, True, True]


def test_a_project_without_a_file_has_no_assertions(tmp_path: Path) -> None:
    assert assertions.of_project(tmp_path) is None


@pytest.mark.parametrize(
    ("text", "path", "fix"),
    [
        ("resource: []", "resource", "Did you mean `resources`?"),
        ("resources: [{nme: a}]", "resources[0].nme", "Did you mean `name`?"),
        ("resources: [{count: 1}]", "resources[0]", ""),
        ("resources: [{name: a, count: '1'}]", "resources[0].count", ""),
        ("resources: [{name: a, count: -1}]", "resources[0].count", ""),
        ("resources: [{name: a, count: true}]", "resources[0].count", ""),
        ("resources: {name: a}", "resources", ""),
        ("outputs: {url: {match: a}}", "outputs.url.match", "Did you mean `matches`?"),
        ("outputs: {url: {matches: '('}}", "outputs.url.matches", ""),
        ("never: [{operation: remove, name: a}]", "never[0].operation", ""),
        ("never: [{name: a}]", "never[0].operation", ""),
    ],
)
def test_a_file_is_read_strictly_before_anything_runs(text: str, path: str, fix: str, tmp_path: Path) -> None:
    (tmp_path / "Pulumi.yaml").write_text("name: x\nruntime: python\n")
    (tmp_path / "__main__.py").write_text("")
    (tmp_path / "rehearsal.yaml").write_text(text)
    with pytest.raises(UserError) as refused:
        run("rehearse", "run", str(tmp_path), "--report", "junit")
    found = [one for one in refused.value.problems if one.path == f"{tmp_path}/rehearsal.yaml: {path}"]
    assert [one.code for one in found] == ["rehearsal-assertion-invalid"]
    assert fix in found[0].fix


def test_a_report_is_of_the_whole_rehearsal(tmp_path: Path) -> None:
    with pytest.raises(UserError) as refused:
        run("rehearse", "run", str(tmp_path), "--report", "html", "--", "up")
    assert refused.value.codes == (("option-conflict", "--report"),)


def step(name: str, *, fails: str = "", changes: tuple[SeenChange, ...] = (), **types: int) -> RehearsalStep:
    counts = Counter(one.operation for one in changes)
    outcome = OperationOutcome(not fails, dict(counts), [fails] if fails else [], 1.5)
    return RehearsalStep(name, outcome, list(changes), Counter({HOSTILE: 1, BUCKET: 2, **types}))


def reported(*, fails: str = "", left: int = 0, hold: bool = True, restless: bool = False) -> ProjectReport:
    change = SeenChange("update", BUCKET, HOSTILE, ("a.b",))
    again = RehearsalStep(UNCHANGED) if fails else step(UNCHANGED, changes=(change,) if restless else ())
    verdict = assertions.AssertionVerdict(
        "resources[0]", f"resources {HOSTILE}", "" if hold else f"no\n{HOSTILE}"
    )
    steps = (step(UP, fails=fails, changes=(change,)), again, step(DESTROY))
    return ProjectReport("shop", "dev", steps, left, [verdict], unused={"azure:core/group:Group": 3})


CASES: list[tuple[dict[str, Any], tuple[int, int, int]]] = [
    ({}, (0, 0, 0)),
    ({"fails": HOSTILE}, (0, 1, 1)),
    ({"left": 2}, (1, 0, 0)),
    ({"hold": False}, (1, 0, 0)),
    ({"restless": True, "hold": False, "left": 1}, (3, 0, 0)),
]


@pytest.mark.parametrize(("what", "counts"), CASES)
def test_junit_has_a_case_for_each_check_in_the_form_of_jenkins(
    what: dict[str, Any], counts: tuple[int, int, int]
) -> None:
    report = reported(**what)
    root = ElementTree.fromstring(forms.write(report, "junit"))
    for one in root.iter():
        required, optional, children = JENKINS.get(one.tag, (set(), set(), set()))
        assert required <= one.attrib.keys() <= required | optional, one.tag
        assert {child.tag for child in one} <= children, one.tag
    for suite in root.iter("testsuite"):
        assert suite.get("tests") == str(len(suite.findall("testcase")))
    assert (int(root.get("failures", "")), int(root.get("errors", ""))) == counts[:2]
    assert len(root.findall(".//skipped")) == counts[2]
    assert report.passed is (counts == (0, 0, 0))
    keys = [(one.get("classname"), one.get("name")) for one in root.iter("testcase")]
    assert len(keys) == len(set(keys)) == 5 and all(map(all, keys))
    assert "unknown: 2 types" in (root.findtext(".//system-out") or "")


@pytest.mark.parametrize(("what", "counts"), CASES)
def test_json_says_what_is_known_of_each_type(what: dict[str, Any], counts: tuple[int, int, int]) -> None:
    report = reported(**what)
    found = checked(forms.write(report, "json"))
    assert found["passed"] is (counts == (0, 0, 0))
    assert found["emulation"]["emulated"] == [{"type": BUCKET, "resources": 2}]
    assert {one["type"]: one["resources"] for one in found["emulation"]["unknown"]} == {
        HOSTILE: 1, "azure:core/group:Group": 3,
    }  # fmt: skip


@pytest.mark.skipif(program() is None, reason="needs chromium")
def test_the_page_needs_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    path.write_text(forms.write(reported(fails=HOSTILE, left=1, hold=False), "html"), encoding="utf-8")
    with browser() as tab:
        tab.open(path, width=400)
        assert tab.errors == [] and tab.requests == [path.resolve().as_uri()]
        assert tab.evaluate("document.querySelectorAll('tbody tr').length") == 9
        wide = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        assert tab.evaluate(wide) == 0


def test_every_form_names_updates_that_may_replace() -> None:
    report, text = reported(), f"{MAY_REPLACE}: it is not known"
    for message in (text, "something else"):
        warning = DiagnosticEvent(message, "never", "warning", urn=f"urn:pulumi:dev::shop::{DATABASE}::db")
        report.steps[0].take(EngineEvent(1, 0, diagnostic_event=warning))
    named = [f"Instance db {text}"]
    assert checked(forms.write(report, "json"))["may_replace"] == named
    with (console := Console()).capture() as shown:
        show(console, Path("shop"), report)
    others = shown.get(), forms.write(report, "junit"), forms.write(report, "html")
    assert all(named[0] in one for one in others)


def test_texts_of_a_report_keep_their_characters() -> None:
    assert json.loads(forms.write(reported(), "json"))["steps"][0]["changes"][0]["name"] == HOSTILE


def test_the_page_about_emulation_is_current() -> None:
    assert documentation.FILE.read_text() == documentation.document(), documentation.__doc__
