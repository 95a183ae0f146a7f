"""Where a stack reports that training got worse."""

import json
from collections.abc import Sequence
from typing import TypedDict

import pulumi
import pulumi_gcp as gcp

from components.base import Component
from components.gcp.alerts.policies import PolicyArgs, mail_policy, told
from components.ordering import after

KEPT_S = 7 * 24 * 3600
"""How long the topic keeps a message, also for a subscription that is made afterwards."""


class GcpAlertTopicArgs(TypedDict):
    """Arguments of `GcpAlertTopic`."""

    project: str
    region: str
    """Where messages are kept."""
    cluster_name: pulumi.Input[str]
    """Cluster of the validations; its workloads' logs have to go to Cloud Logging."""
    namespace: str
    """Namespace of the validations."""
    publisher: pulumi.Input[str]
    """The pods of the validations, as IAM calls them; they may publish."""
    emails: Sequence[str]
    """Addresses that get the alerts, one to sixteen."""


class GcpAlertTopic(Component):
    """A topic for programs, and mail for people, about the same alert.

    Pub/Sub sends no mail. People are told by Cloud Monitoring: a run that finds something says so in its log,
    in one line of JSON that GKE takes apart (`jsonPayload`), and a policy on the log mails it. So they hear
    of it also where the run could not publish. The mail has the subject, and a link to the line with the
    rest. Only the validations' own namespace counts: what other pods print mails nobody.

    An incident of such a policy never ends by itself; it is closed after half an hour, without a mail, so
    that the next one is mailed. Nobody has to confirm an address. A run that never started leaves no line:
    `trainstack status` shows when the last one ran.

    The topic has no key of ours: it holds a verdict, and a key that is withdrawn would silence it. Without a
    subscription, nobody reads it; it keeps a week of messages for one that comes later.

    Untested in a real project.
    """

    topic: pulumi.Output[str]
    """`projects/<project>/topics/<topic>`; what publishes to it comes after its right and the policy."""

    def __init__(
        self, name: str, args: GcpAlertTopicArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__(name, opts)
        people = told(self, name, args["emails"], "emails")
        topic = gcp.pubsub.Topic(
            f"{name}-topic",
            message_storage_policy={"allowed_persistence_regions": [args["region"]]},
            message_retention_duration=f"{KEPT_S}s",
            opts=self.child(),
        )
        right = gcp.pubsub.TopicIAMMember(
            f"{name}-publisher",
            topic=topic.id,
            role="roles/pubsub.publisher",
            member=args["publisher"],
            opts=self.child(),
        )
        self.topic = after(topic.id, [right, self._policy(name, args, people)])
        self.register_outputs({"topic": self.topic})

    def _policy(
        self, name: str, args: GcpAlertTopicArgs, people: Sequence[pulumi.Input[str]]
    ) -> gcp.monitoring.AlertPolicy:
        said = pulumi.Output.from_input(args["cluster_name"]).apply(
            lambda cluster: alerts_of(args["project"], cluster, args["namespace"])
        )
        asked: PolicyArgs = {
            "title": f"{name}: a scheduled validation found something",
            "condition": {
                "display_name": "a validation wrote an alert",
                "condition_matched_log": {
                    "filter": said,
                    # Each run is an incident of its own: the first one does not hide the second.
                    "label_extractors": {
                        "subject": "EXTRACT(jsonPayload.subject)",
                        "pod": "EXTRACT(resource.labels.pod_name)",
                    },
                },
            },
            "documentation": DOCUMENTATION,
            "by_line": True,
        }
        return mail_policy(self, name, asked, people)


DOCUMENTATION = """\
${log.extracted_label.subject}, in the pod ${log.extracted_label.pod}.

The log entry says in `jsonPayload.text` which check failed, by how much, and where the run is recorded.
`trainstack status` shows the last result of each pool; `trainstack validate` runs the validation again.
"""


def alerts_of(project: str, cluster: str, namespace: str) -> str:
    """A filter of Cloud Logging: the line `alert` of a validation that has something to tell.

    The fields are those of `smoke_training.runtime.output.emit` and of `record.alert.send`.
    """
    return " AND ".join(
        (
            'resource.type="k8s_container"',
            f"resource.labels.project_id={json.dumps(project)}",
            f"resource.labels.cluster_name={json.dumps(cluster)}",
            f"resource.labels.namespace_name={json.dumps(namespace)}",
            'jsonPayload.event="alert"',
            "jsonPayload.subject:*",
        )
    )
