"""Conditions of `pulumi.com/waitFor` and `pulumi.com/skipAwait`.

Many expressions are those of provider/pkg/jsonpath/jsonpath_test.go.
"""

import json
import threading
import time
from typing import Any

import pytest

from rehearsal.core.model import InitFailedError, Properties, RefusalError
from rehearsal.kubernetes.awaiter import wait_for
from tests.rehearsal.kubernetes.harness import CONFIG_MAP, JOB, Rehearsed, job, script_pod

WAIT_FOR = "pulumi.com/waitFor"
STATUS: Properties = {
    "metadata": {"uid": "1", "generation": 2, "labels": {"a/b": "c"}},
    "status": {
        "observedGeneration": 2, "phase": "Running", "ready": True, "count": 3, "none": None, "list": [1, 2],
        "conditions": [{"type": "Complete", "status": "False"}, {"type": "Failed", "status": "True"}],
    },
}  # fmt: skip


def missing(annotation: str, live: Properties = STATUS) -> list[str]:
    return [text for condition in wait_for.conditions_of(annotation) if (text := condition(live))]


@pytest.mark.parametrize("annotation", [
    "jsonpath={.metadata.uid}",
    "jsonpath={ .status.phase }=Running",
    "jsonpath={$.status.phase}=Running",
    "jsonpath={.status.ready}=true",
    "jsonpath={.status.count}=3",
    "jsonpath={.status.none}=<nil>",
    "jsonpath={.status.list}",
    "jsonpath={.status.list[-1]}=2",
    "jsonpath={.status.list[1:2]}=2",
    "jsonpath={..phase}=Running",
    "jsonpath={.status.conditions[*].type}=Complete",
    'jsonpath={.metadata.labels["a/b"]}=c',
    'jsonpath={.status.conditions[?(@.type=="Failed"||@.type=="Done")].status}=True',
    'jsonpath={.status.conditions[?@.status == "False" && @.type].type}=Complete',
    "condition=failed",
    "condition=Complete=False",
    '["condition=Failed", "jsonpath={.status.count}=3"]',
])  # fmt: skip
def test_a_condition_that_holds(annotation: str) -> None:
    assert missing(annotation) == []


@pytest.mark.parametrize(("annotation", "said"), [
    ("jsonpath={.status.other}", "selected nothing"),
    ("jsonpath={.status.list[2]}", "selected nothing"),
    ("jsonpath={.status.list[?@==true]}", "selected nothing"),
    ("jsonpath={.status.phase}=Done", 'found "Running"'),
    ("jsonpath={.status.ready}=True", 'found "true"'),
    ("jsonpath={.status.list}=1", "non-primitive value"),
    ('jsonpath={.status.conditions[?(@.type=="Done")].status}=True', "selected nothing"),
    ("condition=Complete", "Complete=False (want True)"),
    ("condition=Done", "Waiting for condition Done=True"),
])  # fmt: skip
def test_an_unmet_condition_reports_the_value(annotation: str, said: str) -> None:
    (text,) = missing(annotation)
    assert said in text


@pytest.mark.parametrize("annotation", ["jsonpath={.metadata.uid}", "condition=Failed"])
def test_an_old_observed_generation_does_not_count(annotation: str) -> None:
    assert missing(annotation, {**STATUS, "metadata": {"uid": "1", "generation": 3}})


@pytest.mark.parametrize(("annotation", "said"), [
    ("[]", "at least one condition must be specified"),
    ("{.foo}", 'expected a "jsonpath=" or "condition=" prefix'),
    ("jsonpath='{.status.phase}'=Running", "omit shell quotes"),
    ("jsonpath={.metadata.name}=", "requires a value"),
    ("jsonpath={.metadata.name}='test=wrong'", "format should be {.path}=value or {.path}"),
    ('jsonpath={.items[?@.status!="True"]}', "wrapped in brackets"),
    ("jsonpath=.metadata.name", "wrapped in brackets"),
    ("jsonpath={ .webhooks[].clientConfig.caBundle }", "parsing"),
    ("jsonpath={.status.list[}", "parsing"),
])  # fmt: skip
def test_an_invalid_annotation_is_refused_before_the_create(
    rehearsed: Rehearsed, annotation: str, said: str
) -> None:
    metadata = {"name": "c", "namespace": "lab", "annotations": {WAIT_FOR: annotation}}
    _, failures = rehearsed.cloud.check(rehearsed.call(CONFIG_MAP, "c"), None, {"metadata": metadata})
    (failure,) = failures
    assert failure.property == f'metadata.annotations["{WAIT_FOR}"]'
    assert said in failure.reason
    assert "K8S-WAIT-001" in failure.reason


def waiting(annotation: str, script: str = "wait", **spec: Any) -> Properties:
    return job("wait", script_pod(script), annotations={WAIT_FOR: annotation}, **spec)


def test_a_job_that_is_only_to_exist_is_not_awaited(rehearsed: Rehearsed) -> None:
    rehearsed.namespace()
    rehearsed.config_map("wait", {"main.py": "import time; time.sleep(1); raise SystemExit(3)"})
    key, outputs = rehearsed.create(JOB, waiting("jsonpath={.metadata.uid}"), "wait")
    assert "conditions" not in outputs["status"]
    # A read looks for the end all the same, and a failed one has its reasons.
    deadline = time.monotonic() + 15
    reasons: list[str] = []
    while not any("BackoffLimitExceeded" in reason for reason in reasons):
        assert time.monotonic() < deadline
        time.sleep(0.1)
        with pytest.raises(InitFailedError) as unready:
            rehearsed.cloud.read(rehearsed.call(JOB, "wait"), key, {})
        reasons = unready.value.reasons
    assert any("exit code 3" in reason for reason in reasons)


def test_a_job_is_awaited_by_its_annotation(rehearsed: Rehearsed) -> None:
    rehearsed.namespace()
    rehearsed.config_map("wait", {"main.py": "raise SystemExit(3)"})
    both = json.dumps(["jsonpath={.metadata.uid}", "condition=Failed"])
    _, outputs = rehearsed.create(JOB, waiting(both), "wait")
    assert outputs["status"]["failed"] == 1


def test_what_never_holds_ends_at_the_time_limit(rehearsed: Rehearsed) -> None:
    rehearsed.namespace()
    metadata = {"name": "c", "namespace": "lab", "annotations": {WAIT_FOR: "jsonpath={.data.key}=new"}}
    inputs = {"metadata": metadata, "data": {"key": "old"}}
    with pytest.raises(InitFailedError, match="timed out waiting for the condition") as failed:
        rehearsed.create(CONFIG_MAP, inputs, "c", timeout_s=1)
    assert failed.value.id == "lab/c"
    assert ("status", 'Waiting for {.data.key}=new (found "old")') in rehearsed.log
    # The next update waits again, and sees the change.
    changed = {**inputs, "data": {"key": "new"}}
    call = rehearsed.call(CONFIG_MAP, "c")
    outputs = rehearsed.cloud.update(call, "lab/c", failed.value.outputs, changed, preview=False)
    assert outputs["data"] == {"key": "new"}


def test_a_cancelled_wait_is_reported(rehearsed: Rehearsed) -> None:
    rehearsed.namespace()
    metadata = {"name": "c", "namespace": "lab", "annotations": {WAIT_FOR: "condition=Ready"}}
    threading.Timer(0.5, rehearsed.cancelled.set).start()
    with pytest.raises(InitFailedError, match="context canceled"):
        rehearsed.create(CONFIG_MAP, {"metadata": metadata}, "c", timeout_s=60)


def test_the_annotation_for_the_time_limit_is_ignored_when_it_is_no_number(rehearsed: Rehearsed) -> None:
    rehearsed.namespace()
    for name, seconds in (("a", "1"), ("b", "soon")):
        given = {WAIT_FOR: "condition=Ready", "pulumi.com/timeoutSeconds": seconds}
        metadata = {"name": name, "namespace": "lab", "annotations": given}
        threading.Timer(3, rehearsed.cancelled.set).start()
        said = "timed out" if seconds == "1" else "context canceled"
        with pytest.raises(InitFailedError, match=said):
            rehearsed.create(CONFIG_MAP, {"metadata": metadata}, name, timeout_s=None)
        rehearsed.cancelled.clear()


def test_skip_await_is_before_wait_for(rehearsed: Rehearsed) -> None:
    rehearsed.namespace()
    given = {WAIT_FOR: "condition=Ready", "pulumi.com/skipAwait": "true"}
    metadata = {"name": "c", "namespace": "lab", "annotations": given}
    assert rehearsed.create(CONFIG_MAP, {"metadata": metadata}, "c", timeout_s=1)[0] == "lab/c"


def test_a_refusal_of_the_server_comes_first(rehearsed: Rehearsed) -> None:
    metadata = {"name": "c", "namespace": "none", "annotations": {WAIT_FOR: "condition=Ready"}}
    with pytest.raises(RefusalError, match='namespaces "none" not found'):
        rehearsed.create(CONFIG_MAP, {"metadata": metadata}, "c", timeout_s=1)
