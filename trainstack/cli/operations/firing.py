"""Alerts that fire in a cluster, from its Alertmanager over a port-forward of kubectl.

A service proxy of the API server does not reach it: the network policy of the namespace admits its own pods
only, and connections that the node itself opens (components/kubernetes/monitoring/namespace.py).
"""

import re
import selectors
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import requests

# As in components/kubernetes/monitoring/names.py, which imports the engine's packages.
_NAMESPACE, _SERVICE, _PORT = "monitoring", "service/monitoring-alertmanager", 9093
_START_S, _ANSWER_S = 20.0, 10.0
_ALWAYS = "Watchdog"
"""Fires as long as Prometheus reaches Alertmanager."""
_ORDER = ("critical", "warning", "info")
_ANSWERS = re.compile(r"Forwarding from 127\.0\.0\.1:(\d+) ")


@dataclass(frozen=True)
class FiringAlert:
    """An alert that is neither silenced nor inhibited."""

    name: str
    severity: str
    team: str
    since: str
    summary: str
    runbook: str

    def __str__(self) -> str:
        team = f" of team {self.team}" if self.team else ""
        return f"{self.name}{team} since {self.since}: {self.summary} ({self.runbook or 'no runbook'})"


@dataclass(frozen=True)
class FiringAlerts:
    """Alerts that fire; unknown where `why` has a reason."""

    firing: Sequence[FiringAlert] = ()
    why: str = ""

    def document(self) -> dict[str, Any]:
        """The alerts as JSON."""
        known = not self.why
        return {"known": known, "why": self.why, "firing": [asdict(one) for one in self.firing]}

    def fields(self) -> Iterator[tuple[str, str]]:
        """The alerts as lines of `trainstack status`."""
        if self.why:
            yield "alerts", f"UNKNOWN: {self.why}"
        elif not self.firing:
            yield "alerts", "none fires"
        yield from ((one.severity or "alert", str(one)) for one in self.firing)


def firing(kubeconfig: str) -> FiringAlerts:
    """The alerts of the cluster of a kubeconfig, worst first; unknown where they cannot be read."""
    try:
        with _forwarded(kubeconfig) as address, requests.Session() as session:
            session.trust_env = False  # no proxy for an address of this machine
            response = session.get(f"{address}/api/v2/alerts", timeout=_ANSWER_S)
            response.raise_for_status()
            return parsed(response.json())
    except (_UnreachableError, requests.RequestException) as error:
        return FiringAlerts(why=f"Alertmanager is not reachable: {error}")
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        return FiringAlerts(why=f"Alertmanager's answer cannot be read: {error!r}")


def parsed(rows: Sequence[Mapping[str, Any]]) -> FiringAlerts:
    """The alerts in a response of Alertmanager (v0.34.1 api/v2/openapi.yaml, `gettableAlerts`)."""
    names = {row["labels"]["alertname"] for row in rows}
    found = [_alert(row) for row in rows if row["status"]["state"] == "active"]
    shown = [one for one in found if one.name != _ALWAYS]
    why = "" if _ALWAYS in names else f"{_ALWAYS} is missing: Alertmanager gets no alerts from Prometheus"
    return FiringAlerts(sorted(shown, key=_rank), why)


def _alert(row: Mapping[str, Any]) -> FiringAlert:
    labels, notes = row["labels"], row.get("annotations") or {}
    return FiringAlert(
        name=labels["alertname"],
        severity=labels.get("severity", ""),
        team=labels.get("team", ""),
        since=row["startsAt"],
        summary=notes.get("summary", ""),
        runbook=notes.get("runbook_url", ""),
    )


def _rank(one: FiringAlert) -> tuple[int, str, str]:
    return _ORDER.index(one.severity) if one.severity in _ORDER else len(_ORDER), one.since, one.name


class _UnreachableError(Exception):
    """kubectl forwards no port."""


@contextmanager
def _forwarded(kubeconfig: str) -> Iterator[str]:
    """The address of a forwarded port. Raises _UnreachableError."""
    with tempfile.TemporaryDirectory(prefix="trainstack-") as folder, tempfile.TemporaryFile("w+") as log:
        config = Path(folder, "kubeconfig")
        config.write_text(kubeconfig)
        command = ["kubectl", f"--kubeconfig={config}", f"--namespace={_NAMESPACE}", "port-forward", _SERVICE]
        try:
            process = subprocess.Popen([*command, f":{_PORT}"], stdout=subprocess.PIPE, stderr=log, text=True)
        except FileNotFoundError:
            raise _UnreachableError("kubectl is not installed") from None
        with process:
            try:
                line = _first_line(process)
                if not (found := _ANSWERS.match(line)):
                    log.seek(0)
                    late = f"kubectl port-forward did not start in {_START_S:.0f} s"
                    raise _UnreachableError(log.read().strip() or line.strip() or late)
                yield f"http://127.0.0.1:{found[1]}"
            finally:
                process.terminate()


def _first_line(process: "subprocess.Popen[str]") -> str:
    """The first line of the output; empty where there is none in time."""
    assert process.stdout
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        return process.stdout.readline() if selector.select(_START_S) else ""
