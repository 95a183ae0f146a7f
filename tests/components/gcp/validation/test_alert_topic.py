"""Publishers and readers of the alerts of scheduled validations on Google Cloud."""

import io
import json
import re
import sys
from typing import Any, cast

import pulumi
import pytest

from components.gcp.alerts.alert_lines import alerts_of, lines_of_jobs, lines_of_pods
from components.gcp.validation.alert_topic import GcpAlertTopic, GcpAlertTopicArgs
from infra.errors import UserError
from rehearsal.gcp.rules import BOOK
from smoke_training.record import alert
from smoke_training.runtime import output
from tests.components.graph import Graph, deploy_graph
from tests.smoke_training.record.test_alert import result
from tests.smoke_training.samples import plan

POLICY, TOPIC = "gcp:monitoring/alertPolicy:AlertPolicy", "gcp:pubsub/topic:Topic"
CHANNEL = "gcp:monitoring/notificationChannel:NotificationChannel"
PODS = "principal://iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/p.svc.id.goog/subject/ns/s/sa/smoke"
DEFAULTS = {"region": "europe-west4", "publisher": PODS, "emails": ["a@example.com", "b@example.com"]}


def declared(**changes: Any) -> dict[str, pulumi.Output[Any]]:
    lines = lines_of_pods("dev-project-1", "dev-gcp", "trainstack-smoke")
    args = cast(GcpAlertTopicArgs, DEFAULTS | {"lines": lines} | changes)
    found = GcpAlertTopic("dev-alerts", args)
    return {"topic": found.topic, "channels": found.channels}


def made(**changes: Any) -> Graph:
    def program() -> dict[str, pulumi.Output[Any]]:
        return declared(**changes)

    return deploy_graph(
        program,
        {
            CHANNEL: lambda args: {"name": f"projects/p/notificationChannels/{args.name}"},
            TOPIC: lambda args: {"id": f"projects/dev-project-1/topics/{args.name}"},
        },
    )


def policy(graph: Graph) -> dict[str, Any]:
    return dict(graph.cloud.one(POLICY).properties)


def test_the_validations_may_publish_and_do_nothing_else() -> None:
    graph = made()
    right = graph.find("pubsub/topicIAMMember:TopicIAMMember")
    assert right == {"topic": graph.outputs["topic"], "role": "roles/pubsub.publisher", "member": PODS}
    granted = [asked for asked in graph.cloud.asked if asked.properties.get("member") == PODS]
    assert len(granted) == 1
    kept = graph.cloud.one(TOPIC).properties
    assert kept["messageStoragePolicy"]["allowedPersistenceRegions"] == ["europe-west4"]
    assert kept["messageRetentionDuration"] == "604800s"


def test_every_address_gets_mail_of_the_policy() -> None:
    graph = made()
    people = sorted(graph.cloud.of_type(CHANNEL), key=lambda row: row.name)
    assert [row.properties["labels"] for row in people] == [
        {"email_address": "a@example.com"},
        {"email_address": "b@example.com"},
    ]
    names = [f"projects/p/notificationChannels/{row.name}" for row in people]
    assert policy(graph)["notificationChannels"] == graph.outputs["channels"] == names


def test_a_policy_on_logs_says_how_often_it_mails_which_the_service_asks_for() -> None:
    strategy = policy(made())["alertStrategy"]
    assert strategy["notificationRateLimit"] == {"period": "300s"}
    # It never ends by itself; otherwise the second failure would belong to the first and send no mail.
    assert strategy["autoClose"] == "1800s"
    assert strategy["notificationPrompts"] == ["OPENED"], "nothing is repaired when it closes"


def test_the_topic_is_an_output_once_the_policy_exists() -> None:
    def program() -> dict[str, pulumi.Output[Any]]:
        topic = declared()["topic"]
        pulumi.CustomResource("test:index:Run", "run", {"topic": topic})
        return {"topic": topic}

    before = deploy_graph(program).waits_for("Run:run")
    assert {"AlertPolicy:dev-alerts-policy", "TopicIAMMember:dev-alerts-publisher"} <= before


def entry(line: str, **changes: str) -> dict[str, str]:
    """A line of a pod as Cloud Logging keeps it: fields by path."""
    fields = {f"jsonPayload.{key}": value for key, value in json.loads(line).items()}
    return {
        "resource.type": "k8s_container",
        "resource.labels.project_id": "dev-project-1",
        "resource.labels.cluster_name": "dev-gcp",
        "resource.labels.namespace_name": "trainstack-smoke",
        "resource.labels.pod_name": "smoke-0",
        **fields,
        **changes,
    }


def matches(query: str, found: dict[str, str]) -> bool:
    """The comparisons of the query language that are used: equal, present (`:*`), and holds (`:"text"`)."""
    for term in query.split(" AND "):
        path, operator, value = re.fullmatch(r"([\w.]+)(=|:)(.+)", term).groups()  # type: ignore[union-attr]
        if operator == ":":
            if path not in found or (value != "*" and json.loads(value) not in found[path]):
                return False
        elif found.get(path) != json.loads(value):
            return False
    return True


def emitted(verdict: str, monkeypatch: pytest.MonkeyPatch, *, regression: bool = False) -> str:
    """What a run with a topic that it cannot reach prints."""
    monkeypatch.setenv("GCE_METADATA_HOST", "127.0.0.1:1")
    printed = io.StringIO()
    monkeypatch.setattr(sys, "stdout", printed)
    run = plan(alert_pubsub_topic="projects/dev-project-1/topics/dev-alerts-topic")
    output.emit("alert", **alert.send(run, result(verdict, regression=regression), 0.0))
    return printed.getvalue()


def test_a_run_that_failed_is_mailed_although_it_could_publish_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (condition,) = policy(made())["conditions"]
    said = condition["conditionMatchedLog"]
    line = emitted("FAIL", monkeypatch)
    assert line.count("\n") == 1, "one line is one entry"
    found = entry(line)
    assert matches(said["filter"], found)
    for extractor in said["labelExtractors"].values():
        path = re.fullmatch(r"EXTRACT\(([\w.]+)\)", extractor).group(1)  # type: ignore[union-attr]
        assert path in found, "a label that is never filled"
    assert matches(said["filter"], entry(emitted("PASS", monkeypatch, regression=True)))


def test_a_run_that_passed_is_not_mailed(monkeypatch: pytest.MonkeyPatch) -> None:
    query = alerts_of("dev-project-1", "dev-gcp", "trainstack-smoke")
    assert not matches(query, entry(emitted("PASS", monkeypatch)))
    assert not matches(query, entry(json.dumps({"event": "verdict", "subject": "FAIL"})))


@pytest.mark.parametrize("place", ["namespace_name", "cluster_name"])
def test_what_pods_of_others_print_is_not_mailed(monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    query = alerts_of("dev-project-1", "dev-gcp", "trainstack-smoke")
    line = emitted("FAIL", monkeypatch)
    assert not matches(query, entry(line, **{f"resource.labels.{place}": "team-vision"}))


def test_a_mail_names_the_run_and_what_to_do() -> None:
    said = policy(made())["documentation"]
    labels = set(re.findall(r"\$\{log\.extracted_label\.(\w+)\}", said["content"] + said["subject"]))
    (condition,) = policy(made())["conditions"]
    assert labels <= set(condition["conditionMatchedLog"]["labelExtractors"])
    assert "trainstack validate" in said["content"]


def test_the_service_would_refuse_nothing_that_a_rule_knows() -> None:
    assert [*BOOK.broken_alone(POLICY, policy(made()))] == []


@pytest.mark.parametrize(
    ("emails", "words"),
    [
        ([], "alarm-without-address"),
        ([f"a{index}@example.com" for index in range(17)], "1 to 16"),
        (["a@example.com", "a@example.com"], "address-named-twice"),
    ],
)
def test_addresses_that_cannot_be_mailed_are_refused(emails: list[str], words: str) -> None:
    with pytest.raises(UserError, match=words):
        made(emails=emails)


def of_a_job(line: str, **changes: str) -> dict[str, str]:
    """A line of a custom job as Cloud Logging keeps it: JSON stays text."""
    return {
        "resource.type": "ml_job",
        "resource.labels.project_id": "dev-project-1",
        "resource.labels.job_id": "417",
        "jsonPayload.levelname": "INFO",
        "jsonPayload.message": line,
        **changes,
    }


def test_a_job_that_failed_is_mailed_although_its_line_is_not_taken_apart(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    line = emitted("FAIL", monkeypatch)
    stack = plan().stack
    asked = policy(made(lines=lines_of_jobs("dev-project-1", stack)))
    (condition,) = asked["conditions"]
    said = condition["conditionMatchedLog"]
    assert matches(said["filter"], of_a_job(line))
    assert not matches(said["filter"], of_a_job(emitted("PASS", monkeypatch)))
    assert not matches(said["filter"], of_a_job(line, **{"resource.labels.project_id": "another"}))
    field, pattern = re.fullmatch(
        r"REGEXP_EXTRACT\(([\w.]+), (.+)\)", said["labelExtractors"]["subject"]
    ).groups()  # type: ignore[union-attr]
    (subject,) = re.search(json.loads(pattern), of_a_job(line)[field]).groups()  # type: ignore[union-attr]
    assert subject == json.loads(line)["subject"] and subject.startswith(f"{stack}: scheduled validation")
    assert "trainstack runs" in asked["documentation"]["content"]
    assert [*BOOK.broken_alone(POLICY, asked)] == []


def test_a_validation_of_another_stack_in_the_project_is_not_mailed(monkeypatch: pytest.MonkeyPatch) -> None:
    line = emitted("FAIL", monkeypatch)
    assert not matches(str(lines_of_jobs("dev-project-1", "other")["filter"]), of_a_job(line))
