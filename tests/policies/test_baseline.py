"""A former audit: what was there is told and does not count, what is new does, what is gone is told."""

import json
from pathlib import Path

import pytest

from infra.errors import UserError
from policies.baseline import Baseline, Known, read
from policies.catalogue import Rule
from policies.evaluate import Outcome
from policies.exit_codes import AuditExitCode
from policies.resource import Resource
from policies.sources import document
from tests.policies.audited import LOGS, SECRET, audit, logs, state, urn

GROUP = Resource("aws:ec2/securityGroup:SecurityGroup", "urn:pulumi:dev::app::x::sg", "sg")
RULE = Rule("MLS-NET-07", "critical", (GROUP.kind,), "Because.", "Close it.", title="Closed.")


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
    assert "1 violations (1 medium), 1 of them known, 0 resolved" in said
    code, said = audit(state(tmp_path, logs("old", 0), logs("new", 0)), "--baseline", str(before))
    assert code == AuditExitCode.VIOLATIONS
    assert f"MEDIUM   MLS-COST-07 new ({LOGS})" in said and f"MEDIUM   MLS-COST-07 old ({LOGS})" not in said


def test_what_is_gone_is_told(tmp_path: Path, form: str) -> None:
    before = taken(tmp_path, form, logs("mended", 0), logs("deleted", 0), logs("hidden", 0), logs("good", 30))
    now = state(tmp_path, logs("mended", 30), logs("hidden", SECRET), logs("good", 30))
    code, said = audit(now, "--baseline", str(before), "--format", "json")
    told = json.loads(said)
    assert code == AuditExitCode.UNDETERMINED
    # What cannot be judged any more is not resolved.
    assert {(one["rule"], one["urn"]) for one in told["resolved"]} == {
        ("MLS-COST-07", urn(LOGS, "deleted")),
        ("MLS-COST-07", urn(LOGS, "mended")),
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
    def port(number: int) -> Outcome:
        return Outcome(RULE, GROUP, "fail", f"port {number} is open", f"ingress[{number % 2}]")

    before = Baseline((Known(RULE.id, GROUP.urn, "fail", "port 22 is open", "ingress[0]"),))
    assert [one.known for one in before.marked([port(5000 + 1), port(22)])] == [False, True]
    # In other words it is still the same one.
    assert [one.known for one in before.marked([port(2222)])] == [True]


def test_a_waiver_that_was_taken_back_makes_a_new_violation() -> None:
    before = Baseline((Known(RULE.id, GROUP.urn, "waived", "port 22 is open"),))
    assert [one.known for one in before.marked([Outcome(RULE, GROUP, "fail", "port 22 is open")])] == [False]


def test_what_could_not_be_judged_before_counts_still(tmp_path: Path, form: str) -> None:
    before = taken(tmp_path, form, logs("one", SECRET))
    assert (
        audit(state(tmp_path, logs("one", SECRET)), "--baseline", str(before))[0]
        == AuditExitCode.UNDETERMINED
    )


def test_the_report_of_another_stack_is_refused(tmp_path: Path, form: str) -> None:
    before = taken(tmp_path, form, logs("one", 0, stack="live"))
    with pytest.raises(UserError, match="is about app/live, and this audit about app/dev"):
        audit(state(tmp_path, logs("one", 0)), "--baseline", str(before))


def test_the_results_of_a_bundle_may_be_of_any_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = [f"one-{number}" for number in range(9)]
    resources = [Resource(LOGS, urn(LOGS, name), name) for name in names]
    results, report = (taken(tmp_path, form, *(logs(name, 0) for name in names)) for form in FORMS)
    longest = max(map(len, results.read_bytes().splitlines()))
    monkeypatch.setattr(document, "MOST_BYTES", longest + 1)
    assert {one.urn for one in read(results, resources).findings} >= {one.urn for one in resources}
    with pytest.raises(UserError, match=r"(?s)report.json.*is larger than.*results.jsonl of its evidence"):
        read(report, resources)
    monkeypatch.setattr(document, "MOST_BYTES", longest - 1)
    with pytest.raises(UserError, match=r"results.jsonl:\d+.*is larger than"):
        read(results, resources)


def live(account: str, region: str, name: str = "sg") -> Resource:
    return Resource(GROUP.kind, f"live:{account}:{region}:{GROUP.kind}:{name}", name)


@pytest.mark.parametrize(
    ("other", "said"),
    [
        (
            live("222", "us-east-1"),
            "is about account 111 us-east-1, and this audit about account 222 us-east-1",
        ),
        (
            live("111", "eu-west-1"),
            "is about account 111 us-east-1, and this audit about account 111 eu-west-1",
        ),
    ],
)
def test_the_report_of_another_account_or_region_is_refused(
    tmp_path: Path, other: Resource, said: str
) -> None:
    group, role = live("111", "us-east-1"), live("111", "", "role")
    before = tmp_path / "before.json"
    rows = [{"rule": RULE.id, "urn": one.urn, "result": "fail"} for one in (role, group)]
    before.write_text(json.dumps({"schema": "trainstack.audit/1", "outcomes": rows}))
    assert len(read(before, [group]).findings) == 2
    with pytest.raises(UserError, match=said):
        read(before, [other, live(other.urn.split(":")[1], "", "role")])


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "is empty"),
        ("{", "is not valid JSON"),
        ("[]", "is no report of trainstack.audit/1"),
        ('{"version": 3}', "is no report of trainstack.audit/1"),
        ('{"schema": "trainstack.audit/1", "outcomes": [3]}', r"outcomes\[0\]: must be an object"),
        ('{"rule": "MLS-NET-01", "result": "broken"}', "must have a rule and its result"),
        ('{"rule": 7, "result": "fail"}', "line 1.rule: must be a text"),
    ],
)
def test_a_file_that_is_no_report_stops_the_audit(tmp_path: Path, content: str, said: str) -> None:
    file = tmp_path / "before.json"
    file.write_text(content)
    with pytest.raises(UserError, match=said):
        audit(state(tmp_path, logs("one", 0)), "--baseline", str(file))
