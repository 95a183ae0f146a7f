"""Alarms about storage: metrics in CloudWatch, and the policy of the topic."""

import json
from typing import Any

import pulumi
import pytest

from components.aws.storage.alarms import AwsStorageAlarms, AwsStorageAlarmsArgs
from components.aws.validation.alert_topic import AwsAlertTopic
from infra.engine.golang import ROOT
from tests.components.recorder import Recorder, deploy
from tests.policies.rules.judging import made as resource
from tests.policies.rules.judging import results

ALARM = "aws:cloudwatch/metricAlarm:MetricAlarm"
TOPIC = "arn:aws:sns:us-east-1:111122223333:alerts"


def made(**changes: Any) -> Recorder:
    args: AwsStorageAlarmsArgs = {
        "topic_arn": TOPIC,
        "checkpoint_bucket": "dev-checkpoints",
        "checkpoint_classes": [
            {"storage_class": "STANDARD", "limit_gb": 25_200},
            {"storage_class": "STANDARD_IA", "limit_gb": 8_400},
        ],
        "lustre": {"file_system_id": "fs-0123456789abcdef0", "least_free_gib": 720},
    }

    def program() -> dict[str, pulumi.Output[Any]]:
        whole: Any = {**args, **changes}
        return {"arns": AwsStorageAlarms("dev-alarms", whole).alarm_arns}

    return deploy(program)[0]


def alarm(name: str) -> dict[str, Any]:
    return dict(made().one(ALARM, name).properties)


def test_what_lustre_has_left_is_summed_over_its_targets_once() -> None:
    """FSx says one value of each target in a minute: a longer period would sum the same target again."""
    asked = alarm("dev-alarms-lustre")
    assert (asked["namespace"], asked["metricName"]) == ("AWS/FSx", "FreeDataStorageCapacity")
    assert asked["dimensions"] == {"FileSystemId": "fs-0123456789abcdef0"}
    assert (asked["statistic"], asked["period"]) == ("Sum", 60)
    assert (asked["comparisonOperator"], asked["threshold"]) == ("LessThanThreshold", 720 * 2**30)


@pytest.mark.parametrize(
    ("name", "kind", "limit"),
    [("standard", "StandardStorage", 25.2e12), ("standard-ia", "StandardIAStorage", 8.4e12)],
)
def test_each_class_of_the_bucket_has_its_own_limit_a_day(name: str, kind: str, limit: float) -> None:
    asked = alarm(f"dev-alarms-checkpoints-{name}")
    assert (asked["namespace"], asked["metricName"], asked["period"]) == ("AWS/S3", "BucketSizeBytes", 86400)
    assert asked["dimensions"] == {"BucketName": "dev-checkpoints", "StorageType": kind}
    assert (asked["comparisonOperator"], asked["threshold"]) == ("GreaterThanThreshold", limit)
    assert asked["treatMissingData"] == "ignore", "a sample that is late must not end an alarm"


def test_every_alarm_reports_its_start_and_end_and_leads_to_a_page() -> None:
    alarms = [asked.properties for asked in made().asked if asked.type == ALARM]
    assert len(alarms) == 3
    for one in alarms:
        assert one["alarmActions"] == one["okActions"] == [TOPIC]
        page = one["alarmDescription"].split()[-1]
        assert (ROOT / page).is_file()
        assert len(one["alarmDescription"]) <= 1024  # PutMetricAlarm, AlarmDescription


def test_without_a_file_system_or_a_known_size_nothing_is_watched() -> None:
    without = deploy(
        lambda: {
            "arns": AwsStorageAlarms(
                "dev", {"topic_arn": TOPIC, "checkpoint_bucket": "b", "checkpoint_classes": []}
            ).alarm_arns
        }
    )[0]
    assert not [asked for asked in without.asked if asked.type == ALARM]


def test_no_policy_takes_them_for_an_alarm_about_gpus() -> None:
    group = resource(
        "aws:eks/nodeGroup:NodeGroup",
        "gpus",
        instanceTypes=["p4d.24xlarge"],
        scalingConfig={"minSize": 1, "maxSize": 2, "desiredSize": 1},
    )
    assert results("MLS-GPU-05", group, resource(ALARM, "alarm", **alarm("dev-alarms-lustre"))) == ["fail"]


def test_cloudwatch_may_use_the_key_of_a_topic_for_alarms_and_no_other_account() -> None:
    def program() -> dict[str, pulumi.Output[Any]]:
        topic = AwsAlertTopic("dev-alerts", {"emails": ["a@example.com"], "alarms_of": "us-east-1"})
        return {"topic": topic.topic_arn}

    cloud, _ = deploy(program)
    key = cloud.one("aws:kms/key:Key")
    assert cloud.one("aws:sns/topic:Topic").properties["kmsMasterKeyId"] != "alias/aws/sns"
    _, people, alarms = json.loads(key.properties["policy"])["Statement"]
    assert people["Condition"]["StringEquals"].keys() == {"kms:CallerAccount", "kms:ViaService"}
    assert people["Condition"]["StringEquals"]["kms:ViaService"] == "sns.us-east-1.amazonaws.com"
    assert alarms["Principal"] == {"Service": "cloudwatch.amazonaws.com"}
    assert set(alarms["Action"]) == {"kms:Decrypt", "kms:GenerateDataKey*"}
    account = alarms["Condition"]["StringEquals"]["aws:SourceAccount"]
    assert (
        alarms["Condition"]["ArnLike"]["aws:SourceArn"] == f"arn:aws:cloudwatch:us-east-1:{account}:alarm:*"
    )
