"""The forms of a report: valid for who reads them, whatever a file has for names."""

import datetime
import json
import re
from dataclasses import replace
from typing import Any
from xml.etree import ElementTree

import pytest

from policies.audit import Audit, Inputs
from policies.catalog import PolicyRule
from policies.evaluate import Result, RuleOutcome
from policies.exit_codes import exit_code
from policies.judge import Judge
from policies.report import html_page, json_report, junit, markdown, sarif, text
from policies.report.markdown import MOST_CHARACTERS
from policies.resource import Resource
from policies.severity import Severity
from policies.sources.live.join import Difference
from policies.waivers.waiver import Selector, Waiver
from tests.trainstack.cli.command import checked

KIND = "aws:fsx/lustreFileSystem:LustreFileSystem"
HOSTILE = "a\x1b[31m|`<b>\n\ud800]]>&@team"
RULES = {
    "MLS-A-01": PolicyRule("MLS-A-01", "critical", (KIND,), "Because.", "Close it.", title="It is closed."),
    "MLS-B-01": PolicyRule("MLS-B-01", "medium", (KIND,), "Because.", "Shrink it.", title="It is small."),
}
DAY = datetime.date(2026, 11, 23)
WAIVER = Waiver("MLS-B-01", Selector(), "anna", ("ben",), "it moves", "SEC-1", DAY, DAY, "watched")


def outcome(rule: str, result: Result, name: str = "one", **more: Any) -> RuleOutcome:
    resource = Resource(KIND, f"urn:pulumi:dev::app::{KIND}::{name}", name)
    fix = RULES[rule].remediation if result in ("fail", "waived") else ""
    said = "" if result == "pass" else f"it is so: {name}"
    return RuleOutcome(RULES[rule], resource, result, said, fix=fix, **more)


FOUND = [
    outcome("MLS-B-01", "fail", "second"),
    outcome("MLS-B-01", "fail", "late", waiver=WAIVER),
    outcome("MLS-B-01", "waived", "known", waiver=WAIVER),
    outcome("MLS-A-01", "fail", HOSTILE, path="props.open"),
    outcome("MLS-A-01", "fail", HOSTILE, path="props.wide"),
    RuleOutcome(RULES["MLS-A-01"], None, "fail", "the stack has none", fix="Make one."),
    outcome("MLS-A-01", "undetermined", "later"),
    outcome("MLS-A-01", "not-applicable", "other"),
    outcome("MLS-A-01", "pass", "good"),
]


def audited(found: list[RuleOutcome] = FOUND) -> Audit:
    return Audit("my state.json", found, 7, exit_code(found, "low"), ("waivers[0] ends",))


def test_a_text_is_sorted_by_severity_and_has_no_control_characters() -> None:
    said = text.document(audited())
    assert [line.split()[1] for line in said.splitlines() if re.match("(CRIT|MED)", line)] == [
        "MLS-A-01", "MLS-A-01", "MLS-A-01", "MLS-B-01", "MLS-B-01",
    ]  # fmt: skip
    assert "\x1b" not in said
    assert "2026-11-23 (SEC-1, anna)" in said
    assert "Undetermined:\n  MLS-A-01 later" in said
    assert "Waived:\n  MLS-B-01 known" in said
    assert "Advice: waivers[0] ends" in said
    sums = "5 violations (3 critical, 2 medium), 1 waived, 1 undetermined, 1 passed, 1 not applicable"
    *_, counts, ending = said.splitlines()
    assert counts.endswith(f" 7 resources: {sums}")
    assert ending.startswith("exit code 3")


def test_a_text_of_a_preview_says_when_undetermined_values_are_known() -> None:
    found = [outcome("MLS-A-01", "undetermined", "later")]
    judge = Judge.read(None, None, DAY, None)
    inputs = Inputs("preview", datetime.datetime(2026, 11, 23), {}, [], judge)
    endings = [
        text.document(replace(audited(found), inputs=one)).splitlines()[-1]
        for one in (inputs, replace(inputs, kind="state"))
    ]
    assert all(one.startswith("exit code 4") for one in endings)
    assert ["audit the state" in one for one in endings] == [True, False]


def test_json_has_every_outcome() -> None:
    reported = checked(json_report.document(audited()))
    assert (reported["source"], reported["exit_code"], reported["resources"]) == ("my state.json", 3, 7)
    assert [row["result"] for row in reported["outcomes"]] == [one.result for one in FOUND]
    assert reported["outcomes"][2]["waiver"]["expires"] == "2026-11-23"


def test_sarif_has_the_format_of_code_scanning() -> None:
    reported = json.loads(sarif.document(audited()))
    (run,) = reported["runs"]
    rules = run["tool"]["driver"]["rules"]
    assert [row["id"] for row in rules] == ["MLS-A-01", "MLS-B-01"]
    results = run["results"]
    assert len(results) == 7  # without passes
    for row in results:
        assert rules[row["ruleIndex"]]["id"] == row["ruleId"]
        (place,) = row["locations"]
        assert place["physicalLocation"]["artifactLocation"]["uri"] == "my%20state.json"
        # SARIF 2.1.0, 3.27.10: a kind other than "fail" has the level "none".
        assert (row["kind"] == "fail") == (row["level"] != "none")
    assert {row["level"] for row in results if row["kind"] == "fail"} == {"error", "warning"}
    assert [row["kind"] for row in results].count("open") == 1
    (waived,) = [row for row in results if "suppressions" in row]
    assert waived["suppressions"][0]["justification"] == "it moves"
    prints = [row["partialFingerprints"]["outcome/v1"] for row in results]
    assert len(set(prints)) == len(prints)


def test_a_fingerprint_survives_other_words_for_the_same() -> None:
    first, second = (
        json.loads(sarif.document(audited([RuleOutcome(RULES["MLS-A-01"], None, "fail", words)])))
        for words in ("it is 3", "it is 4")
    )
    prints = [one["runs"][0]["results"][0]["partialFingerprints"] for one in (first, second)]
    assert prints[0] == prints[1]


# What Jenkins takes, element by element: attributes that have to be there, those that may, and children. Its
# schema of what we write, which it validates with (jenkinsci/xunit-plugin src/main/resources/org/jenkinsci/
# plugins/xunit/types/model/xsd/junit-10.xsd, @0c375225 and @031e285e, read on 2026-11-24: both take it).
# GitLab reads less (gitlabhq/gitlabhq@028d8ac9 lib/gitlab/ci/parsers/test/junit.rb).
JENKINS: dict[str, tuple[set[str], set[str], set[str]]] = {
    "testsuites": (set(), {"name", "tests", "failures", "errors", "time"}, {"testsuite"}),
    "testsuite": (
        {"name", "tests", "failures", "errors"},
        {"skipped", "time", "timestamp", "hostname", "id", "package", "file", "log", "url"},
        {"testsuite", "properties", "testcase", "system-out", "system-err"},
    ),
    "testcase": (
        {"name"},
        {"classname", "time", "group"},
        {"skipped", "error", "failure", "system-out", "system-err"},
    ),
    "failure": (set(), {"type", "message"}, set()),
    "error": (set(), {"type", "message"}, set()),
    "skipped": (set(), {"type", "message"}, set()),
}


def test_junit_is_of_the_form_that_jenkins_validates() -> None:
    root = ElementTree.fromstring(junit.document(audited()))
    assert root.tag == "testsuites"
    assert {one.tag for one in root.iter()} == JENKINS.keys()
    for one in root.iter():
        required, optional, children = JENKINS[one.tag]
        assert required <= one.attrib.keys() <= required | optional, one.tag
        assert {child.tag for child in one} <= children, one.tag
    for suite in root.iter("testsuite"):
        assert suite.get("tests") == str(len(suite.findall("testcase")))


def test_cases_of_a_suite_have_different_names_for_gitlab() -> None:
    """It takes those with the same class and name for one (lib/gitlab/ci/reports/test_case.rb, key)."""
    twin = Resource(KIND, f"urn:pulumi:dev::app::its:own:Parent${KIND}::second", "second")
    found = [*FOUND, RuleOutcome(RULES["MLS-B-01"], twin, "pass")]
    cases = ElementTree.fromstring(junit.document(audited(found))).iter("testcase")
    keys = [(case.get("classname"), case.get("name")) for case in cases]
    assert len(keys) == len(set(keys)) == 9 and all(map(all, keys))


def test_junit_counts_a_case_for_each_resource() -> None:
    root = ElementTree.fromstring(junit.document(audited()))
    assert root.attrib == {
        "name": "trainstack audit", "tests": "8", "failures": "4", "errors": "1",
    }  # fmt: skip
    first, second = root.findall("testsuite")
    assert (first.get("name"), first.get("tests")) == ("MLS-A-01 It is closed.", "5")
    assert (second.get("tests"), second.get("failures"), second.get("skipped")) == ("3", "2", "1")
    cases = {case.get("name", "").partition(" ")[0]: case for case in root.iter("testcase")}
    assert [child.tag for child in cases["later"]] == ["error"]
    assert [child.tag for child in cases["good"]] == []
    assert (cases["late"][0].text or "").endswith("2026-11-23 (SEC-1, anna)")
    assert max(len(case) for case in root.iter("testcase")) == 2  # one resource, at two properties


def test_junit_fails_for_what_counts_and_nothing_else() -> None:
    """A build must not fail where the exit code is 0."""

    def counters(fail_on: Severity, found: list[RuleOutcome] = FOUND) -> dict[str, str]:
        audit = Audit("state.json", found, 7, exit_code(found, fail_on), fail_on=fail_on)
        root = ElementTree.fromstring(junit.document(audit))
        assert len(list(root.iter("failure"))) + len(list(root.iter("error"))) >= int(
            root.get("failures", "")
        )
        suites = root.findall("testsuite")
        return {
            name: str(sum(int(suite.get(name, "")) for suite in suites))
            for name in ("failures", "errors", "skipped")
        }

    assert counters("low") == {"failures": "4", "errors": "1", "skipped": "2"}
    assert counters("critical") == {"failures": "2", "errors": "1", "skipped": "4"}
    known, new = (outcome("MLS-B-01", "fail", "one", path=path) for path in ("a", "b"))
    for both in ([replace(known, known=True), new], [new, replace(known, known=True)]):
        assert counters("low", both) == {"failures": "1", "errors": "0", "skipped": "0"}
    assert counters("low", [replace(known, known=True)]) == {"failures": "0", "errors": "0", "skipped": "1"}


def test_markdown_is_a_table_that_no_name_breaks() -> None:
    said = markdown.document(audited())
    assert said.startswith("### Policy audit")
    rows = [line for line in said.splitlines() if line.startswith("| ")]
    assert len(rows) == 1 + 5
    assert {len(re.findall(r"(?<!\\)\|", row)) for row in rows} == {6}
    assert not re.search(r"(?<!\\)[<`@]", said)
    assert "**Waived: 1**" in said and "**Undetermined: 1**" in said


def test_markdown_is_cut_where_a_comment_would_be_refused() -> None:
    said = markdown.document(audited([outcome("MLS-A-01", "fail", f"n{n}") for n in range(2000)]))
    assert len(said) < MOST_CHARACTERS + 200
    assert "Truncated" in said[-80:]


FORMS = [text, json_report, sarif, junit, markdown, html_page]


@pytest.mark.parametrize("form", FORMS)
def test_every_format_lists_differences_of_state_and_account(form: Any) -> None:
    """Differences are not counted: all other content is unchanged."""
    lost = Resource(KIND, f"urn:pulumi:dev::app::{KIND}::lost", f"lost {HOSTILE}", id="fs-9")
    moved = Resource(KIND, f"urn:pulumi:dev::app::{KIND}::moved", "moved", id="fs-8")
    said = "it is 20, and the program asked for 10"
    reported = (
        Difference("missing", lost, "it is gone"),
        Difference("drifted", moved, said, "storageCapacity"),
    )
    found = form.document(replace(audited(), differences=reported))
    assert found.encode()
    without = form.document(audited())
    for word in ("missing", "drifted", "it is gone", "storageCapacity"):
        assert found.count(word) > without.count(word), word
    assert "\x1b" not in found
    assert form.document(replace(audited(), differences=())).count("drifted") == without.count("drifted") + (
        form is html_page  # which has an empty section
    )


def test_differences_are_no_results_and_no_cases() -> None:
    lost = Difference("missing", Resource(KIND, "urn:lost", "lost", id="fs-9"), "it is gone")
    joined = replace(audited(), differences=(lost,))
    assert (
        json.loads(sarif.document(joined))["runs"][0]["results"]
        == (json.loads(sarif.document(audited()))["runs"][0]["results"])
    )
    root, plain = (ElementTree.fromstring(junit.document(one)) for one in (joined, audited()))
    assert root.attrib == plain.attrib
    assert len(root.findall(".//testcase")) == len(plain.findall(".//testcase"))
    assert [f"lost ({KIND})" in str(one.text) for one in root.iter("system-out")] == [True]


@pytest.mark.parametrize("form", FORMS)
def test_every_format_can_be_empty(form: Any) -> None:
    assert form.document(audited([]))
    assert form.document(audited()).encode()
