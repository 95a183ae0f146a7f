"""Webhook of Alertmanager: writes each alert as one line of JSON, for a cloud that mails about log lines.

For clouds without a notification service that Alertmanager can use without a secret. Runs in a pod of its own
without permissions. Standard library only.
"""

import argparse
import json
import os
import sys
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock
from typing import Any

from agents.shared.health import ADDRESS

# More than Alertmanager sends at once: some hundred alerts of some kilobytes.
_MOST_BYTES = 4 * 1024 * 1024


def lines(receiver: str, message: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The lines for a message of Alertmanager (webhook version 4), one for each alert.

    An alert that ended has another `event`, about which no mail is sent. Raises KeyError for other input.
    """
    for alert in message["alerts"]:
        labels, notes = alert["labels"], alert.get("annotations", {})
        firing = alert["status"] == "firing"
        yield {
            "event": "alert" if firing else "alert-ended",
            "receiver": receiver,
            "subject": f"{labels['alertname']}: {notes.get('summary', '')}".strip(": "),
            "text": notes.get("description", ""),
            "runbook": notes.get("runbook_url", ""),
            "severity": {"critical": "ERROR", "warning": "WARNING"}.get(labels.get("severity"), "INFO"),
            "labels": labels,
            "since": alert.get("startsAt", ""),
        }


class Log:
    """Serves POST /RECEIVER, /healthz and /metrics."""

    def __init__(self, port: int) -> None:
        self._written, self._lock = 0, Lock()
        log = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                length = int(self.headers.get("Content-Length", 0))
                self._respond(*log.take(self.path.strip("/"), self.rfile.read(min(length, _MOST_BYTES))))

            def do_GET(self) -> None:
                self._respond(200, log.metrics() if self.path == "/metrics" else "ok\n")

            def _respond(self, status: int, text: str) -> None:
                self.send_response(status)
                self.send_header("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
                self.send_header("Content-Length", str(len(text.encode())))
                self.end_headers()
                self.wfile.write(text.encode())

            def log_message(self, format: str, *args: object) -> None:
                """Log alerts only, no request."""

        # The network policy of the namespace restricts access.
        self.server = ThreadingHTTPServer((os.environ.get(ADDRESS, ""), port), Handler)

    def take(self, receiver: str, content: bytes) -> tuple[int, str]:
        """Write the alerts of a message; returns status and text of the response."""
        try:
            found = list(lines(receiver, json.loads(content)))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            # Alertmanager does not retry after a 4xx, and counts it in its own metrics.
            return 400, f"no message of Alertmanager: {error!r}\n"
        with self._lock:
            for line in found:
                sys.stdout.write(json.dumps(line, sort_keys=True) + "\n")
            sys.stdout.flush()
            self._written += len(found)
        return 200, "ok\n"

    def metrics(self) -> str:
        """The number of lines written, in the text format of Prometheus."""
        name = "trainstack_alerts_logged_total"
        return f"# TYPE {name} counter\n{name} {self._written}\n"


def main() -> int:
    """Listen until the pod ends."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--account", type=Path, required=True, help="not used")
    Log(parser.parse_args().port).server.serve_forever()
    return 0


if __name__ == "__main__":
    sys.exit(main())
