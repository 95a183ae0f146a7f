"""Alert rules: Prometheus accepts them, each fires and is silent when it should, each has a page."""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from components.kubernetes.monitoring import rules
from components.kubernetes.monitoring.chart_values import values
from components.runbooks import OF_CLOUDS, page_of_storage
from components.runbooks import ROOT as RUNBOOKS
from infra.engine.golang import ROOT
from tests.components.kubernetes.monitoring import month, series_cases
from tests.components.kubernetes.monitoring.prometheus import rule_files, run
from tests.components.kubernetes.monitoring.test_metric_names import METRIC, expressions

NEVER_SILENT = {"Watchdog"}
SECTIONS = ["## First three commands", "## Usual causes"]
# Who is woken by a critical alert, for what, and within what time.
ANSWERS = {"wakes", "because", "within"}


def alerts() -> Iterator[Mapping[str, Any]]:
    """Every alert, with its layer."""
    for layer in rules.layers():
        for group in rules.groups(layer):
            yield from ({**rule, "of": layer} for rule in group["rules"] if "alert" in rule)


def alert_names() -> set[str]:
    return {alert["alert"] for alert in alerts()}


def test_prometheus_accepts_every_rule(tmp_path: Path) -> None:
    said = run("promtool", "check", "rules", "--lint=all", "--lint-fatal", *rule_files(tmp_path))
    assert said.count("SUCCESS") == len(rules.layers()) == 4


def failed(folder: Path, *tests: str) -> str:
    """What promtool says of test files; empty when everything is as expected."""
    try:
        run("promtool", "test", "rules", *tests, cwd=folder)
    except AssertionError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("path", series_cases.files(), ids=lambda path: path.stem)
def test_exactly_the_expected_alerts_fire(tmp_path: Path, path: Path) -> None:
    groups = [group for layer in rules.layers() for group in rules.groups(layer)]
    assert not failed(tmp_path, *series_cases.write(tmp_path, *series_cases.read(path), groups))


@pytest.mark.more
@pytest.mark.parametrize("path", series_cases.files(), ids=lambda path: path.stem)
def test_the_rules_left_out_of_a_case_have_nothing_to_say(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: Path
) -> None:
    monkeypatch.setattr(series_cases, "speaking", lambda groups, _: groups)
    groups = [group for layer in rules.layers() for group in rules.groups(layer)]
    assert not failed(tmp_path, *series_cases.write(tmp_path, *series_cases.read(path), groups))


def test_a_case_that_is_wrong_is_seen(tmp_path: Path) -> None:
    interval, (case, *_) = series_cases.read(series_cases.FOLDER / "nodes.yaml")
    wrong = {**case, "firing": {"40m": []}}
    names = series_cases.write(tmp_path, interval, [wrong], rules.groups("orchestration"))
    assert "NodeRepairStorm" in failed(tmp_path, *names)


def test_a_case_has_the_rules_that_can_speak_of_it() -> None:
    def rule(name: str, expression: str) -> dict[str, str]:
        return {"record": name, "expr": expression}

    given = [
        {"name": "first", "rules": [rule("b", "a > 1"), rule("z", "sum(y) or on (a_label) x")]},
        {"name": "second", "rules": [rule("c", "rate(b[5m])"), rule("gone", "absent(y)"), rule("w", "z")]},
        {"name": "third", "rules": [rule("v", 'z{a="1"}')]},
    ]
    # A label that is called like a metric keeps a rule, which then has no result.
    kept = series_cases.speaking(given, {"a"})
    assert [[one["record"] for one in group["rules"]] for group in kept] == [["b"], ["c", "gone"], ["v"]]


@pytest.mark.parametrize(
    "days",
    # The rest of the month repeats the first part but for its budgets, and takes half a minute of promtool.
    [month.ONE_OF_EACH, pytest.param(month.DAYS, marks=pytest.mark.more)],
)
def test_no_alert_fires_in_a_healthy_month(tmp_path: Path, days: int) -> None:
    fired = 'ALERTS{alertstate="firing", alertname!="Watchdog"}'
    ever = f"count by (alertname, team) (count_over_time({fired}[{days}d]))"
    test = {
        "name": "a healthy month",
        "interval": f"{month.STEP}m",
        "input_series": list(month.series()),
        "promql_expr_test": [
            {"expr": ever, "eval_time": f"{days}d", "exp_samples": []},
            # The month has what it says: all jobs of the last day, and nodes that come and go.
            {
                "expr": f"sum(count_over_time(kueue_workload_finished_seconds[{days}d])) > bool {days * 340}",
                "eval_time": f"{days}d",
                "exp_samples": [{"labels": "{}", "value": 1}],
            },
        ],
    }
    # Every second sample is evaluated.
    files = [path.name for path in rule_files(tmp_path)]
    content = {"rule_files": files, "evaluation_interval": "10m", "tests": [test]}
    (tmp_path / "test.yaml").write_text(json.dumps(content))
    assert not failed(tmp_path, "test.yaml")


def test_the_corpus_has_every_alert_and_what_is_promised() -> None:
    found = [case for path in series_cases.files() for case in series_cases.read(path)[1]]
    rows = [row for case in found for row in case.get("firing", {}).values()]
    fired = {alert.partition("/")[0] for row in rows for alert in row}
    incidents = {case["incident"]["alert"].partition("/")[0] for case in found if "incident" in case}
    assert len(found) >= 80
    assert sum("incident" in case for case in found) >= 20
    assert fired == alert_names() - NEVER_SILENT
    assert {alert["alert"] for alert in alerts() if alert["labels"]["severity"] == "critical"} <= incidents
    assert len({case["name"] for case in found}) == len(found)


def test_every_critical_alert_says_who_is_woken_for_what_within_what_time() -> None:
    for alert in alerts():
        answers = ANSWERS & alert["annotations"].keys()
        if alert["labels"]["severity"] != "critical":
            assert not answers, alert["alert"]
            continue
        assert answers == ANSWERS, alert["alert"]
        assert alert["annotations"]["wakes"] in ("platform", "team")
        assert 5 <= series_cases.minutes(alert["annotations"]["within"]) <= 120
        assert len(alert["annotations"]["because"].split()) >= 8


def test_every_selector_names_the_job_of_its_scrape() -> None:
    """So that no other exporter, such as a pod of a team, adds series to a rule or a dashboard."""
    for expression in expressions():
        for name, labels in re.findall(METRIC + r"(\{[^}]*\})?", expression):
            assert "job" in labels, (name, expression)


def test_every_alert_says_how_bad_it_is_and_where_it_belongs() -> None:
    for alert in alerts():
        assert alert["labels"]["layer"] == alert["of"]
        assert alert["labels"]["severity"] in ("critical", "warning", "info", "none")
        assert alert["annotations"].keys() - ANSWERS == {"summary", "description", "runbook_url"}


def pages() -> dict[str, str]:
    """The page of each alert, those of clouds included."""
    of_rules = {alert["alert"]: alert["annotations"]["runbook_url"] for alert in alerts()}
    return {**of_rules, **{name: page_of_storage(name) for name in OF_CLOUDS}}


def test_every_alert_has_a_page_and_every_page_an_alert() -> None:
    written = {str(page.relative_to(ROOT)) for page in (ROOT / RUNBOOKS).rglob("*.md")}
    assert set(pages().values()) == written


def test_pages_are_addresses_where_the_repository_has_one() -> None:
    base = "https://git.example.com/ml/trainstack/blob/main/docs/runbooks"
    for layer in rules.layers():
        written, linked = (
            [
                rule["annotations"]["runbook_url"]
                for group in groups
                for rule in group["rules"]
                if "alert" in rule
            ]
            for groups in (rules.groups(layer), rules.groups(layer, f"{base}/"))
        )
        assert linked == [page.replace(RUNBOOKS, base, 1) for page in written]


def test_a_page_says_what_it_means_three_commands_and_causes() -> None:
    for name, page in pages().items():
        text = (ROOT / page).read_text()
        head, *sections = text.split("\n## ")
        assert head.startswith(f"# {name}\n\n")
        assert len(head.splitlines()) > 2
        assert [f"## {section.splitlines()[0]}" for section in sections] == SECTIONS
        (commands,) = re.findall(r"```console\n(.*?)\n```", sections[0], re.S)
        assert len(commands.splitlines()) == 3
        assert sections[1].count("\n- ") >= 1


def test_no_alert_of_the_chart_is_called_like_one_of_ours() -> None:
    """Ours takes the place of the chart's Watchdog, which is switched off there."""
    disabled = values(retention_days=1, storage_gib=10, memory_gib=3, alertmanager={})["defaultRules"][
        "disabled"
    ]
    assert disabled["Watchdog"] is True
    assert alert_names() & set(disabled) == {"Watchdog"}
