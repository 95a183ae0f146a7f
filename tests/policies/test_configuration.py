"""How an environment or a client is judged, and files that are refused."""

import json
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest

from infra.errors import UserError
from policies.audit import Audit
from policies.catalogue import About, Catalogue, Violation
from policies.configuration import Configuration, read
from policies.evaluate import evaluate
from policies.exit_codes import AuditExitCode, exit_code
from policies.report import junit, outcomes, sarif, text
from policies.resource import Resource
from policies.settings import Settings
from policies.stack import Stack

KIND = "aws:s3/bucket:Bucket"
BUCKET = Resource(KIND, f"urn:pulumi:dev::app::{KIND}::data", "data")
BOOK = Catalogue("MLS")
for _number in (1, 2):

    @BOOK.rule(About(f"MLS-STO-0{_number}", "high", (KIND,), "", "Close it."))
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


def test_what_is_advisory_is_told_and_does_not_count(configured: Callable[..., Configuration]) -> None:
    found = judged(configured("enforcement: {STO: advisory}"))
    assert [one.result for one in found.outcomes] == ["fail", "fail"]
    assert found.code is AuditExitCode.CLEAN
    assert "found: advisory: data is open" in text.document(found)
    assert json.loads(outcomes.document(found))["outcomes"][0]["advisory"] is True
    levels = [row["level"] for row in json.loads(sarif.document(found))["runs"][0]["results"]]
    assert levels == ["note", "note"]
    root = ElementTree.fromstring(junit.document(found))
    assert (root.get("failures"), [suite.get("skipped") for suite in root]) == ("0", ["1", "1"])


def test_a_rule_counts_more_than_its_group(configured: Callable[..., Configuration]) -> None:
    found = judged(configured("enforcement: {STO: disabled, MLS-STO-02: mandatory}"))
    assert [one.result for one in found.outcomes] == ["not-applicable", "fail"]
    assert "switches the rule off" in found.outcomes[0].message
    assert found.code is AuditExitCode.VIOLATIONS


def test_settings_differ_where_the_file_says_so(configured: Callable[..., Configuration]) -> None:
    found = configured("settings: {production: false, max_usd_per_hour: 40, allowed_regions: [eu-west-1]}")
    usual = Settings()
    assert found.settings.production is False
    assert (found.settings.max_usd_per_hour, found.settings.allowed_regions) == (40, ("eu-west-1",))
    assert found.settings.required_tags == usual.required_tags
    assert configured("{}").enforcement == {}


@pytest.mark.parametrize(
    ("content", "where", "rule"),
    [
        ("enforcement: {MLS-STO-99: advisory}", "enforcement.MLS-STO-99", "is no rule and no group"),
        ("enforcement: {XYZ: advisory}", "enforcement.XYZ", "is no rule and no group"),
        ("enforcement: {STO: soft}", "enforcement.STO", "input should be"),
        ("settings: {colour: red}", "settings.colour", "unexpected keyword argument"),
        ("settings: {production: maybe}", "settings.production", "valid boolean"),
        ("settings: {max_usd_per_hour: -1}", "settings.max_usd_per_hour", "must not be negative"),
        ("settings: {required_tags: {owner: '('}}", "settings.required_tags.owner", "regular expression"),
        (
            "settings: {least_log_retention_days: 400}",
            "settings.least_log_retention_days",
            "must not be above",
        ),
        ("settings: 3", "settings", "dictionary"),
        ("levels: {}", "", "must be an object with enforcement and environments and settings"),
        ("[]", "", "must be an object"),
        ("settings: {", "", "is not valid YAML"),
    ],
)
def test_a_file_with_a_fault_is_refused_whole(
    configured: Callable[..., Configuration], content: str, where: str, rule: str
) -> None:
    with pytest.raises(UserError) as raised:
        configured(content)
    (problem,) = raised.value.problems
    assert problem.path.endswith(f"dev.yaml: {where}" if where else "dev.yaml")
    assert rule in problem.rule


def test_faults_of_both_parts_are_told_at_once(configured: Callable[..., Configuration]) -> None:
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
    ("content", "environment", "path", "rule"),
    [
        (CLIENT, None, "environment", "must be one of dev, live"),
        (CLIENT, "prod", "environment", "must be one of dev, live"),
        ("settings: {}", "dev", "environment", "has no environments"),
        ("environments: [dev]", "dev", "environments", "must be an object"),
        ("environments: {dev: {colour: red}}", "dev", "environments", "nothing else"),
        (
            CLIENT.replace("MLS-STO-01", "MLS-STO-9"),
            "dev",
            "environments.live.enforcement.MLS-STO-9",
            "no rule",
        ),
        (CLIENT.replace("16", "-1"), "dev", "settings.max_accelerators", "negative"),
    ],
)
def test_environments_with_a_fault_are_refused(
    configured: Callable[..., Configuration], content: str, environment: str | None, path: str, rule: str
) -> None:
    with pytest.raises(UserError) as raised:
        configured(content, environment)
    (problem,) = raised.value.problems
    assert problem.path.endswith(path)
    assert rule in problem.rule
