"""Where scheduled validations tell people, and who may."""

import json
from typing import Any

import pulumi

from components.aws.pod_role import secret_reader
from components.aws.validation.alert_topic import AwsAlertTopic
from tests.components.recorder import Recorder, deploy


def made(*emails: str) -> tuple[Recorder, dict[str, Any]]:
    def program() -> dict[str, pulumi.Output[Any]]:
        return {"topic": AwsAlertTopic("dev-alerts", {"emails": emails}).topic_arn}

    return deploy(program)


def test_the_topic_is_encrypted_and_people_are_subscribed() -> None:
    cloud, outputs = made("a@example.com", "b@example.com")
    topic = cloud.one("aws:sns/topic:Topic", "topic").properties
    assert topic["kmsMasterKeyId"] == "alias/aws/sns"
    people = [asked.properties for asked in cloud.asked if asked.type.endswith(":TopicSubscription")]
    assert [row["endpoint"] for row in people] == ["a@example.com", "b@example.com"]
    assert {row["protocol"] for row in people} == {"email"}
    assert outputs["topic"]


def test_only_a_role_that_is_told_so_may_publish_and_only_there() -> None:
    arns = {"region": "us-east-1", "secret_arn": "arn:secret", "key_arn": "arn:key"}
    plain = json.loads(secret_reader(**arns))["Statement"]
    statements = json.loads(secret_reader(**arns, topic_arn="arn:topic"))["Statement"]
    assert statements[:-1] == plain
    assert statements[-1] == {"Effect": "Allow", "Action": ["sns:Publish"], "Resource": ["arn:topic"]}
