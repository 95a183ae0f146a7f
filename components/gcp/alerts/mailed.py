"""Mail for the lines that a pod logs for one receiver of alerts."""

import json
from collections.abc import Sequence
from typing import TypedDict

import pulumi

from components.base import Component, Options
from components.gcp.alerts.alert_lines import alerts_of
from components.gcp.alerts.policies import PolicyArgs, channels_of, mail_policy
from components.ordering import after


class GcpMailedAlertsArgs(TypedDict):
    """Arguments of `GcpMailedAlerts`."""

    project: str
    cluster_name: pulumi.Input[str]
    """Cluster of the pod; its workloads' logs must go to Cloud Logging."""
    namespace: str
    """Namespace of the pod that logs alerts."""
    receiver: str
    """Receiver of the lines, by its name in Alertmanager."""
    emails: Sequence[str]
    """Addresses that get the alerts, one to sixteen."""


class GcpMailedAlerts(Component):
    """A policy on a log that mails each alert of a receiver.

    No secret is stored: the pod has no permissions, GKE collects its output, and Cloud Monitoring mails it.
    An incident is one alert of one subject; it is closed after half an hour without a mail, and the next
    line, twice a day while the alert fires, opens another. There is a mail every five minutes at most.

    Untested in a real project.
    """

    policy: pulumi.Output[str]
    """Name of the policy."""

    def __init__(self, name: str, args: GcpMailedAlertsArgs, opts: Options = None) -> None:
        super().__init__(name, opts)
        people = channels_of(self, name, args["emails"], "emails")
        lines = pulumi.Output.from_input(args["cluster_name"]).apply(
            lambda cluster: " AND ".join(
                (
                    alerts_of(args["project"], cluster, args["namespace"]),
                    f"jsonPayload.receiver={json.dumps(args['receiver'])}",
                )
            )
        )
        asked: PolicyArgs = {
            "title": f"{name}: alerts of the cluster",
            "condition": {
                "display_name": "an alert was written",
                "condition_matched_log": {
                    "filter": lines,
                    "label_extractors": {
                        "subject": "EXTRACT(jsonPayload.subject)",
                        "text": "EXTRACT(jsonPayload.text)",
                        "runbook": "EXTRACT(jsonPayload.runbook)",
                    },
                },
            },
            "documentation": DOCUMENTATION,
            "by_line": True,
        }
        policy = mail_policy(self, name, asked, people)
        self.policy = after(policy.name, [policy])
        self.register_declared()


DOCUMENTATION = """\
${log.extracted_label.subject}

${log.extracted_label.text}

What it means and what to do first: ${log.extracted_label.runbook}
"""
