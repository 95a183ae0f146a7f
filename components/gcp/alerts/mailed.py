"""Mail about the lines that a pod writes for one receiver of alerts."""

import json
from collections.abc import Sequence
from typing import TypedDict

import pulumi
import pulumi_gcp as gcp

from components.base import Component
from components.gcp.mail import mail_channels
from components.gcp.validation.alert_topic import CLOSE_AFTER_S, MAIL_AT_MOST_EVERY_S, alerts_of
from components.ordering import after
from infra.catalog.gcp.money import email_problems
from infra.errors import UserError


class GcpMailedAlertsArgs(TypedDict):
    """Arguments of `GcpMailedAlerts`."""

    project: str
    cluster_name: pulumi.Input[str]
    """Cluster of the pod; its workloads' logs have to go to Cloud Logging."""
    namespace: str
    """Namespace of the pod that writes alerts to its log."""
    receiver: str
    """Which lines count: the receiver, as Alertmanager calls it."""
    emails: Sequence[str]
    """Addresses that get the alerts, one to sixteen."""


class GcpMailedAlerts(Component):
    """A policy on a log that mails each alert of a receiver.

    No secret is stored anywhere: the pod may do nothing, GKE collects what it prints, and Cloud Monitoring
    mails it. An incident is one alert of one subject; it is closed after half an hour without a mail, and the
    next line, twice a day while the alert goes on, opens another. There is a mail every five minutes at most.

    Untested in a real project.
    """

    policy: pulumi.Output[str]
    """Name of the policy."""

    def __init__(
        self, name: str, args: GcpMailedAlertsArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__(name, opts)
        problems = [*email_problems("emails", args["emails"], "policy")]
        if problems:
            raise UserError(problems)
        people = mail_channels(self, f"{name}-mail", args["emails"])
        lines = pulumi.Output.from_input(args["cluster_name"]).apply(
            lambda cluster: " AND ".join(
                (
                    alerts_of(args["project"], cluster, args["namespace"]),
                    f"jsonPayload.receiver={json.dumps(args['receiver'])}",
                )
            )
        )
        policy = gcp.monitoring.AlertPolicy(
            f"{name}-policy",
            display_name=f"{name}: alerts of the cluster",
            combiner="OR",
            severity="WARNING",
            conditions=[
                {
                    "display_name": "an alert was written",
                    "condition_matched_log": {
                        "filter": lines,
                        "label_extractors": {
                            "subject": "EXTRACT(jsonPayload.subject)",
                            "text": "EXTRACT(jsonPayload.text)",
                            "runbook": "EXTRACT(jsonPayload.runbook)",
                        },
                    },
                }
            ],
            alert_strategy={
                "notification_rate_limit": {"period": f"{MAIL_AT_MOST_EVERY_S}s"},
                "auto_close": f"{CLOSE_AFTER_S}s",
                "notification_prompts": ["OPENED"],
            },
            documentation={
                "subject": "${log.extracted_label.subject}",
                "mime_type": "text/markdown",
                "content": DOCUMENTATION,
            },
            notification_channels=[channel.name for channel in people],
            opts=self.child(),
        )
        self.policy = after(policy.name, [policy])
        self.register_outputs({"policy": self.policy})


DOCUMENTATION = """\
${log.extracted_label.subject}

${log.extracted_label.text}

What it means and what to do first: ${log.extracted_label.runbook}
"""
