"""Alerts in `trainstack status`: firing ones, and why they are unknown, by a kubectl that forwards a port."""

import json
import os
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from trainstack.cli.operations import firing as module
from trainstack.cli.operations.firing import firing, parsed

_WATCHDOG = {
    "labels": {"alertname": "Watchdog", "severity": "none"},
    "annotations": {},
    "startsAt": "2026-11-25T10:00:00.000Z",
    "status": {"state": "active", "silencedBy": [], "inhibitedBy": []},
}


def alert(name: str, severity: str, state: str = "active", **labels: str) -> dict[str, Any]:
    return {
        **_WATCHDOG,
        "labels": {"alertname": name, "severity": severity, **labels},
        "annotations": {"summary": f"about {name}", "runbook_url": f"docs/runbooks/x/{name}.md"},
        "status": {"state": state, "silencedBy": [], "inhibitedBy": []},
    }


@pytest.fixture
def served() -> Iterator[tuple[HTTPServer, dict[str, Any]]]:
    """A server in the place of Alertmanager, with the body and status of its answer."""
    answer: dict[str, Any] = {"status": 200, "body": []}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            assert self.path == "/api/v2/alerts"
            content = json.dumps(answer["body"]).encode()
            self.send_response(answer["status"])
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: object) -> None:
            """Print nothing."""

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server, answer
    server.shutdown()
    thread.join()
    server.server_close()


def kubectl(folder: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    program = folder / "kubectl"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")


def test_alerts_that_fire_are_shown_worst_first(
    served: tuple[HTTPServer, dict[str, Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server, answer = served
    line = f"Forwarding from 127.0.0.1:{server.server_port} -> 9093"
    kubectl(tmp_path, monkeypatch, f'echo "$@" > {tmp_path}/calls; echo "{line}"; exec sleep 60')
    answer["body"] = [
        alert("VolumeFillingUp", "warning", team="research"), _WATCHDOG, alert("GpuXidError", "critical"),
        alert("Silenced", "critical", "suppressed"), alert("New", "critical", "unprocessed"),
    ]  # fmt: skip
    found = firing("{}")
    assert found.why == ""
    assert [(one.name, one.team) for one in found.firing] == [
        ("GpuXidError", ""), ("VolumeFillingUp", "research"),
    ]  # fmt: skip
    assert [name for name, _ in found.fields()] == ["critical", "warning"]
    assert (
        "--namespace=monitoring port-forward service/monitoring-alertmanager :9093"
        in (tmp_path / "calls").read_text()
    )
    answer["status"] = 503
    assert "503" in firing("{}").why
    answer.update(status=200, body={"code": 1})
    assert firing("{}").why


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ('echo "error: services not found" >&2; exit 1', "services not found"),
        ('echo "Forwarding from 127.0.0.1:1 -> 9093"; exec sleep 60', "not reachable"),
        ("exec sleep 60", "did not start"),
    ],
)
def test_alerts_that_cannot_be_read_are_unknown_and_not_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, reason: str
) -> None:
    monkeypatch.setattr(module, "_START_S", 5.0 if "echo" in script else 0.2)
    kubectl(tmp_path, monkeypatch, script)
    found = firing("{}")
    assert reason in found.why and not found.document()["known"]
    ((name, text),) = found.fields()
    assert name == "alerts" and text.startswith("UNKNOWN")


def test_without_the_watchdog_silence_is_no_health() -> None:
    assert parsed([]).why and parsed([alert("GpuXidError", "critical")]).why
    healthy = parsed([{**_WATCHDOG, "status": {"state": "suppressed"}}])
    assert (healthy.why, list(healthy.firing)) == ("", [])
