"""Notification channels of Cloud Monitoring for mail addresses."""

from collections.abc import Sequence

import pulumi_gcp as gcp

from components.base import Component


def mail_channels(
    component: Component, name: str, emails: Sequence[str]
) -> list[gcp.monitoring.NotificationChannel]:
    """A notification channel for each address, in their order. An address does not have to confirm."""
    return [
        gcp.monitoring.NotificationChannel(
            f"{name}-{index}",
            display_name=f"{name} to {email}",
            type="email",
            labels={"email_address": email},
            opts=component.child(),
        )
        for index, email in enumerate(emails)
    ]
