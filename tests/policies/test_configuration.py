"""Configuration files: settings, enforcement and environments."""

import datetime
import json
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest

from infra.errors import UserError
from policies.audit import Audit
from policies.catalog import RuleCatalog, Violation
from policies.configuration import Configuration, read
from policies.evaluate import evaluate
from policies.exit_codes import AuditExitCode, exit_code
from policies.judge import Judge
from policies.report import json_report, junit, sarif, text
from policies.resource import Resource
from policies.settings import RuleSettings
from policies.stack import Stack
from tests.policies.problems import rejected

KIND = "aws:s3/bucket:Bucket"
BUCKET = Resource(KIND, f"urn:pulumi:dev::app::{KIND}::data", "data")
BOOK = RuleCatalog("MLS")
for _number in (1, 2):

    @BOOK.rule(f"MLS-STO-0{_number}", "high", (KIND,), "", "Close it.")
    def closed(bucket: Resource):  # type: ignore[no-untyped-def]
        """It is closed."""
        yield Violation(f"{bucket.name} is open")


@pytest.fixture
def configured(tmp_path: Path) -> Callable[..., Configuration]:
    def write(content: str, environment: str | None = None) -> Configuration:
        file = tmp_path / "dev.yaml"
        file.write_text(content)
        return read(file, BOOK.rules, environment=environment)

    return write


def judged(how: Configuration) -> Audit:
    found = evaluate(Stack([BUCKET], how.settings), BOOK.rules.values(), how.enforced)
    return Audit("state.json", found, 1, exit_code(found, "low"))


def test_without_a_file_every_rule_binds() -> None:
    found = judged(Configuration())
    assert [one.result for one in found.outcomes] == ["fail", "fail"]
    assert found.code is AuditExitCode.VIOLATIONS


def test_advisory_violations_are_reported_and_do_not_count(configured: Callable[..., Configuration]) -> None:
    found = judged(configured("enforcement: {STO: advisory}"))
    assert [one.result for one in found.outcomes] == ["fail", "fail"]
    assert found.code is AuditExitCode.CLEAN
    assert "found: advisory:" in text.document(found)
    assert json.loads(json_report.document(found))["outcomes"][0]["advisory"] is True
    levels = [row["level"] for row in json.loads(sarif.document(found))["runs"][0]["results"]]
    assert levels == ["note", "note"]
    root = ElementTree.fromstring(junit.document(found))
    assert (root.get("failures"), [suite.get("skipped") for suite in root]) == ("0", ["1", "1"])


def test_a_rule_counts_more_than_its_group(configured: Callable[..., Configuration]) -> None:
    found = judged(configured("enforcement: {STO: disabled, MLS-STO-02: mandatory}"))
    assert [one.result for one in found.outcomes] == ["not-applicable", "fail"]
    assert "off" in found.outcomes[0].message
    assert found.code is AuditExitCode.VIOLATIONS


def test_settings_differ_where_the_file_says_so(configured: Callable[..., Configuration]) -> None:
    found = configured("settings: {production: false, max_usd_per_hour: 40, allowed_regions: [eu-west-1]}")
    usual = RuleSettings()
    assert found.settings.production is False
    assert (found.settings.max_usd_per_hour, found.settings.allowed_regions) == (40, ("eu-west-1",))
    assert found.settings.required_tags == usual.required_tags
    assert configured("{}").enforcement == {}


@pytest.mark.parametrize(
    ("content", "path", "code"),
    [
        ("enforcement: {MLS-STO-99: advisory}", "enforcement.MLS-STO-99", "enforcement-unknown-rule"),
        ("enforcement: {XYZ: advisory}", "enforcement.XYZ", "enforcement-unknown-rule"),
        ("enforcement: {STO: soft}", "enforcement.STO", "audit-file-invalid-value"),
        ("settings: {colour: red}", "settings.colour", "audit-file-invalid-value"),
        ("settings: {production: maybe}", "settings.production", "audit-file-invalid-value"),
        ("settings: {max_usd_per_hour: -1}", "settings.max_usd_per_hour", "setting-negative"),
        (
            "settings: {required_tags: {owner: '('}}",
            "settings.required_tags.owner",
            "required-tag-invalid-pattern",
        ),
        (
            "settings: {least_log_retention_days: 400}",
            "settings.least_log_retention_days",
            "log-retention-bounds-conflict",
        ),
        ("settings: 3", "settings", "audit-file-invalid-value"),
        ("levels: {}", "", "audit-file-unknown-keys"),
        ("[]", "", "audit-file-unknown-keys"),
        ("settings: {", "", "audit-file-invalid-yaml"),
    ],
)
def test_a_file_with_a_fault_is_refused_whole(
    configured: Callable[..., Configuration], content: str, path: str, code: str
) -> None:
    with rejected(code, f"dev.yaml: {path}" if path else "dev.yaml"):
        configured(content)


def test_faults_of_both_parts_are_reported_at_once(configured: Callable[..., Configuration]) -> None:
    with pytest.raises(UserError) as raised:
        configured("{settings: {colour: red}, enforcement: {STO: soft}}")
    assert len(raised.value.problems) == 2


CLIENT = """
settings: {production: false, max_accelerators: 16}
enforcement: {STO: advisory}
environments:
  dev:
  live:
    settings: {production: true}
    enforcement: {MLS-STO-01: mandatory}
"""


def test_an_environment_is_laid_over_what_holds_for_all(configured: Callable[..., Configuration]) -> None:
    live, dev = configured(CLIENT, "live"), configured(CLIENT, "dev")
    assert (live.settings.production, live.settings.max_accelerators) == (True, 16)
    assert (live.enforced("MLS-STO-01"), live.enforced("MLS-STO-02")) == ("mandatory", "advisory")
    assert (dev.settings.production, dev.enforced("MLS-STO-01")) == (False, "advisory")


@pytest.mark.parametrize(
    ("content", "environment", "path", "code"),
    [
        (CLIENT, None, "environment", "environment-unknown"),
        (CLIENT, "prod", "environment", "environment-unknown"),
        ("settings: {}", "dev", "environment", "environment-unknown"),
        ("environments: [dev]", "dev", "environments", "environments-invalid"),
        ("environments: {dev: {colour: red}}", "dev", "environments", "environments-invalid"),
        (
            CLIENT.replace("MLS-STO-01", "MLS-STO-9"),
            "dev",
            "environments.live.enforcement.MLS-STO-9",
            "enforcement-unknown-rule",
        ),
        (CLIENT.replace("16", "-1"), "dev", "settings.max_accelerators", "setting-negative"),
    ],
)
def test_environments_with_a_fault_are_refused(
    configured: Callable[..., Configuration], content: str, environment: str | None, path: str, code: str
) -> None:
    with rejected(code, path):
        configured(content, environment)


def test_an_environment_without_a_configuration_is_refused() -> None:
    with pytest.raises(UserError) as refused:
        Judge.read(None, None, datetime.date(2026, 11, 27), "foo")
    assert refused.value.codes == (("configuration-missing", "environment"),)


_ELSEWHERE = """
environments:
  train: {settings: {covered_tags: [%s]}}
  train-usw2: {settings: {budget_stack: %s, budget_tag: "%s"}}
"""


def test_a_stack_relies_on_a_budget_that_has_to_count_it(configured: Callable[..., Configuration]) -> None:
    found = configured(_ELSEWHERE % ('"stack=a"', "train", "stack=a"), "train-usw2")
    assert (found.settings.budget_stack, found.settings.budget_tag) == ("train", "stack=a")


@pytest.mark.parametrize(
    ("covered", "stack", "tag", "code"),
    [
        ('"stack=b"', "train", "stack=a", "budget-stack-does-not-count"),
        ('"stack=a"', "other", "stack=a", "budget-stack-does-not-count"),
        ('"stack=a"', '""', "stack=a", "budget-stack-without-tag"),
        ("stack", "train", "stack=a", "budget-tag-invalid"),
    ],
)
def test_a_budget_elsewhere_that_counts_nothing_is_refused(
    configured: Callable[..., Configuration], covered: str, stack: str, tag: str, code: str
) -> None:
    with pytest.raises(UserError) as caught:
        configured(_ELSEWHERE % (covered, stack, tag), "train-usw2")
    assert code in {found for found, _ in caught.value.codes}
