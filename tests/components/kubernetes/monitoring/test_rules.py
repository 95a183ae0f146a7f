"""Alert rules: Prometheus accepts them, each fires and is silent when it should, each has a page."""

import re
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from components.kubernetes.monitoring import rules
from components.kubernetes.monitoring.chart_values import values
from components.runbooks import OF_CLOUDS, page_of_storage
from components.runbooks import ROOT as RUNBOOKS
from infra.engine.golang import ROOT
from tests.components.kubernetes.monitoring.prometheus import rule_files, run

CASES = sorted(Path(__file__).with_name("rules").glob("*.test.yaml"))
NEVER_SILENT = {"Watchdog"}
SECTIONS = ["## First three commands", "## Usual causes"]


def alerts() -> Iterator[Mapping[str, Any]]:
    """Every alert, with its layer."""
    for layer in rules.layers():
        for group in rules.groups(layer):
            yield from ({**rule, "of": layer} for rule in group["rules"] if "alert" in rule)


def alert_names() -> set[str]:
    return {alert["alert"] for alert in alerts()}


def cases(word: str) -> set[str]:
    """The alerts whose case says that word, such as `fires`, and asserts it."""
    found = set()
    for path in CASES:
        for test in yaml.safe_load(path.read_text())["tests"]:
            named = set(re.findall(rf"\b(\w+) {word}\b", test["name"]))
            for asked in test["promql_expr_test"]:
                if asked["expr"].startswith("ALERTS") and bool(asked["exp_samples"]) == (word == "fires"):
                    found |= {name for name in named if re.search(_asked(asked["expr"]), name)}
    return found


def _asked(expr: str) -> str:
    (selected,) = re.findall(r'alertname=~?"([^"]+)"', expr)
    return f"^(?:{selected})$"


def test_prometheus_accepts_every_rule(tmp_path: Path) -> None:
    said = run("promtool", "check", "rules", "--lint=all", "--lint-fatal", *rule_files(tmp_path))
    assert said.count("SUCCESS") == len(rules.layers()) == 4


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.name.removesuffix(".test.yaml"))
def test_alerts_fire_and_are_silent_when_they_should(tmp_path: Path, path: Path) -> None:
    rule_files(tmp_path)
    shutil.copy(path, tmp_path)
    assert "SUCCESS" in run("promtool", "test", "rules", path.name, cwd=tmp_path)


def test_a_case_that_is_wrong_is_seen(tmp_path: Path) -> None:
    rule_files(tmp_path)
    wrong = CASES[0].read_text().replace('severity="warning"', 'severity="critical"')
    (tmp_path / "wrong.test.yaml").write_text(wrong)
    with pytest.raises(AssertionError, match="FAILED"):
        run("promtool", "test", "rules", "wrong.test.yaml", cwd=tmp_path)


def test_every_alert_has_a_firing_and_a_silent_case() -> None:
    assert cases("fires") == alert_names()
    assert cases("is silent") == alert_names() - NEVER_SILENT


def test_every_alert_says_how_bad_it_is_and_where_it_belongs() -> None:
    for alert in alerts():
        assert alert["labels"]["layer"] == alert["of"]
        assert alert["labels"]["severity"] in ("critical", "warning", "info", "none")
        assert alert["annotations"].keys() == {"summary", "description", "runbook_url"}


def pages() -> dict[str, str]:
    """The page of each alert, those of clouds included."""
    of_rules = {alert["alert"]: alert["annotations"]["runbook_url"] for alert in alerts()}
    return {**of_rules, **{name: page_of_storage(name) for name in OF_CLOUDS}}


def test_every_alert_has_a_page_and_every_page_an_alert() -> None:
    written = {str(page.relative_to(ROOT)) for page in (ROOT / RUNBOOKS).rglob("*.md")}
    assert set(pages().values()) == written


def test_a_page_says_what_it_means_three_commands_and_causes() -> None:
    for name, page in pages().items():
        text = (ROOT / page).read_text()
        head, *sections = text.split("\n## ")
        assert head.startswith(f"# {name}\n\n")
        assert len(head.splitlines()) > 2
        assert [f"## {section.splitlines()[0]}" for section in sections] == SECTIONS
        (commands,) = re.findall(r"```\n(.*?)\n```", sections[0], re.S)
        assert len(commands.splitlines()) == 3
        assert sections[1].count("\n- ") >= 1


def test_no_alert_of_the_chart_is_called_like_one_of_ours() -> None:
    """Ours takes the place of the chart's Watchdog, which is switched off there."""
    disabled = values(retention_days=1, storage_gib=10, alertmanager={})["defaultRules"]["disabled"]
    assert disabled["Watchdog"] is True
    assert alert_names() & set(disabled) == {"Watchdog"}
