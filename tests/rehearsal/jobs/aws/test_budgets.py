"""Spending of budgets, and published messages."""

import datetime
import json
from dataclasses import replace
from typing import Any

import pytest

from infra.catalog.aws.jobs import JobPrice, jobs
from rehearsal.jobs.aws.budgets import cost_usd, counts
from rehearsal.jobs.aws.sagemaker.records import TrainingJobRecord
from tests.rehearsal.jobs.aws.account import ACCOUNT, REGION, Account

TOPIC = f"arn:aws:sns:{REGION}:{ACCOUNT}:news"
PRICE = 1.127
MACHINES = {"InstanceType": "ml.g6.xlarge", "InstanceCount": 2, "VolumeSizeInGB": 10}
LIMIT = {"budgetType": "COST", "timeUnit": "MONTHLY", "limitAmount": "100.00", "limitUnit": "USD"}


def tagged(key: str, value: str) -> dict[str, Any]:
    return {"tags": {"key": key, "values": [value], "matchOptions": ["EQUALS"]}}


CREDITS = {"not": {"dimensions": {"key": "RECORD_TYPE", "values": ["Credit", "Refund"]}}}


@pytest.mark.parametrize(
    ("expression", "holds"),
    [
        ({}, True),
        (tagged("team", "vision"), True),
        (tagged("team", "language"), False),
        (tagged("person", "ada"), False),
        ({"ands": [tagged("team", "vision"), tagged("stack", "small")]}, True),
        ({"ands": [tagged("team", "vision"), tagged("stack", "other")]}, False),
        ({"ors": [tagged("team", "language"), tagged("stack", "small")]}, True),
        ({"ands": [tagged("team", "vision"), CREDITS]}, True),
        ({"not": tagged("team", "vision")}, False),
    ],
)
def test_a_filter_counts_what_has_its_tags(expression: dict[str, Any], holds: bool) -> None:
    assert counts(expression, {"team": "vision", "stack": "small"}) is holds


def test_jobs_with_the_tags_of_a_budget_are_spent_at_their_price(
    account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = jobs.price("ml.g6.xlarge", "us-west-2")
    assert known is not None

    def here(machine: str, region: str) -> JobPrice | None:
        return known if (machine, region) == ("ml.g6.xlarge", REGION) else None

    monkeypatch.setattr(jobs, "price", here)
    arn = f"arn:aws:budgets::{ACCOUNT}:budget/ada"
    account.add(
        "aws:budgets/budget:Budget", "ada", {**LIMIT, "filterExpression": tagged("person", "ada")}, arn=arn
    )
    for name, person in (("one", "ada"), ("two", "ben")):
        account.run(name, Tags=[{"Key": "person", "Value": person}], ResourceConfig=MACHINES)
    client = account.client("budgets")
    found = client.describe_budget(AccountId=ACCOUNT, BudgetName="ada")["Budget"]
    assert found["BudgetLimit"] == {"Amount": "100.00", "Unit": "USD"}
    billed = account.client("sagemaker").describe_training_job(TrainingJobName="one")
    # Whole seconds are billed; what a budget counts has no such steps.
    most = (billed["BillableTimeInSeconds"] + 1) * 2 * PRICE / 3600
    assert 0 < float(found["CalculatedSpend"]["ActualSpend"]["Amount"]) <= most
    with pytest.raises(client.exceptions.NotFoundException, match="doesn't exist"):
        client.describe_budget(AccountId=ACCOUNT, BudgetName="ben")


def test_a_month_counts_what_ran_in_it_and_a_machine_without_a_price_nothing() -> None:
    noon = datetime.datetime(2026, 11, 1, 1, tzinfo=datetime.UTC).timestamp()
    request = {"ResourceConfig": {"InstanceType": "ml.g6.xlarge", "InstanceCount": 2}}
    job = TrainingJobRecord(
        ACCOUNT, "us-west-2", "one", request, {}, noon, noon, started=noon - 7200, ended=noon
    )
    assert cost_usd(job, noon + 86400) == pytest.approx(2 * 1.127)  # the second of two hours
    assert cost_usd(replace(job, ended=None), noon + 3600) == pytest.approx(2 * 2 * 1.127)
    assert cost_usd(job, noon + 40 * 86400) == 0
    assert cost_usd(replace(job, region="nowhere-1"), noon) == 0
    assert cost_usd(replace(job, started=None), noon) == 0


def test_publishing_needs_a_right_and_stores_the_message(account: Account) -> None:
    account.add("aws:sns/topic:Topic", "news", arn=TOPIC)
    client = account.client("sns")
    answer = client.publish(TopicArn=TOPIC, Subject="used up", Message="l & more")
    assert answer["MessageId"]
    (line,) = (account.home / "messages" / "news.jsonl").read_text().splitlines()
    assert {**json.loads(line), "time": 0} == {"subject": "used up", "message": "l & more", "time": 0}
    with pytest.raises(client.exceptions.NotFoundException):
        client.publish(TopicArn=f"{TOPIC}s", Message="x")
