"""Policies of the engine: outcomes by policy and time, equal to those of an export."""

import datetime
import json
from pathlib import Path
from typing import Any

import pytest

from policies.evaluate import RuleOutcome
from policies.judge import Judge
from policies.pack.dispatcher import POLICIES, PackResponse, PolicyPack
from policies.sources import state
from tests.policies.pack.engine_rows import rows
from tests.policies.recording.recordings import export, keys

LATER = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"
URN = "urn:pulumi:dev::app::"
KEY, RULE = "aws:kms/key:Key", "MLS-IAM-07"
# The engine passes neither the creation time of a resource nor its errors to a pack.
UNTOLD = frozenset({"MLS-REP-04"})
PROVIDER = {
    "urn": f"{URN}pulumi:providers:aws::default",
    "type": "pulumi:providers:aws",
    "properties": {"region": "us-east-1"},
}


@pytest.fixture(scope="module")
def judge() -> Judge:
    return Judge()


def row(kind: str, name: str = "it", /, **properties: Any) -> dict[str, Any]:
    return {"urn": f"{URN}{kind}::{name}", "type": kind, "provider": PROVIDER, "properties": properties}


def said(answer: PackResponse) -> set[tuple[str, str, bool]]:
    return {(one.policy.name, one.message.partition(":")[0], one.advisory) for one in answer.findings}


def rules(answer: PackResponse) -> set[str]:
    return {rule for _, rule, _ in said(answer)}


def reported(outcomes: list[RuleOutcome]) -> list[tuple[str, str, str, str, str]]:
    return sorted((one.rule.id, one.urn, one.result, one.path, one.message) for one in outcomes)


@pytest.mark.parametrize("key", keys())
def test_engine_and_export_have_the_same_outcomes(key: str, tmp_path: Path, judge: Judge) -> None:
    for verdict in ("pass", "fail"):
        made = export(key, verdict)
        exported = tmp_path / "export.json"
        exported.write_text(json.dumps(made))
        pack = PolicyPack(judge)
        before = [one for reported in rows(made, "inputs") for one in pack.before(reported).findings]
        resources = pack.resources.after(rows(made, "outputs"))
        less, whole = judge.outcomes(resources), judge.outcomes(state.read(exported))
        opened = [one for one in less if one.rule.id in UNTOLD and one.result == "undetermined"]
        but_for = {(one.rule.id, one.resource) for one in opened}
        rest = [one for one in less if (one.rule.id, one.resource) not in but_for]
        assert {*reported(rest)} <= {*reported(whole)}
        missing = {*reported(whole)} - {*reported(rest)}
        assert {entry[:2] for entry in missing} == {entry[:2] for entry in reported(opened)}
        # Findings before a step are repeated at the end.
        after = pack.after(rows(made, "outputs")).findings
        repeated = [(one.urn, one.message) for one in after if one.repeats]
        assert sorted((one.urn, one.message) for one in before) == sorted(repeated)


def test_what_a_program_asks_for_is_refused_before_its_step(judge: Judge) -> None:
    pack = PolicyPack(judge)
    assert ("medium-resource", RULE, False) in said(pack.before(row(KEY, enableKeyRotation=False)))
    ended = pack.after([row(KEY, enableKeyRotation=False, id="k-1")])
    assert {one.repeats for one in ended.findings if RULE in one.message} == {POLICIES["resource", "medium"]}


def test_what_a_cloud_may_set_is_left_to_the_end(judge: Judge) -> None:
    pack = PolicyPack(judge)
    assert RULE not in rules(pack.before(row(KEY)))
    assert RULE not in rules(pack.after([row(KEY, enableKeyRotation=True, id="k-1")]))
    opened = pack.after([row(KEY, enableKeyRotation=False, id="k-1")])
    assert ("medium-stack", RULE, False) in said(opened)


def test_unknown_values_are_reported_and_no_pass(judge: Judge) -> None:
    pack = PolicyPack(judge)
    pack.resources.planned = True
    assert RULE not in rules(pack.before(row(KEY, enableKeyRotation=LATER)))
    answer = pack.after([row(KEY, enableKeyRotation=LATER, id=LATER)])
    assert ("medium-stack", RULE, True) in said(answer)
    (found,) = [one for one in answer.findings if one.message.startswith(RULE)]
    assert "undetermined: " in found.message
    assert "enableKeyRotation is not" in found.message
    assert POLICIES["stack", "medium"] not in answer.idle


@pytest.mark.parametrize(
    "secret",
    [
        {"4dabf18193072939515e22adb298388d": "1b47061264138c4ac30d75fd1eb44270", "value": True},
        "1c4a061d-8072-4f0a-a4cb-0ff528b18fe7",
    ],
    ids=["a secret", "a truth to come"],
)
def test_marks_of_the_protocol_are_no_values(judge: Judge, secret: Any) -> None:
    pack = PolicyPack(judge)
    pack.before(row(KEY, enableKeyRotation=secret))
    answer = pack.after([row(KEY, id="k-1", enableKeyRotation=secret)])
    assert ("medium-stack", RULE, True) in said(answer)


def test_a_preview_keeps_what_is_asked_for_where_the_answer_is_awaited(judge: Judge) -> None:
    pack = PolicyPack(judge)
    pack.resources.planned = True
    pack.before(row(KEY, enableKeyRotation=False, policy="{}"))
    (key,) = pack.resources.after([row(KEY, id=LATER, policy={"a": [LATER]}, description="d")])
    assert key.props == {"enableKeyRotation": False, "policy": "{}", "description": "d"}
    assert (key.origin, key.region) == ("planned", "us-east-1")


def test_a_policy_without_a_rule_for_it_is_not_applicable(judge: Judge) -> None:
    answer = PolicyPack(judge).before(row("aws:sns/topicSubscription:TopicSubscription"))
    assert not answer.findings
    assert set(answer.idle) == {one for (scope, _), one in POLICIES.items() if scope == "resource"}


def test_a_rule_that_raises_is_undetermined(judge: Judge, monkeypatch: pytest.MonkeyPatch) -> None:
    (broken,) = [rule for rule in judge.rules if rule.id == RULE]

    def alone(_: Any) -> Any:
        raise ZeroDivisionError("by nothing")

    monkeypatch.setitem(broken.__dict__, "alone", alone)
    pack = PolicyPack(judge)
    assert RULE not in rules(pack.before(row(KEY, enableKeyRotation=False)))
    (found,) = [one for one in pack.after([row(KEY, "data")]).findings if one.message.startswith(RULE)]
    assert found.advisory
    assert found.urn.endswith("::data")
    assert "ZeroDivisionError: by nothing" in found.message


def test_a_rule_with_a_waiver_is_judged_when_all_is_known(tmp_path: Path) -> None:
    today = datetime.date.today()
    file = tmp_path / "waivers.yaml"
    file.write_text(
        json.dumps(
            {
                "waivers": [
                    {
                        "rule": RULE,
                        "resource": {"urn": f"{URN}{KEY}::scratch"},
                        "owner": "anna",
                        "approvers": ["ben"],
                        "reason": "scratch space",
                        "ticket": "SEC-1",
                        "created": f"{today}",
                        "expires": f"{today + datetime.timedelta(days=2)}",
                        "compensating_control": "no data stays there",
                    }
                ]
            }
        )
    )
    pack = PolicyPack(Judge.read(None, file, today))
    scratch, data = row(KEY, "scratch", enableKeyRotation=False), row(KEY, "data", enableKeyRotation=False)
    before = [one for reported in (scratch, data) for one in pack.before(reported).findings]
    assert not [one for one in before if one.message.startswith(RULE)]
    answer = pack.after([scratch, data])
    found = {one.urn: one for one in answer.findings if one.message.startswith(RULE)}
    assert found[scratch["urn"]].advisory and "waived" in found[scratch["urn"]].message
    assert "(SEC-1, anna, until" in found[scratch["urn"]].message
    assert not found[data["urn"]].advisory
    (advice,) = [one.message for one in answer.findings if one.policy.name == "audit"]
    assert f"waivers[0] ({RULE}, SEC-1) " in advice
