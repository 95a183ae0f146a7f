"""The topic and the mail for alerts that training got worse."""

from collections.abc import Sequence
from typing import TypedDict

import pulumi
import pulumi_gcp as gcp

from components.base import Component, Options
from components.gcp import iam
from components.gcp.alerts.alert_lines import AlertLinesArgs
from components.gcp.alerts.policies import PolicyArgs, channels_of, mail_policy
from components.ordering import after

KEPT_S = 7 * 24 * 3600
"""Retention of the topic's messages, also for a subscription that is created afterwards."""


class GcpAlertTopicArgs(TypedDict):
    """Arguments of `GcpAlertTopic`."""

    region: str
    """Project of the topic."""
    lines: AlertLinesArgs
    """The lines in which the validations report alerts (`alert_lines`)."""
    publisher: pulumi.Input[str]
    """The account of the validations, as an IAM member; it may publish."""
    emails: Sequence[str]
    """Addresses that get the alerts, one to sixteen."""


class GcpAlertTopic(Component):
    """A topic for programs, and mail for people, about the same alert.

    Pub/Sub sends no mail. Cloud Monitoring does: a run with an alert logs it in one line of JSON, and a
    policy on the log mails it. So the mail is also sent where the run could not publish. It has the subject,
    and a link to the line with the rest.

    An incident of such a policy never ends by itself; it is closed after half an hour, without a mail, so
    that the next one is mailed. Addresses need no confirmation. A run that never started leaves no line.

    The topic has no key of ours: it holds a verdict, and a revoked key would silence it. Without a
    subscription, it is not read; it keeps a week of messages for a later one.

    Untested in a real project.
    """

    topic: pulumi.Output[str]
    """`projects/<project>/topics/<topic>`; publishers come after its permission and the policy."""
    channels: pulumi.Output[Sequence[str]]
    """Names of the notification channels, for other alerts."""

    def __init__(self, name: str, args: GcpAlertTopicArgs, opts: Options = None) -> None:
        super().__init__(name, opts)
        people = channels_of(self, name, args["emails"], "emails")
        topic = gcp.pubsub.Topic(
            f"{name}-topic",
            message_storage_policy={"allowed_persistence_regions": [args["region"]]},
            message_retention_duration=f"{KEPT_S}s",
            opts=self.child(),
        )
        right = iam.on_topic(self, f"{name}-publisher", topic.id, "roles/pubsub.publisher", args["publisher"])
        self.topic = after(topic.id, [right, self._policy(name, args, people)])
        self.channels = pulumi.Output.all(*people)
        self.register_declared()

    def _policy(
        self, name: str, args: GcpAlertTopicArgs, people: Sequence[pulumi.Input[str]]
    ) -> gcp.monitoring.AlertPolicy:
        lines = args["lines"]
        asked: PolicyArgs = {
            "title": f"{name}: a scheduled validation found something",
            "condition": {
                "display_name": "a validation wrote an alert",
                "condition_matched_log": {
                    "filter": lines["filter"],
                    # Each run is an incident of its own: the first one does not hide the second.
                    "label_extractors": {"subject": lines["subject"], "run": lines["run"]},
                },
            },
            "documentation": _documentation(lines),
            "by_line": True,
        }
        return mail_policy(self, name, asked, people)


def _documentation(lines: AlertLinesArgs) -> str:
    return f"""\
${{log.extracted_label.subject}}, in the {lines["kind"]} ${{log.extracted_label.run}}.

The log entry has in `{lines["rest"]}` the failed check, its figure, and where the run is recorded.
{lines["again"]}
"""
