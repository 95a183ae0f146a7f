"""Where a stack reports that training got worse."""

from collections.abc import Sequence
from typing import TypedDict

import pulumi
import pulumi_aws as aws

from components.base import Component
from components.ordering import after

# AWS's own key for topics: any principal of the account may use it through SNS, so publishers need no
# right on a key. Services of AWS could not use it; none publishes here. Source: SNS developer guide,
# "Managing Amazon SNS encryption keys".
ENCRYPTION_KEY = "alias/aws/sns"


class AwsAlertTopicArgs(TypedDict):
    """Arguments of `AwsAlertTopic`."""

    emails: Sequence[str]
    """Addresses that get the alerts. Each gets one mail that asks to confirm the subscription."""


class AwsAlertTopic(Component):
    """An encrypted topic with people subscribed to it; the roles of publishers decide who may publish."""

    topic_arn: pulumi.Output[str]
    """The topic; what publishes to it comes after its subscriptions."""

    def __init__(
        self, name: str, args: AwsAlertTopicArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__(name, opts)
        topic = aws.sns.Topic(f"{name}-topic", kms_master_key_id=ENCRYPTION_KEY, opts=self.child())
        people = [
            aws.sns.TopicSubscription(
                f"{name}-{index}", topic=topic.arn, protocol="email", endpoint=email, opts=self.child()
            )
            for index, email in enumerate(args["emails"])
        ]
        self.topic_arn = after(topic.arn, people)
        self.register_outputs({"topic_arn": self.topic_arn})
