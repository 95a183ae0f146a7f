"""The alert of a scheduled run: one message to an SNS topic when the stack got worse.

No deploy waits for a scheduled run, so its result is sent to its readers. People subscribe to the topic; what
is published is the verdict's own words.
"""

import importlib
import time
from collections.abc import Mapping
from typing import Any

from smoke_training.plan import Plan

SUBJECT_LIMIT = 100  # characters of ASCII, no line breaks (SNS API reference, Publish)
PATIENCE_S = 20.0
_ALARMING = ("FAIL", "ERROR")


def wanted(plan: Plan, result: Mapping[str, Any]) -> str | None:
    """Why to send an alert, None for no alert: a failure, a broken run, or a regression."""
    if plan.alert_topic_arn is None:
        return None
    if result["verdict"] in _ALARMING:
        return f"verdict {result['verdict']}"
    return "regression" if result.get("regression") is True else None


def message(plan: Plan, result: Mapping[str, Any], why: str) -> tuple[str, str]:
    """Subject and text."""
    subject = f"{plan.stack}: scheduled validation, {why}".encode("ascii", "replace").decode()[:SUBJECT_LIMIT]
    broken = [check for check in result["checks"] if check["status"] in _ALARMING]
    lines = [
        str(result["headline"]),
        "",
        *(f"{check['status']} {check['id']}: {check['message']}" for check in broken),
        "",
        f"stack {plan.stack} ({plan.cloud}, {plan.region}), pool of {plan.instance_type}",
        f"run {result['run_id']}, started {result['started']}",
    ]
    if result["mlflow"]["run_id"]:
        lines.append(f"MLflow run {result['mlflow']['run_id']}")
    return subject, "\n".join(lines)


def send(plan: Plan, result: Mapping[str, Any], deadline: float) -> dict[str, object]:
    """Publish if there is reason to; {"sent", "reason"}, and never an exception: the verdict stands anyway.

    `deadline` is in monotonic seconds. Not every training image has boto3; without it the reason says so.
    """
    why = wanted(plan, result)
    if why is None:
        return {"sent": False, "reason": "nothing to tell"}
    left = min(PATIENCE_S, deadline - time.monotonic())
    if left <= 1:
        return {"sent": False, "reason": "no time left for the alert"}
    topic = str(plan.alert_topic_arn)
    subject, text = message(plan, result, why)
    # Two attempts at most, all of them within the time there is.
    limits = {"connect_timeout": left / 4, "read_timeout": left / 4, "retries": {"total_max_attempts": 2}}
    try:
        boto3: Any = importlib.import_module("boto3")
        config = importlib.import_module("botocore.config").Config(**limits)
        client = boto3.client("sns", region_name=topic.split(":")[3], config=config)
        client.publish(TopicArn=topic, Subject=subject, Message=text)
    except Exception as error:  # boto3 makes its exception classes at run time
        return {"sent": False, "reason": f"{topic}: {type(error).__name__}: {error}"[:500]}
    return {"sent": True, "reason": why}
