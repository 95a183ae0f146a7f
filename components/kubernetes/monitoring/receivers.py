"""Pagers and chats as receivers of Alertmanager; credentials are files of a Secret in the cluster."""

from collections.abc import Mapping, Sequence
from typing import Any, NotRequired, TypedDict

SECRET = "alert-receivers"  # noqa: S105 - its name
"""The Secret in the namespace of monitoring that an administrator creates: a key for each receiver."""
_FOLDER = f"/etc/alertmanager/{SECRET}"
_PAGERDUTY_EU = "https://events.eu.pagerduty.com/v2/enqueue"
_OPSGENIE_EU = "https://api.eu.opsgenie.com/"
# A group has the alerts of one name, team and severity, which have one page.
_PAGE = "{{ .CommonAnnotations.runbook_url }}"
_SEVERITY = '{{ or .CommonLabels.severity "error" }}'
_PRIORITY = '{{ if eq .CommonLabels.severity "critical" }}P1{{ else }}P3{{ end }}'
_TITLE = "{{ .Status | toUpper }}: {{ .CommonLabels.alertname }} {{ .CommonLabels.team }}"
_TEXT = "{{ range .Alerts }}{{ .Annotations.summary }}\n{{ .Annotations.description }}\n{{ end }}" + _PAGE


class PagedTeamArgs(TypedDict):
    """A team whose alerts a receiver gets."""

    name: str
    """Name of the team."""
    namespace: str
    """Namespace of the team."""


class ReceiverArgs(TypedDict):
    """A receiver besides mail."""

    name: str
    """Name of the receiver."""
    kind: str
    """`pagerduty`, `opsgenie`, `slack` or `webhook`."""
    key: str
    """The key of the Secret `alert-receivers` with its credential."""
    severities: Sequence[str]
    """Severities of the alerts that it gets, such as `critical`."""
    europe: bool
    """The service in the European Union, of PagerDuty and Opsgenie."""
    team: NotRequired[PagedTeamArgs]
    """Default: alerts of all teams and of the platform."""


def page_name(receiver: ReceiverArgs) -> str:
    """The receiver's name in Alertmanager, which none of a cloud or of a team has."""
    return f"page-{receiver['name']}"


def body(receiver: ReceiverArgs) -> dict[str, Any]:
    """The receiver.

    Alertmanager reads the file for each message, so a new credential needs no restart
    (prometheus/alertmanager v0.34.1 notify/).
    """
    file, kind = f"{_FOLDER}/{receiver['key']}", receiver["kind"]
    return {
        "name": page_name(receiver),
        f"{kind}_configs": [{"send_resolved": True, **_SETTINGS[kind](file, europe=receiver["europe"])}],
    }


def _pagerduty(file: str, *, europe: bool) -> Mapping[str, Any]:
    return {
        "routing_key_file": file,
        "severity": _SEVERITY,
        "details": {"runbook": _PAGE},
        **({"url": _PAGERDUTY_EU} if europe else {}),
    }


def _opsgenie(file: str, *, europe: bool) -> Mapping[str, Any]:
    return {
        "api_key_file": file,
        "message": _TITLE,
        "priority": _PRIORITY,
        "details": {"runbook": _PAGE},
        **({"api_url": _OPSGENIE_EU} if europe else {}),
    }


def _slack(file: str, *, europe: bool) -> Mapping[str, Any]:
    del europe  # the URL in the file names the server
    return {"api_url_file": file, "title": _TITLE, "text": _TEXT}


def _webhook(file: str, *, europe: bool) -> Mapping[str, Any]:
    del europe
    return {"url_file": file}


_SETTINGS = {"pagerduty": _pagerduty, "opsgenie": _opsgenie, "slack": _slack, "webhook": _webhook}


def volume() -> dict[str, Any]:
    """Settings of Alertmanager's pod: it starts without the Secret, else no mail would be sent, either.

    The operator's own field `secrets` mounts Secrets that must exist (prometheus-operator v0.93.1
    pkg/alertmanager/operator.go); the namespace exists only after the first `up`.
    """
    return {
        "volumes": [{"name": SECRET, "secret": {"secretName": SECRET, "optional": True}}],
        "volumeMounts": [{"name": SECRET, "mountPath": _FOLDER, "readOnly": True}],
    }
