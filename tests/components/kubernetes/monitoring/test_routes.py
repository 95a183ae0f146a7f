"""Routes of alerts: Alertmanager's own tool reads the configuration and follows them."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from components.kubernetes.monitoring.receivers import ReceiverArgs
from components.kubernetes.monitoring.routes import PLATFORM, UNSENT, RouteArgs, config
from tests.components.kubernetes.monitoring.prometheus import run

PAGES: list[ReceiverArgs] = [
    {"name": "oncall", "kind": "pagerduty", "key": "oncall", "severities": ("critical",), "europe": True},
    {"name": "duty", "kind": "opsgenie", "key": "duty", "severities": ("critical",), "europe": True},
    {"name": "chat", "kind": "slack", "key": "chat", "severities": ("critical", "warning"), "europe": False},
    {"name": "own", "kind": "webhook", "key": "own", "severities": ("warning", "info"), "europe": False,
     "team": {"name": "Applied ML (R&D)", "namespace": "team-applied-ml-r-d"}},
]  # fmt: skip
TEAM: RouteArgs = {
    "name": "Applied ML (R&D)",
    "namespace": "team-applied-ml-r-d",
    "receiver": {
        "webhook_configs": [{"url": "http://alert-log.monitoring.svc:8080/x", "send_resolved": True}]
    },
}
SNS: Mapping[str, Any] = {
    "sns_configs": [
        {
            "topic_arn": "arn:aws:sns:us-east-1:123456789012:dev",
            "sigv4": {"region": "us-east-1"},
            "subject": "{{ .Status | toUpper }}: {{ .CommonLabels.alertname }}",
        }
    ]
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    made = tmp_path / "alertmanager.yml"
    made.write_text(yaml.safe_dump(config(SNS, [TEAM])), encoding="utf-8")
    return made


def receivers(path: Path, **labels: str) -> list[str]:
    """The receivers of an alert."""
    given = [f"{key}={json.dumps(value, ensure_ascii=False)}" for key, value in labels.items()]
    return run("amtool", "config", "routes", "test", f"--config.file={path}", *given).strip().split(",")


def test_alertmanager_reads_it(path: Path) -> None:
    assert "SUCCESS" in run("amtool", "check-config", path)


@pytest.mark.parametrize("name", ["applied-ml-r-d", "team-applied-ml-r-d", "Applied ML (R&D)"])
def test_a_team_is_notified_by_any_name_that_a_metric_has_for_it(path: Path, name: str) -> None:
    assert receivers(
        path, alertname="JobFailureRateHigh", severity="warning", layer="orchestration", team=name
    ) == ["team-applied-ml-r-d"]


def test_what_is_critical_for_a_team_is_sent_to_the_platform_too(path: Path) -> None:
    given = {"alertname": "GpuXidError", "severity": "critical", "layer": "execution"}
    assert receivers(path, **given, team="applied-ml-r-d") == [PLATFORM, "team-applied-ml-r-d"]
    assert receivers(path, **given) == [PLATFORM]


@pytest.mark.parametrize("name", ["other", "applied-ml", "applied-ml-r-d-2"])
def test_alerts_of_a_team_without_addresses_go_to_the_platform(path: Path, name: str) -> None:
    assert receivers(path, alertname="BudgetHalfUsed", severity="info", layer="telemetry", team=name) == [
        PLATFORM
    ]


def test_only_what_the_chart_means_for_dashboards_is_not_sent(path: Path) -> None:
    assert receivers(path, alertname="CPUThrottlingHigh", severity="info") == [UNSENT]
    assert receivers(path, alertname="TargetDown", severity="warning") == [PLATFORM]
    assert receivers(path, alertname="BudgetHalfUsed", severity="info", layer="telemetry") == [PLATFORM]


def test_the_watchdog_is_sent_once_a_day(path: Path) -> None:
    assert receivers(path, alertname="Watchdog", severity="none", layer="telemetry") == [PLATFORM]
    (route,) = [one for one in config(SNS, [])["route"]["routes"] if "Watchdog" in one["matchers"][0]]
    assert route["repeat_interval"] == "1d"


@pytest.fixture
def paging(tmp_path: Path) -> Path:
    made = tmp_path / "paging.yml"
    made.write_text(yaml.safe_dump(config(SNS, [TEAM], PAGES)), encoding="utf-8")
    return made


def test_alertmanager_reads_pagers_and_chats_whose_credentials_are_files(paging: Path) -> None:
    assert "SUCCESS" in run("amtool", "check-config", paging)
    found = [one for one in config(SNS, [TEAM], PAGES)["receivers"] if one["name"].startswith("page-")]
    for receiver in found:
        (settings,) = (rows[0] for key, rows in receiver.items() if key.endswith("_configs"))
        assert [value for key, value in settings.items() if key.endswith("_file")] == [
            f"/etc/alertmanager/alert-receivers/{receiver['name'].removeprefix('page-')}"
        ]
        assert settings["send_resolved"] is True


@pytest.mark.parametrize(
    ("labels", "paged"),
    [
        (
            {"alertname": "GpuXidError", "severity": "critical", "layer": "execution"},
            ["oncall", "duty", "chat"],
        ),
        (
            {
                "alertname": "GpuXidError",
                "severity": "critical",
                "team": "applied-ml-r-d",
                "layer": "execution",
            },
            ["oncall", "duty", "chat"],
        ),
        (
            {
                "alertname": "VolumeFillingUp",
                "severity": "warning",
                "team": "applied-ml-r-d",
                "layer": "storage",
            },
            ["chat", "own"],
        ),
        ({"alertname": "TargetDown", "severity": "warning", "team": "other"}, ["chat"]),
        ({"alertname": "BudgetHalfUsed", "severity": "info", "layer": "telemetry", "team": "other"}, []),
        ({"alertname": "Watchdog", "severity": "none", "layer": "telemetry"}, []),
        ({"alertname": "CPUThrottlingHigh", "severity": "info"}, []),
    ],
)
def test_pagers_get_their_severities_and_mail_is_as_without_them(
    path: Path, paging: Path, labels: dict[str, str], paged: list[str]
) -> None:
    found = receivers(paging, **labels)
    assert found[: len(paged)] == [f"page-{name}" for name in paged]
    assert found[len(paged) :] == receivers(path, **labels)
