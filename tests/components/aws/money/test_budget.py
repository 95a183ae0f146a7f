"""Budgets warn the right people at the right moments, about the right costs."""

import json
from typing import Any, cast

import pulumi
import pytest

from components.aws.money.budget import AwsBudget, AwsBudgetArgs
from infra.errors import UserError
from tests.components.recorder import ACCOUNT, Recorder, deploy, statements

BUDGET = "aws:budgets/budget:Budget"
SUBSCRIPTION = "aws:costexplorer/anomalySubscription:AnomalySubscription"
DEFAULTS = {
    "monthly_limit_usd": 40_000.0,
    "teams": {"vision": 15_000.0, "NLP & Speech": 12_345.5},
    "alert_emails": ["ml@example.com", "money@example.com"],
    "anomaly_threshold_usd": 250.0,
    "stack_tag_key": "trainstack:stack",
    "stack_tag_value": "dev-aws",
    "team_tag_key": "team",
}


def made(without: str = "", **changes: Any) -> tuple[Recorder, dict[str, Any]]:
    args = {key: value for key, value in (DEFAULTS | changes).items() if key != without}

    def program() -> dict[str, pulumi.Output[Any]]:
        budget = AwsBudget("dev-aws", cast(AwsBudgetArgs, args))
        return {
            "topic": budget.topic_arn,
            "names": budget.budget_names,
            **({"monitor": budget.anomaly_monitor_arn} if budget.anomaly_monitor_arn else {}),
        }

    return deploy(program)


def test_stack_budget_counts_what_carries_the_tag_of_the_stack() -> None:
    cloud, outputs = made()
    budget = cloud.one(BUDGET, "budget").properties
    assert budget["costFilters"] == [{"name": "TagKeyValue", "values": ["user:trainstack:stack$dev-aws"]}]
    assert (budget["budgetType"], budget["timeUnit"]) == ("COST", "MONTHLY")
    assert (budget["limitAmount"], budget["limitUnit"]) == ("40000.00", "USD")
    assert budget["costTypes"]["includeCredit"] is False
    assert outputs["names"][0] == "dev-aws-monthly"


def test_each_team_has_a_budget_for_its_part_of_this_stack() -> None:
    cloud, outputs = made()
    budget = cloud.one(BUDGET, "nlp-speech").properties
    assert budget["limitAmount"] == "12345.50"
    tags = {
        clause["tags"]["key"]: clause["tags"]["values"]
        for clause in budget["filterExpression"]["ands"]
        if "tags" in clause
    }
    assert tags == {"trainstack:stack": ["dev-aws"], "team": ["NLP & Speech"]}
    assert "costFilters" not in budget, "AWS takes filters or an expression, not both"
    assert "costTypes" not in budget, "nor cost types beside an expression"
    assert len(outputs["names"]) == len(set(outputs["names"])) == 3


def test_every_budget_warns_at_50_80_100_percent_and_when_100_is_forecast() -> None:
    cloud, outputs = made()
    for budget in cloud.of_type(BUDGET):
        notifications = budget.properties["notifications"]
        assert {(n["threshold"], n["notificationType"]) for n in notifications} == {
            (50, "ACTUAL"),
            (80, "ACTUAL"),
            (100, "ACTUAL"),
            (100, "FORECASTED"),
        }
        for notification in notifications:
            assert notification["thresholdType"] == "PERCENTAGE"
            assert notification["subscriberSnsTopicArns"] == [outputs["topic"]]
            assert notification["subscriberEmailAddresses"] == ["ml@example.com", "money@example.com"]


def test_topic_is_encrypted_and_open_only_to_the_cost_services_of_this_account() -> None:
    cloud, outputs = made()
    key = cloud.one("aws:kms/key:Key").properties
    topic = cloud.one("aws:sns/topic:Topic").properties
    assert topic["kmsMasterKeyId"].endswith(cloud.one("aws:kms/key:Key").name)
    services = {"budgets.amazonaws.com", "costalerts.amazonaws.com"}
    (publish,) = statements(cloud.one("aws:sns/topicPolicy:TopicPolicy").properties["policy"]).values()
    encrypt = statements(key["policy"])["CostServicesEncryptAlerts"]
    for statement in (publish, encrypt):
        assert set(statement["Principal"]["Service"]) == services
        assert statement["Condition"] == {"StringEquals": {"aws:SourceAccount": ACCOUNT}}
    assert (publish["Action"], publish["Resource"]) == ("sns:Publish", outputs["topic"])
    assert set(encrypt["Action"]) == {"kms:Decrypt", "kms:GenerateDataKey*"}


def test_anomaly_monitor_watches_the_stack_and_tells_the_topic_at_once_and_people_daily() -> None:
    cloud, outputs = made()
    monitor = cloud.one("aws:costexplorer/anomalyMonitor:AnomalyMonitor").properties
    assert monitor["monitorType"] == "CUSTOM"
    assert json.loads(monitor["monitorSpecification"])["Tags"] == {
        "Key": "trainstack:stack",
        "MatchOptions": None,
        "Values": ["dev-aws"],
    }
    by_frequency = {asked.properties["frequency"]: asked.properties for asked in cloud.of_type(SUBSCRIPTION)}
    # AWS sends mail only in daily or weekly digests.
    assert by_frequency["IMMEDIATE"]["subscribers"] == [{"type": "SNS", "address": outputs["topic"]}]
    assert {s["type"] for s in by_frequency["DAILY"]["subscribers"]} == {"EMAIL"}
    for subscription in by_frequency.values():
        assert subscription["monitorArnLists"] == [outputs["monitor"]]
        dimension = subscription["thresholdExpression"]["dimension"]
        assert (dimension["key"], dimension["values"]) == ("ANOMALY_TOTAL_IMPACT_ABSOLUTE", ["250"])


def test_nothing_watches_for_anomalies_unless_asked() -> None:
    cloud, outputs = made(without="anomaly_threshold_usd")
    assert not [token for token in cloud.types() if "costexplorer" in token]
    assert "monitor" not in outputs


def test_without_addresses_only_the_topic_is_notified() -> None:
    cloud, _ = made(alert_emails=[])
    assert [asked.properties["frequency"] for asked in cloud.of_type(SUBSCRIPTION)] == ["IMMEDIATE"]
    notification = cloud.one(BUDGET, "budget").properties["notifications"][0]
    assert notification["subscriberEmailAddresses"] == []
    assert len(notification["subscriberSnsTopicArns"]) == 1


def test_everything_aws_would_refuse_is_told_at_once() -> None:
    with pytest.raises(UserError) as caught:
        made(
            monthly_limit_usd=0.0,
            teams={"vision": -1.0},
            alert_emails=["a@example.com"] * 11,
            anomaly_threshold_usd=0.0,
        )
    paths = [problem.path for problem in caught.value.problems]
    assert paths == [
        "monthly_limit_usd",
        "teams.vision",
        "anomaly_threshold_usd",
        "alert_emails",
        "alert_emails",
    ]
