"""The budget warns the right people at the right moments, about the right costs."""

import json
from typing import Any, cast

import pulumi
import pytest

from components.aws.money.budget import AwsBudget, AwsBudgetArgs
from infra.errors import UserError
from tests.components.recorder import Recorder, deploy

BUDGET = "aws:budgets/budget:Budget"
MONITOR = "aws:costexplorer/anomalyMonitor:AnomalyMonitor"
SUBSCRIPTION = "aws:costexplorer/anomalySubscription:AnomalySubscription"
DEFAULTS = {
    "monthly_limit_usd": 40_000.0,
    "alert_emails": ["ml@example.com", "money@example.com"],
    "anomaly_threshold_usd": 250.0,
    "stack_tag_key": "trainstack:stack",
    "stack_tag_value": "dev-aws",
}


def made(without: str = "", **changes: Any) -> tuple[Recorder, dict[str, Any]]:
    args = {key: value for key, value in (DEFAULTS | changes).items() if key != without}

    def program() -> dict[str, pulumi.Output[Any]]:
        budget = AwsBudget("dev-aws", cast(AwsBudgetArgs, args))
        return {
            "name": budget.budget_name,
            **({"monitor": budget.anomaly_monitor_arn} if budget.anomaly_monitor_arn else {}),
        }

    return deploy(program)


def test_the_budget_counts_what_carries_the_tag_of_the_stack() -> None:
    cloud, outputs = made()
    budget = cloud.one(BUDGET).properties
    assert budget["costFilters"] == [{"name": "TagKeyValue", "values": ["user:trainstack:stack$dev-aws"]}]
    assert (budget["budgetType"], budget["timeUnit"]) == ("COST", "MONTHLY")
    assert (budget["limitAmount"], budget["limitUnit"]) == ("40000.00", "USD")
    assert budget["costTypes"]["includeCredit"] is False
    assert outputs["name"] == "dev-aws-monthly"


def test_it_mails_at_50_80_100_percent_and_when_100_is_forecast() -> None:
    cloud, _ = made()
    notifications = cloud.one(BUDGET).properties["notifications"]
    assert {(n["threshold"], n["notificationType"]) for n in notifications} == {
        (50, "ACTUAL"),
        (80, "ACTUAL"),
        (100, "ACTUAL"),
        (100, "FORECASTED"),
    }
    for notification in notifications:
        assert notification["thresholdType"] == "PERCENTAGE"
        assert notification["subscriberEmailAddresses"] == ["ml@example.com", "money@example.com"]


def test_an_anomaly_of_the_stack_is_mailed_daily() -> None:
    cloud, outputs = made()
    monitor = cloud.one(MONITOR).properties
    assert monitor["monitorType"] == "CUSTOM"
    assert json.loads(monitor["monitorSpecification"])["Tags"] == {
        "Key": "trainstack:stack",
        "MatchOptions": None,
        "Values": ["dev-aws"],
    }
    subscription = cloud.one(SUBSCRIPTION).properties
    # AWS sends mail only in daily or weekly digests.
    assert subscription["frequency"] == "DAILY"
    assert subscription["subscribers"] == [
        {"type": "EMAIL", "address": address} for address in ("ml@example.com", "money@example.com")
    ]
    assert subscription["monitorArnLists"] == [outputs["monitor"]]
    dimension = subscription["thresholdExpression"]["dimension"]
    assert (dimension["key"], dimension["values"]) == ("ANOMALY_TOTAL_IMPACT_ABSOLUTE", ["250"])


def test_nothing_watches_for_anomalies_unless_asked() -> None:
    cloud, outputs = made(without="anomaly_threshold_usd")
    assert not [token for token in cloud.types() if "costexplorer" in token]
    assert "monitor" not in outputs


def test_everything_aws_would_refuse_is_reported_at_once() -> None:
    with pytest.raises(UserError) as caught:
        made(monthly_limit_usd=0.0, alert_emails=["a@example.com"] * 11, anomaly_threshold_usd=0.0)
    paths = [problem.path for problem in caught.value.problems]
    assert paths == ["monthly_limit_usd", "anomaly_threshold_usd", "alert_emails", "alert_emails"]


def test_an_alarm_without_an_address_is_refused() -> None:
    with pytest.raises(UserError, match="alarm-without-address"):
        made(alert_emails=[])
