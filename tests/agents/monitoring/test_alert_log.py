"""The pod that writes alerts to its log: each becomes a line that a log service takes apart."""

import json
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator

import pytest

from agents.monitoring.alert_log import Log, lines

# As Alertmanager sends it (notify/webhook, version 4).
MESSAGE = {
    "version": "4",
    "status": "firing",
    "receiver": "monitoring/x",
    "alerts": [
        {
            "status": "firing",
            "labels": {"alertname": "GpuXidError", "severity": "critical", "team": "vision"},
            "annotations": {
                "summary": "XID 79 on GPU 0 of n1",
                "description": "It failed.",
                "runbook_url": "docs/x.md",
            },
            "startsAt": "2026-11-25T20:00:00Z",
        },
        {"status": "resolved", "labels": {"alertname": "MlflowDown"}, "annotations": {}},
    ],
}


@pytest.fixture
def address() -> Iterator[str]:
    log = Log(0)
    thread = threading.Thread(target=log.server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{log.server.server_address[1]}"
    log.server.shutdown()
    log.server.server_close()


def post(address: str, content: bytes) -> int:
    request = urllib.request.Request(address, content, method="POST")
    with urllib.request.urlopen(request, timeout=10) as answer:
        return int(answer.status)


def get(address: str) -> str:
    with urllib.request.urlopen(address, timeout=10) as answer:
        return str(answer.read().decode())


def test_each_alert_is_one_line_of_json(address: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert post(f"{address}/team-vision", json.dumps(MESSAGE).encode()) == 200
    first, second = map(json.loads, capsys.readouterr().out.splitlines())
    assert first == {
        "event": "alert",
        "receiver": "team-vision",
        "subject": "GpuXidError: XID 79 on GPU 0 of n1",
        "text": "It failed.",
        "runbook": "docs/x.md",
        "severity": "ERROR",
        "labels": {"alertname": "GpuXidError", "severity": "critical", "team": "vision"},
        "since": "2026-11-25T20:00:00Z",
    }
    # No mail is sent about an alert that ended.
    assert (second["event"], second["subject"]) == ("alert-ended", "MlflowDown")


def test_it_counts_what_it_wrote(address: str) -> None:
    post(f"{address}/platform", json.dumps(MESSAGE).encode())
    assert get(f"{address}/healthz") == "ok\n"
    assert "trainstack_alerts_logged_total 2\n" in get(f"{address}/metrics")


@pytest.mark.parametrize(
    "content", [b"", b"[]", b"{}", b'{"alerts": 3}', b'{"alerts": [{"status": "firing"}]}']
)
def test_what_is_no_message_is_refused_and_writes_nothing(
    address: str, content: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(urllib.error.HTTPError, match="400"):
        post(f"{address}/platform", content)
    assert capsys.readouterr().out == ""


def line(severity: str) -> str:
    """The severity in the log service."""
    message = {"alerts": [{"status": "firing", "labels": {"alertname": "A", "severity": severity}}]}
    return str(next(lines("x", message))["severity"])


def test_severities_are_those_of_the_log_service() -> None:
    assert [line(word) for word in ("critical", "warning", "info", "none")] == [
        "ERROR",
        "WARNING",
        "INFO",
        "INFO",
    ]
