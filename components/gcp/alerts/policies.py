"""Policies of Cloud Monitoring that send mail."""

from collections.abc import Sequence
from typing import Any, NotRequired, TypedDict

import pulumi
import pulumi_gcp as gcp

from components.base import Component
from components.gcp.mail import mail_channels
from infra.catalog.gcp import facts
from infra.catalog.money import email_problems
from infra.errors import UserError

# The minimum times of Cloud Monitoring, in seconds. Source: Cloud Monitoring documentation,
# "Configure log-based alerting policies" (time between notifications; incident autoclose duration).
_MAIL_AT_MOST_EVERY_S = 300
_CLOSE_AFTER_S = 1800

SUBJECT = "${log.extracted_label.subject}"
"""The subject of a log line, which a condition extracts as the label `subject`."""


class PolicyArgs(TypedDict):
    """The content of an alert policy and its mail."""

    title: str
    """Display name of the policy."""
    condition: Any
    """The condition, with its `display_name`. Any: mypy needs 10 GB for literals against the SDK's types."""
    documentation: str
    """Markdown in the mail."""
    by_line: NotRequired[bool]
    """Whether the condition is about log lines: the mail's subject is theirs, and an incident is closed after
    half an hour without a mail, so that the next line is mailed. Default: no."""
    subject: NotRequired[str]
    """Subject of mail about a line. Default: the label `subject` that the condition extracts."""


def channels_of(
    component: Component, name: str, emails: Sequence[str], path: str
) -> list[pulumi.Output[str]]:
    """The notification channels of addresses. Raises UserError about addresses, which are at `path`."""
    problems = [*email_problems(path, emails, facts.limits["policy_channels"])]
    if problems:
        raise UserError(problems)
    return [channel.name for channel in mail_channels(component, f"{name}-mail", emails)]


def mail_policy(
    component: Component, name: str, args: PolicyArgs, channels: pulumi.Input[Sequence[pulumi.Input[str]]]
) -> gcp.monitoring.AlertPolicy:
    """The policy NAME-policy."""
    documentation: Any = {"mime_type": "text/markdown", "content": args["documentation"]}
    more: dict[str, Any] = {}
    if args.get("by_line"):
        documentation["subject"] = args.get("subject", SUBJECT)
        more["alert_strategy"] = {
            "notification_rate_limit": {"period": f"{_MAIL_AT_MOST_EVERY_S}s"},
            "auto_close": f"{_CLOSE_AFTER_S}s",
            "notification_prompts": ["OPENED"],
        }
    return gcp.monitoring.AlertPolicy(
        f"{name}-policy",
        display_name=args["title"],
        combiner="OR",
        severity="WARNING",
        conditions=[args["condition"]],
        documentation=documentation,
        notification_channels=channels,
        opts=component.child(),
        **more,
    )
