"""The alert of a scheduled run: one message to a topic when the stack got worse."""

import time
from collections.abc import Mapping
from typing import Any

from smoke_training.plan import Plan
from smoke_training.record.aws import api as aws
from smoke_training.record.gcp import api as gcp

SUBJECT_LIMIT = 100  # characters of ASCII, no line breaks (SNS API reference, Publish)
# Characters of the text in the log, where each takes up to 6 bytes of JSON. Lines of a container's log end
# after 16 KiB (containerd, max_container_log_line_size); a longer one is split into parts that are no JSON,
# which filters by the log's fields do not match.
LOGGED = 2400
PATIENCE_S = 20.0
_ALARMING = ("FAIL", "ERROR")


def wanted(plan: Plan, result: Mapping[str, Any]) -> str | None:
    """Return the reason for an alert, None for no alert: a failure, a broken run, or a regression."""
    if not plan.alerts:
        return None
    if result["verdict"] in _ALARMING:
        return f"verdict {result['verdict']}"
    return "regression" if result.get("regression") is True else None


def message(plan: Plan, result: Mapping[str, Any], why: str) -> tuple[str, str]:
    """Return subject and text."""
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
    """Publish if there is a reason; never raises: the verdict does not depend on it.

    Returns {"sent", "reason"}, and with a reason to publish "subject" and "text", for the log, which has
    them even if a topic could not be reached. `deadline` is in monotonic seconds. SNS needs boto3.
    """
    why = wanted(plan, result)
    if why is None:
        return {"sent": False, "reason": "nothing to report"}
    subject, text = message(plan, result, why)
    reported: dict[str, object] = {"subject": subject, "text": text[:LOGGED]}
    failed: list[str] = []
    for topic, publish in ((plan.alert_topic_arn, aws.publish), (plan.alert_pubsub_topic, gcp.publish)):
        if topic is None:
            continue
        left = min(PATIENCE_S, deadline - time.monotonic())
        if left <= 1:
            failed.append("no time left for the alert")
            continue
        try:
            publish(topic, subject, text, left)
        except Exception as error:  # boto3 creates its exception classes at run time
            failed.append(f"{topic}: {type(error).__name__}: {error}"[:500])
    return {"sent": not failed, "reason": "; ".join(failed) or why, **reported}
