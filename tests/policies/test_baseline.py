"""Baselines: known violations do not count, new ones do, resolved ones are reported."""

import json
from pathlib import Path

import pytest

from infra.errors import UserError
from policies.baseline import AuditBaseline, KnownFinding, read
from policies.catalog import PolicyRule
from policies.evaluate import RuleOutcome
from policies.exit_codes import AuditExitCode
from policies.resource import Resource
from policies.sources import files
from tests.policies.audited import LOGS, SECRET, audit, logs, state, urn
from tests.policies.problems import rejected
from tests.trainstack.cli.command import checked

GROUP = Resource("aws:ec2/securityGroup:SecurityGroup", "urn:pulumi:dev::app::x::sg", "sg")
RULE = PolicyRule("MLS-NET-07", "critical", (GROUP.kind,), "Because.", "Close it.", title="Closed.")

FORMS = ("evidence", "json")


@pytest.fixture(params=FORMS)
def form(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


def taken(folder: Path, form: str, *rows: dict[str, object]) -> Path:
    """The report of an audit of these resources, in either form."""
    file = state(folder, *rows)
    if form == "evidence":
        audit(file, "--evidence", str(folder / "bundle"))
        return folder / "bundle" / "results.jsonl"
    report = folder / "report.json"
    report.write_text(audit(file, "--format", "json")[1])
    return report


def test_known_violations_do_not_count_and_new_ones_do(tmp_path: Path, form: str) -> None:
    before = taken(tmp_path, form, logs("old", 0), logs("good", 30))
    code, said = audit(state(tmp_path, logs("old", 0), logs("good", 30)), "--baseline", str(before))
    assert code == AuditExitCode.CLEAN
    assert "Known from the baseline:\n  MLS-COST-07 old" in said
    assert "1 violations (1 medium)" in said
    code, said = audit(state(tmp_path, logs("old", 0), logs("new", 0)), "--baseline", str(before))
    assert code == AuditExitCode.VIOLATIONS
    assert f"MEDIUM   MLS-COST-07 new ({LOGS})" in said and f"MEDIUM   MLS-COST-07 old ({LOGS})" not in said


def test_resolved_violations_are_reported(tmp_path: Path, form: str) -> None:
    before = taken(tmp_path, form, logs("fixed", 0), logs("deleted", 0), logs("hidden", 0), logs("good", 30))
    now = state(tmp_path, logs("fixed", 30), logs("hidden", SECRET), logs("good", 30))
    code, said = audit(now, "--baseline", str(before), "--format", "json")
    reported = checked(said)
    assert code == AuditExitCode.UNDETERMINED
    # What cannot be judged any more is not resolved.
    assert {(one["rule"], one["urn"]) for one in reported["resolved"]} == {
        ("MLS-COST-07", urn(LOGS, "deleted")),
        ("MLS-COST-07", urn(LOGS, "fixed")),
    }


def test_a_renamed_resource_is_new_and_its_old_name_resolved(tmp_path: Path, form: str) -> None:
    before = taken(tmp_path, form, logs("one", 0))
    code, said = audit(state(tmp_path, logs("other", 0)), "--baseline", str(before))
    assert code == AuditExitCode.VIOLATIONS
    assert f"Resolved since the baseline:\n  MLS-COST-07 {urn(LOGS, 'one')}" in said


def test_a_rule_that_is_switched_off_resolves_nothing(tmp_path: Path, form: str) -> None:
    before = taken(tmp_path, form, logs("one", 0))
    config = tmp_path / "config.yaml"
    config.write_text("enforcement: {MLS-COST-07: disabled}")
    _, said = audit(state(tmp_path, logs("one", 0)), "--baseline", str(before), "--config", str(config))
    assert "0 resolved" in said


def test_a_second_violation_of_a_resource_does_not_hide_behind_the_first() -> None:
    def port(number: int) -> RuleOutcome:
        return RuleOutcome(RULE, GROUP, "fail", f"port {number} is open", f"ingress[{number % 2}]")

    before = AuditBaseline((KnownFinding(RULE.id, GROUP.urn, "fail", "port 22 is open", "ingress[0]"),))
    assert [one.known for one in before.marked([port(5000 + 1), port(22)])] == [False, True]
    # In other words it is still the same one.
    assert [one.known for one in before.marked([port(2222)])] == [True]


def test_a_waiver_that_was_taken_back_makes_a_new_violation() -> None:
    before = AuditBaseline((KnownFinding(RULE.id, GROUP.urn, "waived", "port 22 is open"),))
    assert [one.known for one in before.marked([RuleOutcome(RULE, GROUP, "fail", "port 22 is open")])] == [
        False
    ]


def test_what_could_not_be_judged_before_counts_still(tmp_path: Path, form: str) -> None:
    before = taken(tmp_path, form, logs("one", SECRET))
    assert (
        audit(state(tmp_path, logs("one", SECRET)), "--baseline", str(before))[0]
        == AuditExitCode.UNDETERMINED
    )


def test_the_report_of_another_stack_is_refused(tmp_path: Path, form: str) -> None:
    before = taken(tmp_path, form, logs("one", 0, stack="live"))
    with rejected("baseline-of-other-stack"):
        audit(state(tmp_path, logs("one", 0)), "--baseline", str(before))


def test_the_results_of_a_bundle_may_be_of_any_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = [f"one-{number}" for number in range(9)]
    resources = [Resource(LOGS, urn(LOGS, name), name) for name in names]
    results, report = (taken(tmp_path, form, *(logs(name, 0) for name in names)) for form in FORMS)
    longest = max(map(len, results.read_bytes().splitlines()))
    monkeypatch.setattr(files, "MOST_BYTES", longest + 1)
    assert {one.urn for one in read(results, resources).findings} >= {one.urn for one in resources}
    with rejected("input-file-too-large", "report.json"):
        read(report, resources)
    monkeypatch.setattr(files, "MOST_BYTES", longest - 1)
    with pytest.raises(UserError) as caught:
        read(results, resources)
    assert caught.value.problems[0].code == "input-file-too-large"
    assert "results.jsonl:" in caught.value.problems[0].path


def live(account: str, region: str, name: str = "sg") -> Resource:
    return Resource(GROUP.kind, f"live:{account}:{region}:{GROUP.kind}:{name}", name)


@pytest.mark.parametrize(
    "other", [live("222", "us-east-1"), live("111", "eu-west-1")], ids=lambda one: one.urn
)
def test_the_report_of_another_account_or_region_is_refused(tmp_path: Path, other: Resource) -> None:
    group, role = live("111", "us-east-1"), live("111", "", "role")
    before = tmp_path / "before.json"
    rows = [{"rule": RULE.id, "urn": one.urn, "result": "fail"} for one in (role, group)]
    before.write_text(json.dumps({"schema": "trainstack.audit/1", "outcomes": rows}))
    assert len(read(before, [group]).findings) == 2
    with rejected("baseline-of-other-stack"):
        read(before, [other, live(other.urn.split(":")[1], "", "role")])


@pytest.mark.parametrize(
    ("content", "code", "path"),
    [
        ("", "input-file-empty", ""),
        ("{", "input-file-invalid-json", ""),
        ("[]", "baseline-not-a-report", ""),
        ('{"version": 3}', "baseline-not-a-report", ""),
        ('{"schema": "trainstack.audit/1", "outcomes": [3]}', "file-value-wrong-type", "outcomes[0]"),
        ('{"rule": "MLS-NET-01", "result": "broken"}', "baseline-row-invalid", ""),
        ('{"rule": 7, "result": "fail"}', "file-value-wrong-type", "line 1.rule"),
    ],
)
def test_a_file_that_is_no_report_stops_the_audit(tmp_path: Path, content: str, code: str, path: str) -> None:
    file = tmp_path / "before.json"
    file.write_text(content)
    with pytest.raises(UserError) as caught:
        audit(state(tmp_path, logs("one", 0)), "--baseline", str(file))
    assert any(found == code and where.endswith(path) for found, where in caught.value.codes)
