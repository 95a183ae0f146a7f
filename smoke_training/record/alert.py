"""The alert of a scheduled run: one message to a topic when the stack got worse.

No deploy waits for a scheduled run, so its result is sent to its readers. People subscribe to the topic, or
to the log, where the same is said: the verdict's own words.
"""

import time
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, Protocol

from smoke_training.plan import Plan
from smoke_training.record import publishers

SUBJECT_LIMIT = 100  # characters of ASCII, no line breaks (SNS API reference, Publish)
# Characters of the text in the log, where each takes up to 6 bytes of JSON. Lines of a container's log end
# after 16 KiB (containerd, max_container_log_line_size); a longer one comes in parts that are no JSON, and
# whoever filters the log by its fields does not find it.
LOGGED = 2400
PATIENCE_S = 20.0
_ALARMING = ("FAIL", "ERROR")


class Publish(Protocol):
    """One way to a topic; raises whatever its library does."""

    def __call__(self, *, subject: str, text: str, seconds: float) -> None:
        """Publish one message within so many seconds."""


def wanted(plan: Plan, result: Mapping[str, Any]) -> str | None:
    """Why to send an alert, None for no alert: a failure, a broken run, or a regression."""
    if not plan.alerts:
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
    """Publish if there is reason to; never an exception: the verdict stands anyway.

    {"sent", "reason"}, and with a reason to publish "subject" and "text", for readers of the log, who see
    them also where a topic could not be reached. `deadline` is in monotonic seconds. Not every training image
    has boto3, which SNS needs; without it the reason says so.
    """
    why = wanted(plan, result)
    if why is None:
        return {"sent": False, "reason": "nothing to tell"}
    subject, text = message(plan, result, why)
    said: dict[str, object] = {"subject": subject, "text": text[:LOGGED]}
    failed: list[str] = []
    for topic, publish in _ways(plan):
        left = min(PATIENCE_S, deadline - time.monotonic())
        if left <= 1:
            failed.append("no time left for the alert")
            continue
        try:
            publish(subject=subject, text=text, seconds=left)
        except Exception as error:  # boto3 makes its exception classes at run time
            failed.append(f"{topic}: {type(error).__name__}: {error}"[:500])
    return {"sent": not failed, "reason": "; ".join(failed) or why, **said}


def _ways(plan: Plan) -> Iterator[tuple[str, Publish]]:
    """The topics of a plan, and how each is reached."""
    if plan.alert_topic_arn is not None:
        yield plan.alert_topic_arn, partial(publishers.sns, plan.alert_topic_arn)
    if plan.alert_pubsub_topic is not None:
        yield plan.alert_pubsub_topic, partial(publishers.pubsub, plan.alert_pubsub_topic)
