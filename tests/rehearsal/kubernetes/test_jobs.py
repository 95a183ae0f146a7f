"""Ends of Jobs by their controller, and the provider's reaction.

tests/cluster/awaits holds the same Jobs against the real controller.
"""

import json
import time
from typing import Any

import pytest

from rehearsal.core.model import InitFailedError, Properties
from rehearsal.kubernetes.api import awaits
from tests.rehearsal.kubernetes.harness import JOB, Rehearsed, job, script_pod

# Each pod ends with the code that its index has in CODES, at its n-th attempt with the n-th of a list.
PLANNED = """
import json, os, pathlib, sys, time
index = os.environ.get("JOB_COMPLETION_INDEX", "0")
planned = json.loads(os.environ["CODES"])[int(index)]
counter = pathlib.Path(os.environ["FOLDER"]) / index
attempt = len(counter.read_text()) if counter.exists() else 0
counter.write_text("x" * (attempt + 1))
code = planned[min(attempt, len(planned) - 1)] if isinstance(planned, list) else planned
if code is None: time.sleep(600)
time.sleep(float(os.environ.get("SECONDS", 0)))
sys.exit(code)
"""
SKIP = {"pulumi.com/skipAwait": "true"}
IN_42 = {"containerName": "main", "operator": "In", "values": [42]}


def planned(rehearsed: Rehearsed, codes: list[Any], restart: str = "Never", **spec: Any) -> Properties:
    folder = rehearsed.home / "counters"
    folder.mkdir(parents=True, exist_ok=True)
    rehearsed.namespace()
    rehearsed.config_map("planned", {"main.py": PLANNED})
    env = [{"name": "CODES", "value": json.dumps(codes)}, {"name": "FOLDER", "value": str(folder)}]
    pod = script_pod("planned", container={"env": env}, restartPolicy=restart)
    if len(codes) > 1:
        spec = {"completionMode": "Indexed", "completions": len(codes), "parallelism": len(codes), **spec}
    return job("planned", pod, **spec)


def ended(rehearsed: Rehearsed, inputs: Properties) -> Properties:
    """The final status of a Job that is not awaited."""
    inputs["metadata"]["annotations"] = SKIP
    key, _ = rehearsed.create(JOB, inputs, "planned")
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        found = rehearsed.cloud.read(rehearsed.call(JOB, "planned"), key, inputs)
        assert found
        status: Properties = found[1]["status"]
        if any(row["type"] in ("Complete", "Failed") for row in status.get("conditions", ())):
            assert not rehearsed.processes()
            return status
        time.sleep(0.05)
    raise AssertionError("the Job did not end")


def verdict(status: Properties) -> tuple[str, str]:
    last = status["conditions"][-1]
    return last["type"], last["reason"]


def rule(action: str, **requirement: Any) -> Properties:
    return {"podFailurePolicy": {"rules": [{"action": action, **requirement}]}}


def test_a_matching_exit_code_fails_the_whole_job(rehearsed: Rehearsed) -> None:
    status = ended(rehearsed, planned(rehearsed, [42], backoffLimit=3, **rule("FailJob", onExitCodes=IN_42)))
    assert verdict(status) == ("Failed", "PodFailurePolicy")
    assert status["failed"] == 1
    said = status["conditions"][-1]["message"]
    assert said.startswith("Container main for pod lab/planned-")
    assert said.endswith("failed with exit code 42 matching FailJob rule at index 0")


def test_an_unknown_failure_reason_is_no_error_for_the_provider(rehearsed: Rehearsed) -> None:
    inputs = planned(rehearsed, [42], **rule("FailJob", onExitCodes=IN_42))
    with pytest.raises(InitFailedError) as failed:
        rehearsed.create(JOB, inputs, "planned", timeout_s=600)
    text = "\n".join(failed.value.reasons)
    assert all(part in text for part in ("'planned'", "waited for", "600 s", "[PodFailurePolicy] "))
    key, outputs, call = failed.value.id, failed.value.outputs, rehearsed.call(JOB, "planned")
    # A refresh asks only whether the Job is complete; an update would wait again, also in a later process.
    with pytest.raises(InitFailedError) as unready:
        rehearsed.cloud.read(call, key, inputs)
    assert unready.value.reasons[0] == "Resource 'planned' was created but failed to initialize"
    assert "PodFailurePolicy" not in "".join(unready.value.reasons)
    rehearsed.cloud.stop()
    with pytest.raises(InitFailedError, match="waited for"):
        rehearsed.fresh_cloud().update(call, key, outputs, inputs, preview=False)


def test_a_suspended_job_is_not_awaited_forever(
    rehearsed: Rehearsed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(awaits, "_STUCK_S", 0.5)
    with pytest.raises(InitFailedError, match="waited for") as failed:
        rehearsed.create(JOB, planned(rehearsed, [0], suspend=True), "planned", timeout_s=600)
    assert any("it is suspended" in reason for reason in failed.value.reasons)


def test_a_job_with_a_silent_pod_is_awaited(rehearsed: Rehearsed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(awaits, "_STUCK_S", 1.5)
    rehearsed.namespace()
    rehearsed.config_map("slow", {"main.py": "import time; time.sleep(3)"})
    assert rehearsed.create(JOB, job("slow", script_pod("slow")), "slow", timeout_s=600)


def test_a_job_without_pods_outlives_the_rehearsal_and_one_with_pods_does_not(rehearsed: Rehearsed) -> None:
    inputs = planned(rehearsed, [0], suspend=True)
    inputs["metadata"]["annotations"] = SKIP
    key, outputs = rehearsed.create(JOB, inputs, "planned")
    rehearsed.cloud.stop()
    rehearsed.fresh_cloud().restore()
    call = rehearsed.call(JOB, "planned")
    # The controller says it a moment after it was started, again or for the first time.
    deadline = time.monotonic() + 20
    while not (found := rehearsed.cloud.read(call, key, inputs)) or "conditions" not in found[1]["status"]:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert [row["type"] for row in found[1]["status"]["conditions"]] == ["Suspended"]
    resumed = {**inputs, "spec": {**inputs["spec"], "suspend": False}}
    resumed["metadata"] = {**inputs["metadata"], "annotations": {}}
    outputs = rehearsed.cloud.update(call, key, outputs, resumed, preview=False)
    assert verdict(outputs["status"])[0] == "Complete"

    running = planned(rehearsed, [None], activeDeadlineSeconds=60)
    running["metadata"] = {**running["metadata"], "name": "running", "annotations": SKIP}
    key, _ = rehearsed.create(JOB, running, "running")
    deadline = time.monotonic() + 20
    while not rehearsed.processes():
        assert time.monotonic() < deadline
        time.sleep(0.05)
    rehearsed.cloud.stop()
    rehearsed.fresh_cloud().restore()
    found = rehearsed.cloud.read(rehearsed.call(JOB, "running"), key, running)
    assert found
    assert verdict(found[1]["status"]) == ("Failed", "Interrupted")


def test_a_timer_that_is_shorter_than_the_resync_fires(rehearsed: Rehearsed) -> None:
    with pytest.raises(InitFailedError, match="'planned' timed out waiting to be Ready"):
        rehearsed.create(JOB, planned(rehearsed, [0], suspend=True), "planned", timeout_s=0.5)


COUNTED = {"action": "Count", "onExitCodes": IN_42}
OTHERS_FAIL = {"action": "FailJob", "onExitCodes": {"operator": "NotIn", "values": [0]}}
BY_CONDITION = [
    {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
    {"action": "FailJob", "onPodConditions": [{"type": "Ready", "status": "False"}]},
]
PER_INDEX: Properties = {"backoffLimit": None, "backoffLimitPerIndex": 1}
SUCCESS = [{"succeededIndexes": "1-2"}, {"succeededIndexes": "0,3", "succeededCount": 1}]


@pytest.mark.parametrize(("codes", "spec", "end", "status"), [
    pytest.param([[42, 0]], rule("Ignore", onExitCodes=IN_42), "Complete CompletionsReached", {},
                 id="an ignored failure does not count"),
    pytest.param([[42, 42]], {"backoffLimit": 1, "podFailurePolicy": {"rules": [COUNTED, OTHERS_FAIL]}},
                 "Failed BackoffLimitExceeded", {"failed": 2}, id="a counted failure uses up the limit"),
    pytest.param([3], {"podFailurePolicy": {"rules": BY_CONDITION}}, "Failed PodFailurePolicy",
                 {"failed": 1, "message": "has condition Ready matching FailJob rule at index 1"},
                 id="conditions of a failed pod"),
    pytest.param([0, 42, [1, 0], [1, 1]], {**PER_INDEX, **rule("FailIndex", onExitCodes=IN_42)},
                 "Failed FailedIndexes",
                 {"succeeded": 2, "failed": 4, "completedIndexes": "0,2", "failedIndexes": "1,3"},
                 id="an index fails alone and the job at its end"),
    pytest.param([1, 1, None, None], {**PER_INDEX, "backoffLimitPerIndex": 0, "maxFailedIndexes": 1},
                 "Failed MaxFailedIndexesExceeded", {"failed": 4}, id="too many failed indexes"),
    pytest.param([0, None, None, None], {"successPolicy": {"rules": SUCCESS}}, "Complete SuccessPolicy",
                 {"succeeded": 1, "message": "Matched rules at index 1"}, id="a success policy"),
    pytest.param([0], {"parallelism": 3}, "Complete CompletionsReached", {"succeeded": 3},
                 id="a work queue is done when one pod succeeds"),
    pytest.param([1], {"restart": "OnFailure", "backoffLimit": 1}, "Failed BackoffLimitExceeded",
                 {"failed": 1}, id="restarted containers use up the limit"),
    pytest.param([None, 0], {"activeDeadlineSeconds": 2}, "Failed DeadlineExceeded",
                 {"succeeded": 1, "failed": 1}, id="a deadline counts the pods that it ends"),
])  # fmt: skip
def test_jobs_end_as_their_controller_decides(
    rehearsed: Rehearsed, codes: list[Any], spec: Properties, end: str, status: Properties
) -> None:
    found = ended(rehearsed, planned(rehearsed, codes, **spec))
    assert " ".join(verdict(found)) == end
    (target, last) = found["conditions"]
    assert target["type"] == ("FailureTarget" if end.startswith("Failed") else "SuccessCriteriaMet")
    wanted = {"failed": None, "message": "", **status}
    assert wanted.pop("message") in last.get("message", "")
    assert {name: found.get(name) for name in wanted} == wanted


def test_a_suspended_job_has_no_pods_until_it_is_resumed(rehearsed: Rehearsed) -> None:
    inputs = planned(rehearsed, [None], suspend=True, activeDeadlineSeconds=2)
    inputs["metadata"]["annotations"] = {"pulumi.com/waitFor": "condition=Suspended"}
    key, outputs = rehearsed.create(JOB, inputs, "planned")
    assert "startTime" not in outputs["status"]
    assert rehearsed.cloud.workloads() == []
    resumed = {**inputs, "spec": {**inputs["spec"], "suspend": False}}
    resumed["metadata"] = {**inputs["metadata"], "annotations": {}}
    with pytest.raises(InitFailedError, match="DeadlineExceeded") as failed:
        rehearsed.cloud.update(rehearsed.call(JOB, "planned"), key, outputs, resumed, preview=False)
    kinds = [(row["type"], row["status"]) for row in failed.value.outputs["status"]["conditions"]]
    assert kinds == [("Suspended", "False"), ("FailureTarget", "True"), ("Failed", "True")]


def test_a_running_job_that_is_suspended_ends_its_pods_without_a_failure(rehearsed: Rehearsed) -> None:
    inputs = planned(rehearsed, [None])
    inputs["metadata"]["annotations"] = {"pulumi.com/waitFor": "jsonpath={.status.active}=1"}
    key, outputs = rehearsed.create(JOB, inputs, "planned")
    stopped = {**inputs, "spec": {**inputs["spec"], "suspend": True}}
    stopped["metadata"] = {
        **inputs["metadata"], "annotations": {"pulumi.com/waitFor": "condition=Suspended"}
    }  # fmt: skip
    after = rehearsed.cloud.update(rehearsed.call(JOB, "planned"), key, outputs, stopped, preview=False)
    assert not rehearsed.processes()
    assert not {"active", "failed", "startTime"} & set(after["status"])
