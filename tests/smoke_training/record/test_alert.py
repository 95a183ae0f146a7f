"""The message that a scheduled run sends: to a real SNS API (moto's), to Pub/Sub over HTTP, to the log."""

import base64
import importlib
import json
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from moto import mock_aws

from smoke_training.record import alert
from tests.smoke_training.record.google_cloud import Answer, serving
from tests.smoke_training.samples import plan

boto3: Any = importlib.import_module("boto3")  # without type hints
REGION = "us-east-1"


@pytest.fixture
def inbox(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, Any]]:
    """A topic with a subscribed queue: its ARN, and a function that empties the queue."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
        monkeypatch.setenv(name, "testing")
    with mock_aws():
        topic = boto3.client("sns", REGION).create_topic(Name="alerts")["TopicArn"]
        queue = boto3.client("sqs", REGION).create_queue(QueueName="inbox")["QueueUrl"]
        attributes = boto3.client("sqs", REGION).get_queue_attributes(
            QueueUrl=queue, AttributeNames=["QueueArn"]
        )
        arn = attributes["Attributes"]["QueueArn"]
        boto3.client("sns", REGION).subscribe(TopicArn=topic, Protocol="sqs", Endpoint=arn)

        def received() -> list[dict[str, Any]]:
            found = boto3.client("sqs", REGION).receive_message(QueueUrl=queue, MaxNumberOfMessages=10)
            return [json.loads(item["Body"]) for item in found.get("Messages", [])]

        yield topic, received


def result(verdict: str, *, regression: bool | None = None) -> dict[str, Any]:
    return {
        "verdict": verdict,
        "regression": regression,
        "headline": f"{verdict} straggler rank 1 is slow",
        "run_id": "r1",
        "started": "2026-11-21T12:00:00+00:00",
        "checks": [
            {"status": "FAIL", "id": "training.straggler", "message": "computes 1.96x"},
            {"status": "PASS", "id": "collective.payload", "message": "0 sums"},
        ],
        "mlflow": {"run_id": "m1"},
    }


def soon() -> float:
    return time.monotonic() + 30


def test_a_failure_is_sent_with_figures_and_run(inbox: Any) -> None:
    topic, received = inbox
    sent = alert.send(plan(alert_topic_arn=topic), result("FAIL"), soon())
    assert (sent["sent"], sent["reason"]) == (True, "verdict FAIL")
    (mail,) = received()
    assert mail["Subject"] == "dev-aws: scheduled validation, verdict FAIL"
    for words in ("computes 1.96x", "MLflow run m1", "p4d.24xlarge", "run r1"):
        assert words in mail["Message"]
    assert "0 sums" not in mail["Message"]


def test_a_regression_is_sent_although_the_run_passed(inbox: Any) -> None:
    topic, received = inbox
    assert alert.send(plan(alert_topic_arn=topic), result("PASS", regression=True), soon())["sent"] is True
    assert received()[0]["Subject"].endswith("scheduled validation, regression")


@pytest.mark.parametrize(
    ("verdict", "regression"), [("PASS", False), ("PASS", None), ("INCONCLUSIVE", False), ("SKIPPED", None)]
)
def test_no_alert_is_sent_for_less(inbox: Any, verdict: str, regression: bool | None) -> None:
    topic, received = inbox
    message = alert.send(plan(alert_topic_arn=topic), result(verdict, regression=regression), soon())
    assert message["sent"] is False and received() == []


def test_without_a_topic_no_alert_is_sent(inbox: Any) -> None:
    assert alert.send(plan(), result("FAIL"), soon()) == {"sent": False, "reason": "nothing to report"}


def test_a_topic_that_is_gone_is_a_reason_and_no_exception(inbox: Any) -> None:
    topic, _ = inbox
    message = alert.send(plan(alert_topic_arn=f"{topic}-gone"), result("FAIL"), soon())
    assert message["sent"] is False and "NotFound" in str(message["reason"])


def test_an_image_without_boto3_is_a_reason_and_no_exception(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "boto3", None)
    message = alert.send(
        plan(alert_topic_arn="arn:aws:sns:us-east-1:123456789012:alerts"), result("FAIL"), soon()
    )
    assert message["sent"] is False and "boto3" in str(message["reason"])


def test_a_run_without_time_left_says_so() -> None:
    topic = "arn:aws:sns:us-east-1:123456789012:alerts"
    message = alert.send(plan(alert_topic_arn=topic), result("FAIL"), time.monotonic())
    assert message["sent"] is False and "no time" in str(message["reason"])


def test_a_subject_is_what_sns_takes() -> None:
    long = plan(alert_topic_arn="arn:aws:sns:us-east-1:123456789012:alerts", stack="ä" * 200)
    subject, _ = alert.message(long, result("FAIL"), "verdict FAIL")
    assert len(subject) <= 100 and subject.isascii()


@pytest.mark.parametrize("bad", ["alerts", "arn:aws:sqs:us-east-1:123456789012:alerts", 7])
def test_an_address_that_is_no_topic_is_refused_in_the_plan(bad: object) -> None:
    with pytest.raises(ValueError, match=r"alert_topic_arn: .*SNS"):
        plan(alert_topic_arn=bad)


def test_the_log_has_the_alert_also_when_it_could_not_be_sent() -> None:
    """On a cloud whose topics send no mail, an alert policy on the log does."""
    message = alert.send(plan(alert_pubsub_topic=TOPIC), result("FAIL"), time.monotonic())
    assert message["sent"] is False
    assert message["subject"] == "dev-aws: scheduled validation, verdict FAIL"
    assert "computes 1.96x" in str(message["text"])
    quiet = alert.send(plan(alert_pubsub_topic=TOPIC), result("PASS", regression=False), soon())
    assert set(quiet) == {"sent", "reason"}


def test_a_line_of_the_log_is_short_enough_to_stay_one() -> None:
    said = result("FAIL")
    said["checks"] = [{"status": "FAIL", "id": "c", "message": "ä" * 50} for _ in range(1000)]
    message = alert.send(plan(alert_pubsub_topic=TOPIC), said, time.monotonic())
    assert len(json.dumps({"event": "alert", **message})) < 16 * 1024


TOPIC = "projects/dev-1/topics/dev-alerts-topic"


@dataclass
class PubSub:
    """Pub/Sub: what was published, and statuses that are answered first."""

    published: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    refusals: list[int] = field(default_factory=list)

    def answer(self, path: str, body: bytes) -> Answer:
        if self.refusals:
            return self.refusals.pop(0), {"error": {"message": "refused"}}
        self.published += [(path, message) for message in json.loads(body)["messages"]]
        return 200, {"messageIds": ["1"]}


@pytest.fixture
def pubsub(monkeypatch: pytest.MonkeyPatch) -> Iterator[PubSub]:
    cloud = PubSub()
    with serving(monkeypatch, "CLOUDSDK_API_ENDPOINT_OVERRIDES_PUBSUB", cloud.answer):
        yield cloud


def test_a_failure_is_published_to_pubsub_with_the_rights_of_the_node(pubsub: PubSub) -> None:
    found = alert.send(plan(alert_pubsub_topic=TOPIC), result("FAIL"), soon())
    assert (found["sent"], found["reason"]) == (True, "verdict FAIL")
    ((path, message),) = pubsub.published
    assert path == f"/v1/{TOPIC}:publish"
    assert message["attributes"] == {"subject": "dev-aws: scheduled validation, verdict FAIL"}
    assert "computes 1.96x" in base64.b64decode(message["data"]).decode()


def test_a_busy_service_is_asked_once_more(pubsub: PubSub) -> None:
    pubsub.refusals = [503]
    assert alert.send(plan(alert_pubsub_topic=TOPIC), result("FAIL"), soon())["sent"] is True
    pubsub.refusals = [503, 503]
    assert alert.send(plan(alert_pubsub_topic=TOPIC), result("FAIL"), soon())["sent"] is False


def test_a_right_that_is_missing_is_a_reason_and_no_exception(pubsub: PubSub) -> None:
    pubsub.refusals = [403]
    message = alert.send(plan(alert_pubsub_topic=TOPIC), result("FAIL"), soon())
    assert (
        message["sent"] is False
        and "status 403" in str(message["reason"])
        and TOPIC in str(message["reason"])
    )


def test_a_node_without_a_metadata_server_is_a_reason_and_no_exception(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("GCE_METADATA_HOST", "127.0.0.1:1")
    message = alert.send(plan(alert_pubsub_topic=TOPIC), result("FAIL"), soon())
    assert message["sent"] is False and "refused" in str(message["reason"])


def test_one_topic_that_is_gone_does_not_keep_the_other_from_hearing(inbox: Any, pubsub: PubSub) -> None:
    topic, _ = inbox
    both = plan(alert_topic_arn=f"{topic}-gone", alert_pubsub_topic=TOPIC)
    message = alert.send(both, result("FAIL"), soon())
    assert message["sent"] is False and "NotFound" in str(message["reason"])
    assert len(pubsub.published) == 1


@pytest.mark.parametrize("bad", ["dev-alerts", "projects/dev-1/subscriptions/alerts", "projects/p/topics/1x"])
def test_an_address_that_is_no_pubsub_topic_is_refused_in_the_plan(bad: str) -> None:
    with pytest.raises(ValueError, match=r"alert_pubsub_topic: .*Pub/Sub"):
        plan(alert_pubsub_topic=bad)


def test_a_project_of_an_organization_has_a_domain_in_its_id() -> None:
    topic = "projects/example.com:dev-1/topics/alerts"
    assert plan(alert_pubsub_topic=topic).alerts
