"""Cloud Logging filters for lines in which a validation reports that training got worse.

The fields are those of `smoke_training.runtime.output.emit` and of `record.alert.send`.
"""

import json
from typing import TypedDict

import pulumi


class AlertLinesArgs(TypedDict):
    """The lines that are alerts, and their fields: expressions of Cloud Logging."""

    filter: pulumi.Input[str]
    """A filter that matches alerts only."""
    subject: str
    """Extracts the subject."""
    run: str
    """Extracts the name of the line's writer."""
    kind: str
    """Kind of the writer, in the text of a mail."""
    rest: str
    """The field with the rest of the line."""
    again: str
    """The recommended action."""


def lines_of_pods(project: str, cluster: pulumi.Input[str], namespace: str) -> AlertLinesArgs:
    """Lines of the pods of a namespace: GKE parses lines of JSON."""
    return {
        "filter": pulumi.Output.from_input(cluster).apply(lambda name: alerts_of(project, name, namespace)),
        "subject": "EXTRACT(jsonPayload.subject)",
        "run": "EXTRACT(resource.labels.pod_name)",
        "kind": "pod",
        "rest": "jsonPayload.text",
        "again": "`trainstack status` shows the last results; `trainstack validate` runs it again.",
    }


def lines_of_jobs(project: str, stack: str) -> AlertLinesArgs:
    """Lines of custom jobs about a stack: Vertex AI keeps a line of JSON as the text of `message`.

    A job's lines do not name its stack, so those of all jobs of the project are matched, and the subject
    selects those about the stack's validation.

    Source: googleapis/python-aiplatform issue 629 (JSON of a job stays in `jsonPayload.message`, beside
    `levelname`); viamrobotics/api pull request 534 (an entry); Cloud Logging documentation, "Monitored
    resource types" (ml_job).
    """
    event, subject = '"event": "alert"', f'"subject": "{stack}: scheduled validation'
    terms = (
        'resource.type="ml_job"',
        f"resource.labels.project_id={json.dumps(project)}",
        f"jsonPayload.message:{json.dumps(event)}",
        f"jsonPayload.message:{json.dumps(subject)}",
    )
    pattern = json.dumps('"subject": "([^"]+)"')
    return {
        "filter": " AND ".join(terms),
        "subject": f"REGEXP_EXTRACT(jsonPayload.message, {pattern})",
        "run": "EXTRACT(resource.labels.job_id)",
        "kind": "custom job",
        "rest": "jsonPayload.message",
        "again": "`trainstack runs` shows the job; its result is below `smoke/` of the checkpoints.",
    }


def alerts_of(project: str, cluster: str, namespace: str) -> str:
    """A filter of Cloud Logging for the line `alert` of a pod."""
    return " AND ".join(
        (
            'resource.type="k8s_container"',
            f"resource.labels.project_id={json.dumps(project)}",
            f"resource.labels.cluster_name={json.dumps(cluster)}",
            f"resource.labels.namespace_name={json.dumps(namespace)}",
            'jsonPayload.event="alert"',
            "jsonPayload.subject:*",
        )
    )
