"""The gate's watcher ends as the real queue and the real Job controller say, with rights of its own only."""

import pytest

from components.kubernetes.queueing import kueue
from rehearsal.controlplane.api import Access, ApiError, KubernetesApi
from smoke_training.verdict_record import VerdictRecord
from tests.cluster.gate.conftest import QUEUE, Gate
from tests.cluster.waiting import eventually


def test_a_validation_that_passes_opens_the_gate(gate: Gate) -> None:
    uid = gate.start(seconds="2s", message="PASS in 2 s")
    code, found = gate.watch(uid, queue_s=60, start_s=60)
    assert (code, found.verdict, found.message, found.pool) == (0, "PASS", "PASS in 2 s", "gate-a100")
    assert found.run.startswith("trainstack-smoke/smoke-")


def test_a_failed_validation_closes_it_with_the_message_of_the_pod(gate: Gate) -> None:
    record = VerdictRecord("FAIL", "FAIL: rank 1 is slow")
    uid = gate.start(seconds="1s", exit_code="1", message=record.line())
    code, found = gate.watch(uid, queue_s=60, start_s=60)
    assert (code, found.verdict, found.message) == (1, "FAIL", record.message)
    assert found.details[-1].startswith("[BackoffLimitExceeded]")


def test_a_validation_that_is_never_admitted_times_out_with_the_message_of_kueue(gate: Gate) -> None:
    queue = {"spec": {"stopPolicy": "Hold"}}
    gate.api.patch(kueue.API_VERSION, "ClusterQueue", QUEUE, queue)
    uid = gate.start()
    assert gate.live()["spec"]["suspend"] is True
    code, found = gate.watch(uid, queue_s=4, start_s=60)
    assert (code, found.verdict) == (1, "ERROR")
    assert "4 s" in found.message and QUEUE in found.message


def test_pods_that_never_start_time_out_with_the_message_of_the_scheduler(gate: Gate) -> None:
    for index in range(2):
        gate.api.patch("v1", "Node", f"gate-{index}", {"spec": {"unschedulable": True}})
    uid = gate.start()
    eventually(lambda: not gate.live()["spec"]["suspend"], patience_s=60)
    code, found = gate.watch(uid, queue_s=60, start_s=4)
    assert (code, found.verdict) == (1, "ERROR")
    assert "4 s" in found.message and "[Unschedulable] 0/" in found.message


def test_its_account_reads_runs_of_the_gate_and_nothing_else(gate: Gate) -> None:
    gate.watch(gate.start(seconds="1s"), queue_s=60, start_s=60)
    access = Access(gate.api.access.server, gate.folder / "ca.crt", token=(gate.folder / "token").read_text())
    with KubernetesApi(access) as theirs:
        path = f"/apis/batch/v1/namespaces/{kueue.GATE_NAMESPACE}/jobs"
        assert theirs.request("GET", f"{path}/{gate.job['metadata']['name']}")["kind"] == "Job"
        for refused in (path, "/api/v1/namespaces/gate-team/pods", "/api/v1/secrets", "/api/v1/nodes"):
            with pytest.raises(ApiError) as refusal:
                theirs.request("GET", refused)
            assert refusal.value.code == 403


def test_a_validation_that_is_evicted_is_queued_again_and_passes_later(gate: Gate) -> None:
    uid = gate.start(seconds="8s")
    eventually(lambda: gate.live()["status"].get("ready") == 2, patience_s=60)
    gate.api.patch(kueue.API_VERSION, "ClusterQueue", QUEUE, {"spec": {"stopPolicy": "HoldAndDrain"}})
    eventually(
        lambda: gate.live()["spec"]["suspend"] and not gate.live()["status"].get("active"), patience_s=60
    )
    gate.api.patch(kueue.API_VERSION, "ClusterQueue", QUEUE, {"spec": {"stopPolicy": "None"}})
    code, found = gate.watch(uid, queue_s=60, start_s=60)
    assert (code, found.message) == (0, "passed")
