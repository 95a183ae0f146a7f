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
from policies.catalog import PolicyRule
from policies.evaluate import RuleOutcome
from policies.exit_codes import AuditExitCode, exit_code
from policies.judge import apply_waivers
from policies.resource import Resource, UnknownValue
from policies.rules import CATALOG
from policies.waivers.waiver import APPROVERS, MOST_DAYS, Selector, Waiver
from policies.waivers.waiver_file import read
from tests.policies.problems import rejected

TODAY = datetime.date(2026, 11, 23)
KIND = "aws:eks/cluster:Cluster"
URN = f"urn:pulumi:dev::app::{KIND}::main"
ARN = "arn:aws:eks:us-east-1:123456789012:cluster/main"
CLUSTER = Resource(KIND, URN, "main", "main", props={"arn": ARN}, tags={"team": "vision"})


def rule(id: str, severity: Any) -> PolicyRule:
    return PolicyRule(id, severity, (KIND,), "", "", title="")


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


def outcome(resource: Resource | None = CLUSTER, result: Any = "fail", id: str = "MLS-NET-05") -> RuleOutcome:
    return RuleOutcome(RULES[id], resource, result, "the public endpoint is open")


def results(outcomes: Any, waivers: Any) -> list[str]:
    return [one.result for one in apply_waivers(outcomes, waivers, TODAY)[0]]


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
    found, advice = apply_waivers(outcomes, file(row(resource=selector)), TODAY)
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
    later, secret = UnknownValue("id", "is not known"), UnknownValue("team", "is a secret")
    planned = Resource(KIND, URN, "main", later, tags={"team": secret})
    for selector in ({"arn": "main*"}, {"tags": {"team": "vision"}}):
        assert results([outcome(planned)], file(row(resource=selector))) == ["fail"]


def test_what_could_not_be_judged_is_not_waived_but_needs_its_waiver(file: Any) -> None:
    found, advice = apply_waivers([outcome(result="undetermined")], file(row()), TODAY)
    assert [one.result for one in found] == ["undetermined"]
    assert not advice


@given(st.integers(0, 400))
def test_a_waiver_holds_to_its_last_day_and_is_announced_before(after: int) -> None:
    day = TODAY + datetime.timedelta(days=after)
    waiver = Waiver(**{**row(), "resource": Selector(urn=URN), "approvers": ("ben",)})
    (found,), advice = apply_waivers([outcome()], [waiver], day)
    left = (waiver.expires - day).days
    assert found.result == ("waived" if left >= 0 else "fail")
    assert found.waiver is waiver
    assert bool(advice) == (0 <= left < 14)


def test_of_two_waivers_the_longer_one_counts_and_both_are_used(file: Any) -> None:
    waivers = file(row(expires=datetime.date(2026, 11, 2)), row(ticket="SEC-2"))
    (found,), advice = apply_waivers([outcome()], waivers, TODAY)
    assert (found.result, found.waiver and found.waiver.ticket, advice) == ("waived", "SEC-2", ())


def test_an_unused_waiver_is_reported_unless_it_is_for_another_stack(file: Any) -> None:
    waivers = file(row(), row(resource={"urn": URN, "stack": "prod"}))
    _, advice = apply_waivers([outcome(result="pass")], waivers, TODAY)
    assert [one.partition(" waives nothing")[0] for one in advice] == ["waivers[0] (MLS-NET-05, SEC-1)"]


def test_expired_waivers_have_their_own_exit_code(file: Any) -> None:
    waivers, late = file(row()), datetime.date(2027, 1, 2)
    expired, _ = apply_waivers([outcome()], waivers, late)
    assert exit_code(expired, "low") is AuditExitCode.EXPIRED_WAIVERS
    mixed, _ = apply_waivers([outcome(), outcome(None)], waivers, late)
    assert exit_code(mixed, "low") is AuditExitCode.VIOLATIONS
    held, _ = apply_waivers([outcome()], waivers, TODAY)
    assert exit_code(held, "low") is AuditExitCode.CLEAN


@pytest.mark.parametrize(
    ("changes", "path", "code"),
    [
        ({"rule": "MLS-NET-99"}, "[0].rule", "waiver-unknown-rule"),
        ({"owner": " "}, "[0].owner", "waiver-field-empty"),
        ({"reason": ""}, "[0].reason", "waiver-field-empty"),
        ({"ticket": ""}, "[0].ticket", "waiver-field-empty"),
        ({"compensating_control": ""}, "[0].compensating_control", "waiver-field-empty"),
        ({"approvers": []}, "[0].approvers", "waiver-needs-approvers"),
        ({"approvers": ["anna"]}, "[0].approvers", "waiver-needs-approvers"),
        ({"rule": "MLS-NET-07", "approvers": ["ben", "ben"]}, "[0].approvers", "waiver-needs-approvers"),
        ({"created": datetime.date(2026, 11, 24)}, "[0].created", "waiver-created-in-future"),
        ({"expires": datetime.date(2027, 5, 1)}, "[0].expires", "waiver-expiry-out-of-range"),
        ({"expires": datetime.date(2026, 10, 1)}, "[0].expires", "waiver-expiry-out-of-range"),
        ({"resource": {}}, "[0].resource", "waiver-matches-everything"),
        ({"resource": {"urn": "urn:pulumi:*"}}, "[0].resource", "waiver-matches-everything"),
        ({"resource": {"arn": "*"}}, "[0].resource", "waiver-matches-everything"),
        ({"resource": {"urm": "x"}}, "[0].resource.urm", "audit-file-invalid-value"),
        ({"colour": "red"}, "[0].colour", "audit-file-invalid-value"),
        ({"created": "soon"}, "[0].created", "audit-file-invalid-value"),
        ({"approvers": "ben"}, "[0].approvers", "audit-file-invalid-value"),
    ],
)
def test_a_waiver_with_a_fault_stops_the_audit(file: Any, changes: Any, path: str, code: str) -> None:
    with rejected(code, f"waivers{path}"):
        file(row(**changes))


def test_all_faults_are_reported_at_once(file: Any) -> None:
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
    with pytest.raises(UserError) as caught:
        read(path, RULES, TODAY)
    assert all(one.code.startswith("audit-file-") and str(path) in one.path for one in caught.value.problems)
    with rejected("audit-file-unreadable", "none.yaml"):
        read(tmp_path / "none.yaml", RULES, TODAY)


def test_every_severity_has_its_limits() -> None:
    assert MOST_DAYS.keys() == APPROVERS.keys() == {"low", "medium", "high", "critical"}


def test_the_documented_example_is_one(tmp_path: Path) -> None:
    page = (Path(__file__).resolve().parents[3] / "docs" / "how-to" / "waivers.md").read_text()
    path = tmp_path / "waivers.yaml"
    path.write_text(page.partition("```yaml\n")[2].partition("```")[0])
    (found,) = read(path, CATALOG.rules, TODAY)
    assert found.owner == "anna@example.com"
    assert all(f"| {MOST_DAYS[one]} | {APPROVERS[one]} |" in page for one in ("critical", "high", "medium"))
