"""The topic for alerts that training got worse."""

from collections.abc import Mapping, Sequence
from typing import NotRequired, TypedDict

import pulumi
import pulumi_aws as aws

from components.aws import iam
from components.aws.account import AwsAccount, current_account
from components.aws.encryption import encryption_key
from components.base import Component, Options
from components.ordering import after

# AWS's own key for topics: any principal of the account may use it through SNS, so publishers need no
# permission on a key. Services of AWS cannot use it: an alarm of CloudWatch then notes in its history that it
# has no access to the key, and sends nothing. Source: SNS developer guide, "Managing Amazon SNS encryption
# keys"; AWS re:Post, "configure a CloudWatch alarm with an encrypted SNS topic" (read 2026-11-26).
ENCRYPTION_KEY = "alias/aws/sns"


class AwsAlertTopicArgs(TypedDict):
    """Arguments of `AwsAlertTopic`."""

    emails: Sequence[str]
    """Addresses that get the alerts. Each gets one mail that asks to confirm the subscription."""
    alarms_of: NotRequired[str]
    """Region whose CloudWatch alarms publish here, too, which requires a key of ours. Default: none do."""


class AwsAlertTopic(Component):
    """An encrypted topic with subscribed addresses; the roles of publishers grant publishing."""

    topic_arn: pulumi.Output[str]
    """The topic; its publishers come after its subscriptions."""

    def __init__(self, name: str, args: AwsAlertTopicArgs, opts: Options = None) -> None:
        super().__init__(name, opts)
        topic = aws.sns.Topic(
            f"{name}-topic", kms_master_key_id=self._key(name, args.get("alarms_of")), opts=self.child()
        )
        people = [
            aws.sns.TopicSubscription(
                f"{name}-{index}", topic=topic.arn, protocol="email", endpoint=email, opts=self.child()
            )
            for index, email in enumerate(args["emails"])
        ]
        self.topic_arn = after(topic.arn, people)
        self.register_declared()

    def _key(self, name: str, region: str | None) -> pulumi.Input[str]:
        if region is None:
            return ENCRYPTION_KEY
        key = encryption_key(
            self,
            name,
            account=current_account(self),
            purpose="Alerts on their way to people",
            statements=lambda account: topic_key_statements(account, region),
        )
        return key.arn


def topic_key_statements(account: AwsAccount, region: str) -> list[Mapping[str, object]]:
    """Statements of the key of a topic besides IAM.

    For principals of the account the same as AWS's own key: its use through SNS, where a policy allows
    publishing. For CloudWatch the same, for alarms of this account. The topic needs no policy of its own:
    SNS's default lets the account's own resources publish.
    """
    uses = {"Action": ["kms:Decrypt", "kms:GenerateDataKey*"], "Resource": "*"}
    alarms = f"arn:{account.partition}:cloudwatch:{region}:{account.id}:alarm:*"
    return [
        {
            "Sid": "PublishersOfThisAccountThroughSns",
            "Effect": "Allow",
            "Principal": {"AWS": "*"},
            **uses,
            "Condition": {
                "StringEquals": {
                    "kms:CallerAccount": account.id,
                    "kms:ViaService": f"sns.{region}.amazonaws.com",
                }
            },
        },
        {
            "Sid": "AlarmsOfThisAccount",
            "Effect": "Allow",
            "Principal": {"Service": "cloudwatch.amazonaws.com"},
            **uses,
            "Condition": iam.from_account(account.id, alarms),
        },
    ]
