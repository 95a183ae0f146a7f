"""Publishers and subscribers of the topic of scheduled validations."""

from typing import Any

import pulumi

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
