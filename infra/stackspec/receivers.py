"""Receivers of alerts besides mail: paging services and chats, whose secret is in the cluster alone."""

from typing import Annotated, Literal

from pydantic import Field

from infra.stackspec.model import Model, Name, SecretKey

Severity = Literal["critical", "warning", "info"]


class ReceiverSpec(Model):
    """A receiver of alerts; mail to `budget.alert_emails` and to teams is sent as before.

    Its credential is a key of the Secret `alert-receivers` in the namespace `monitoring`, which an
    administrator creates in the cluster (docs/how-to/operate.md).
    """

    name: Name
    """Name of the receiver."""

    kind: Literal["pagerduty", "opsgenie", "slack", "webhook"]
    """Service: `pagerduty` (Events API v2), `opsgenie` (its API ends on 2027-04-05), `slack` (incoming
    webhook) or `webhook` (Alertmanager's JSON, version 4)."""

    key: SecretKey | None = None
    """Key of the Secret `alert-receivers` with the integration key, API key or URL; null: the name."""

    severities: Annotated[tuple[Severity, ...], Field(min_length=1)] = ("critical",)
    """Severities of alerts that are sent: `critical`, `warning`, `info`."""

    team: str | None = None
    """Only alerts of this team; null: of all teams and of the platform."""

    region: Literal["us", "eu"] = "us"
    """Service region of PagerDuty and Opsgenie."""
