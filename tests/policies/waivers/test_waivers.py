"""Waivers: what they waive and for how long, and files that are refused."""

import datetime
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ruamel.yaml import YAML

from infra.errors import UserError
from policies.catalogue import Rule
from policies.evaluate import Outcome
from policies.exit_codes import AuditExitCode, exit_code
from policies.resource import Resource, Unknown
from policies.rules import CATALOGUE
from policies.waivers.applied import applied
from policies.waivers.document import read
from policies.waivers.waiver import APPROVERS, MOST_DAYS, Selector, Waiver

TODAY = datetime.date(2026, 11, 23)
KIND = "aws:eks/cluster:Cluster"
URN = f"urn:pulumi:dev::app::{KIND}::main"
ARN = "arn:aws:eks:us-east-1:123456789012:cluster/main"
CLUSTER = Resource(KIND, URN, "main", "main", props={"arn": ARN}, tags={"team": "vision"})


def rule(id: str, severity: Any) -> Rule:
    return Rule(id, severity, (KIND,), "", "", title="")


RULES = {one.id: one for one in (rule("MLS-NET-05", "high"), rule("MLS-NET-07", "critical"))}


def row(**changes: Any) -> dict[str, Any]:
    return {
        "rule": "MLS-NET-05", "resource": {"urn": URN}, "owner": "anna", "approvers": ["ben", "eve"],
        "reason": "it moves", "ticket": "SEC-1", "created": datetime.date(2026, 11, 1),
        "expires": datetime.date(2027, 1, 1), "compensating_control": "it is watched", **changes,
    }  # fmt: skip


@pytest.fixture
def file(tmp_path: Path) -> Iterator[Any]:
    def write(*rows: Any) -> tuple[Waiver, ...]:
        path = tmp_path / "waivers.yaml"
        with path.open("w") as stream:
            YAML().dump({"waivers": list(rows)}, stream)
        return read(path, RULES, TODAY)

    yield write


def outcome(resource: Resource | None = CLUSTER, result: Any = "fail", id: str = "MLS-NET-05") -> Outcome:
    return Outcome(RULES[id], resource, result, "the public endpoint is open")


def results(outcomes: Any, waivers: Any) -> list[str]:
    return [one.result for one in applied(outcomes, waivers, TODAY)[0]]


@pytest.mark.parametrize(
    "selector",
    [
        {"urn": URN},
        {"urn": f"urn:pulumi:dev::*::{KIND}::*"},
        {"arn": ARN},
        {"arn": "main"},
        {"tags": {"team": "vision"}},
        {"tags": {"team": "vision"}, "stack": "dev"},
    ],
)
def test_what_is_selected_is_waived_and_nothing_else(file: Any, selector: Any) -> None:
    other = Resource(KIND, URN.replace("dev", "prod") + "2", "main2", "main2", tags={"team": "speech"})
    outcomes = [outcome(), outcome(other), outcome(None), outcome(id="MLS-NET-07"), outcome(result="pass")]
    found, advice = applied(outcomes, file(row(resource=selector)), TODAY)
    assert [one.result for one in found] == ["waived", "fail", "fail", "fail", "pass"]
    assert found[0].waiver
    assert (found[0].waiver.ticket, advice) == ("SEC-1", ())


@pytest.mark.parametrize(
    "selector",
    [{"urn": URN, "tags": {"team": "speech"}}, {"urn": URN, "stack": "prod"}, {"arn": "arn:aws:x:*"}],
)
def test_all_that_a_selector_says_has_to_fit(file: Any, selector: Any) -> None:
    assert results([outcome()], file(row(resource=selector))) == ["fail"]


def test_a_stack_alone_selects_what_is_said_of_the_stack(file: Any) -> None:
    waivers = file(row(resource={"stack": "dev"}))
    assert results([outcome(), outcome(None)], waivers) == ["fail", "waived"]


def test_what_is_unknown_of_a_resource_fits_no_selector(file: Any) -> None:
    later, secret = Unknown("id", "is not known"), Unknown("team", "is a secret")
    planned = Resource(KIND, URN, "main", later, tags={"team": secret})
    for selector in ({"arn": "main*"}, {"tags": {"team": "vision"}}):
        assert results([outcome(planned)], file(row(resource=selector))) == ["fail"]


def test_what_could_not_be_judged_is_not_waived_but_needs_its_waiver(file: Any) -> None:
    found, advice = applied([outcome(result="undetermined")], file(row()), TODAY)
    assert [one.result for one in found] == ["undetermined"]
    assert not advice


@given(st.integers(0, 400))
def test_a_waiver_holds_to_its_last_day_and_is_announced_before(after: int) -> None:
    day = TODAY + datetime.timedelta(days=after)
    waiver = Waiver(**{**row(), "resource": Selector(urn=URN), "approvers": ("ben",)})
    (found,), advice = applied([outcome()], [waiver], day)
    left = (waiver.expires - day).days
    assert found.result == ("waived" if left >= 0 else "fail")
    assert found.waiver is waiver
    assert bool(advice) == (0 <= left < 14)


def test_of_two_waivers_the_longer_one_counts_and_both_are_used(file: Any) -> None:
    waivers = file(row(expires=datetime.date(2026, 11, 2)), row(ticket="SEC-2"))
    (found,), advice = applied([outcome()], waivers, TODAY)
    assert (found.result, found.waiver and found.waiver.ticket, advice) == ("waived", "SEC-2", ())


def test_one_that_waives_nothing_is_told_unless_it_is_about_another_stack(file: Any) -> None:
    waivers = file(row(), row(resource={"urn": URN, "stack": "prod"}))
    _, advice = applied([outcome(result="pass")], waivers, TODAY)
    assert [one.partition(" waives nothing")[0] for one in advice] == ["waivers[0] (MLS-NET-05, SEC-1)"]


def test_the_verdict_tells_expired_waivers_from_violations(file: Any) -> None:
    waivers, late = file(row()), datetime.date(2027, 1, 2)
    expired, _ = applied([outcome()], waivers, late)
    assert exit_code(expired, "low") is AuditExitCode.EXPIRED_WAIVERS
    mixed, _ = applied([outcome(), outcome(None)], waivers, late)
    assert exit_code(mixed, "low") is AuditExitCode.VIOLATIONS
    held, _ = applied([outcome()], waivers, TODAY)
    assert exit_code(held, "low") is AuditExitCode.CLEAN


@pytest.mark.parametrize(
    ("changes", "where", "rule"),
    [
        ({"rule": "MLS-NET-99"}, "[0].rule", "is no rule of the policy pack"),
        ({"owner": " "}, "[0].owner", "must not be empty"),
        ({"reason": ""}, "[0].reason", "must not be empty"),
        ({"ticket": ""}, "[0].ticket", "must not be empty"),
        ({"compensating_control": ""}, "[0].compensating_control", "must not be empty"),
        ({"approvers": []}, "[0].approvers", "a waiver of a high rule needs 1 besides its owner"),
        ({"approvers": ["anna"]}, "[0].approvers", "needs 1 besides its owner"),
        ({"rule": "MLS-NET-07", "approvers": ["ben", "ben"]}, "[0].approvers", "a critical rule needs 2"),
        ({"created": datetime.date(2026, 11, 24)}, "[0].created", "lies in the future"),
        ({"expires": datetime.date(2027, 5, 1)}, "[0].expires", "within 180 days of its creation"),
        ({"expires": datetime.date(2026, 10, 1)}, "[0].expires", "within 180 days of its creation"),
        ({"resource": {}}, "[0].resource", "fits every resource"),
        ({"resource": {"urn": "urn:pulumi:*"}}, "[0].resource", "fits every resource"),
        ({"resource": {"arn": "*"}}, "[0].resource", "fits every resource"),
        ({"resource": {"urm": "x"}}, "[0].resource.urm", "unexpected keyword argument"),
        ({"colour": "red"}, "[0].colour", "unexpected keyword argument"),
        ({"created": "soon"}, "[0].created", "valid date"),
        ({"approvers": "ben"}, "[0].approvers", "valid tuple"),
    ],
)
def test_a_waiver_with_a_fault_stops_the_audit(file: Any, changes: Any, where: str, rule: str) -> None:
    with pytest.raises(UserError) as raised:
        file(row(**changes))
    (problem,) = raised.value.problems
    assert problem.path.endswith(f"waivers{where}")
    assert rule in problem.rule


def test_all_faults_are_told_at_once(file: Any) -> None:
    with pytest.raises(UserError) as raised:
        file(row(owner=""), row(ticket="", reason=""))
    places = [one.path.rpartition("[")[2] for one in raised.value.problems]
    assert places == ["0].owner", "1].reason", "1].ticket"]


@pytest.mark.parametrize(
    "content",
    ["", "waivers", "waivers: 3", "other: []", "waivers: [", "waivers: []\nwaivers: []", "\0", "- " * 3000],
)
def test_what_is_no_file_of_waivers_is_refused(tmp_path: Path, content: str) -> None:
    path = tmp_path / "waivers.yaml"
    path.write_text(content)
    with pytest.raises(UserError, match=r"waivers\.yaml"):
        read(path, RULES, TODAY)
    with pytest.raises(UserError, match="cannot be read"):
        read(tmp_path / "none.yaml", RULES, TODAY)


def test_every_severity_has_its_limits() -> None:
    assert MOST_DAYS.keys() == APPROVERS.keys() == {"low", "medium", "high", "critical"}


def test_the_documented_example_is_one(tmp_path: Path) -> None:
    page = (Path(__file__).resolve().parents[3] / "docs" / "how-to" / "waivers.md").read_text()
    path = tmp_path / "waivers.yaml"
    path.write_text(page.partition("```yaml\n")[2].partition("```")[0])
    (found,) = read(path, CATALOGUE.rules, TODAY)
    assert found.owner == "anna@example.com"
    assert all(f"| {MOST_DAYS[one]} | {APPROVERS[one]} |" in page for one in ("critical", "high", "medium"))
