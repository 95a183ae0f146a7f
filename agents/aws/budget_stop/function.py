"""AWS Lambda function: stops or reports the workloads of budgets that are used up, and records each action.

It runs on each notification of AWS Budgets and every hour, so that it finds jobs that start later. It is
idempotent: stopped workloads do not run any more, and names of records do not change within a day. It reads
the figures from the API of AWS Budgets, not from the text of the notification.
"""

import datetime
import json
import os
import re
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from agents.aws.budget_stop import running
from agents.budget_stop.decisions import STOP, Decision, SpendingBudget, decide, recorded

SETTINGS = "TRAINSTACK_BUDGETS"
"""JSON: stack, account, bucket, topic, people (team by person), budgets (name, scope, value, over_budget)."""
AUDIT = "audit/budgets"


def handler(event: Mapping[str, Any], _context: object) -> dict[str, Any]:
    """Handle a notification of SNS, or the hourly call of EventBridge.

    Raises the first error of a service after all other actions: Lambda then retries.
    """
    import boto3  # type: ignore[import-untyped,unused-ignore]  # noqa: PLC0415 - of the function's image

    settings = json.loads(os.environ[SETTINGS])
    clients = {name: boto3.client(name) for name in ("sagemaker", "s3", "sns")}
    # AWS Budgets has one endpoint, in us-east-1.
    clients["budgets"] = boto3.client("budgets", region_name="us-east-1")
    return act(event, settings, clients, datetime.datetime.now(datetime.UTC))


def act(
    event: Mapping[str, Any], settings: Mapping[str, Any], clients: Mapping[str, Any], now: datetime.datetime
) -> dict[str, Any]:
    """Stop or report the workloads of used-up budgets; returns the actions by name."""
    budgets = _asked(event, settings, clients["budgets"])
    if not any(one.used_up for one in budgets):
        return {"over": [], "done": []}
    things = running.everything(clients["sagemaker"], settings["stack"], settings["people"])
    done: list[dict[str, Any]] = []
    news: list[dict[str, Any]] = []
    failed: list[Exception] = []
    for decision in decide(budgets, things):
        try:
            outcome = _carried_out(decision, clients["sagemaker"])
        except Exception as error:  # one error must not keep the others running
            outcome = f"failed: {error}"
            failed.append(error)
        record = recorded(decision, outcome, now)
        done.append(record)
        if _keep(record, settings["bucket"], clients["s3"]):
            news.append(record)
    _notify(news, settings, clients["sns"])
    if failed:
        raise failed[0]
    return {"over": [one.name for one in budgets if one.used_up], "done": done}


def _asked(event: Mapping[str, Any], settings: Mapping[str, Any], client: Any) -> list[SpendingBudget]:
    """The budgets of the stack that the event names, with current figures; all where it names none."""
    messages = [row["Sns"]["Message"] for row in event.get("Records", ()) if "Sns" in row]
    named = {name for message in messages for name in named_budgets(message)}
    rows = settings["budgets"]
    chosen = [row for row in rows if row["name"] in named] or rows
    account = settings["account"]
    return [_budget(row, client.describe_budget(AccountId=account, BudgetName=row["name"])) for row in chosen]


def named_budgets(message: str) -> list[str]:
    """The budgets that a notification of AWS Budgets names, each once; empty for another message.

    Source: the mail of AWS Budgets, a line `Budget Name: <name>`.
    """
    return list(dict.fromkeys(re.findall(r"^Budget Name:\s*(\S.*?)\s*$", message, re.MULTILINE)))


def _budget(row: Mapping[str, str], response: Mapping[str, Any]) -> SpendingBudget:
    budget = response["Budget"]
    spent = budget.get("CalculatedSpend", {}).get("ActualSpend", {}).get("Amount", 0)
    return SpendingBudget(**row, limit_usd=float(budget["BudgetLimit"]["Amount"]), spent_usd=float(spent))


def _carried_out(decision: Decision, sagemaker: Any) -> str:
    if decision.action != STOP:
        return "left running"
    return "stopped" if running.end(sagemaker, decision.running) else "had ended"


def _keep(record: Mapping[str, Any], bucket: str, s3: Any) -> bool:
    """Write the record to the log and to an object of its own; returns whether it is new today."""
    text = json.dumps(record, sort_keys=True)
    sys.stdout.write(f"{text}\n")
    day, name = record["time"][:10], record["arn"].rpartition(":")[2].replace("/", "-")
    action = record["action"].replace(" ", "-")
    key = f"{AUDIT}/{day}/{name}-{action}.json"
    if s3.list_objects_v2(Bucket=bucket, Prefix=key, MaxKeys=1).get("KeyCount"):
        return False
    s3.put_object(Bucket=bucket, Key=key, Body=text.encode(), ContentType="application/json")
    return True


def _notify(news: Sequence[Mapping[str, Any]], settings: Mapping[str, Any], sns: Any) -> None:
    """Send one message about all records; those left running are reported once a day."""
    if not news:
        return
    lines = [
        f"{one['kind']} {one['name']}: {one['action']}, {one['outcome']}. {one['reason']}" for one in news
    ]
    subject = f"{settings['stack']}: a budget is used up"[:100]
    sns.publish(TopicArn=settings["topic"], Subject=subject, Message="\n".join(lines))
