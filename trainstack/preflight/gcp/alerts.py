"""The check of notification channels for alerts of budgets and scheduled validations."""

from collections.abc import Iterator

from trainstack.preflight.answers import Answer, State
from trainstack.preflight.gcp.project import Project, Row

_CHECK = "alert-mail"


def mail(project: Project) -> Iterator[Answer]:
    """No channel to an address is disabled or unverified.

    Source: discovery document monitoring v3, NotificationChannel: one that is UNVERIFIED does not work, one
    without that status works. Channels for e-mail have none.
    """
    wanted, wrong = project.spec.budget.alert_emails, False
    method = "monitoring.projects.notificationChannels.list"
    for row in project.items(method, "notificationChannels", name=project.path, filter='type="email"'):
        address = (row.get("labels") or {}).get("email_address")
        if address not in wanted or not _own(project, row):
            continue
        why = None
        if row.get("enabled") is False:
            why = "is disabled"
        elif row.get("verificationStatus") == "UNVERIFIED":
            why = "waits for a confirmation"
        if why:
            wrong = True
            fix = f"Check {row['name']} in the console (Monitoring, Notification channels)."
            yield Answer(_CHECK, State.SHORT, f"the channel to {address} {why}", fix)
    if not wrong:
        yield Answer(
            _CHECK, State.READY, f"{', '.join(wanted)} receive alerts; Google requires no confirmation"
        )


def _own(project: Project, row: Row) -> bool:
    """By its labels, or by its display name, which begins with the name of the stack."""
    return project.owns(row.get("userLabels")) or str(row.get("displayName", "")).startswith(
        project.spec.name
    )
