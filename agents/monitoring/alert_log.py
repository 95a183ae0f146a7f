"""Writes every alert that Alertmanager hands it as one line of JSON, for a cloud that mails from its logs.

Where a cloud has no service that Alertmanager can tell without a secret, it may still collect what pods
print, and mail about lines. Runs in a pod of its own that may do nothing. Standard library
only.
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
    """What is written about a message of Alertmanager (webhook version 4): a line for each alert in it.

    One that ended has another `event`, so that nobody is mailed. Raises KeyError for anything else.
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
    """Answers POST /RECEIVER, /healthz and /metrics."""

    def __init__(self, port: int) -> None:
        self._written, self._lock = 0, Lock()
        log = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                length = int(self.headers.get("Content-Length", 0))
                self._say(*log.take(self.path.strip("/"), self.rfile.read(min(length, _MOST_BYTES))))

            def do_GET(self) -> None:
                self._say(200, log.metrics() if self.path == "/metrics" else "ok\n")

            def _say(self, status: int, text: str) -> None:
                self.send_response(status)
                self.send_header("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
                self.send_header("Content-Length", str(len(text.encode())))
                self.end_headers()
                self.wfile.write(text.encode())

            def log_message(self, format: str, *args: object) -> None:
                """Only alerts are written: a probe every few seconds is no news."""

        # The policy of the namespace says who reaches it.
        self.server = ThreadingHTTPServer((os.environ.get(ADDRESS, ""), port), Handler)

    def take(self, receiver: str, content: bytes) -> tuple[int, str]:
        """Write the alerts of a message; the status and the words of the answer."""
        try:
            found = list(lines(receiver, json.loads(content)))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            # Alertmanager gives up on a 4xx, and says so in its own metrics.
            return 400, f"no message of Alertmanager: {error!r}\n"
        with self._lock:
            for line in found:
                sys.stdout.write(json.dumps(line, sort_keys=True) + "\n")
            sys.stdout.flush()
            self._written += len(found)
        return 200, "ok\n"

    def metrics(self) -> str:
        """How many lines were written, in the text format of Prometheus."""
        name = "trainstack_alerts_logged_total"
        return f"# TYPE {name} counter\n{name} {self._written}\n"


def main() -> int:
    """Listen until the pod ends."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--account", type=Path, required=True, help="not used: the account may do nothing")
    Log(parser.parse_args().port).server.serve_forever()
    return 0


if __name__ == "__main__":
    sys.exit(main())
