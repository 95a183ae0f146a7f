"""Operation of a cluster: drained queues, jobs without a queue, validations among teams."""

import uuid
from collections.abc import Iterator
from functools import partial

import pytest

from components.kubernetes.accelerators import POOL_LABEL
from components.kubernetes.queueing.kueue import API_VERSION, GATE_NAMESPACE, VALIDATION
from components.kubernetes.queueing.quotas import GateArgs, TeamArgs
from infra.naming import gate_queue
from policies.admission.manifests import manifests as policies
from rehearsal.controlplane.api import ApiError, KubernetesApi
from tests.cluster.queues.lab import Lab, flavor, queues
from tests.cluster.waiting import eventually, gone

A100 = flavor("a100", "p4d.24xlarge", 4, usd_per_hour=32.77)  # 32 GPUs
L4 = flavor("l4", "g6.2xlarge", 4, usd_per_hour=0.98)
RESEARCH: list[TeamArgs] = [{"name": "Research", "weight": 1, "gpus": {"a100": 16}}]
SMOKE: GateArgs = {"nodes": {"a100": 2}, "scheduled": True}


def test_a_drained_queue_evicts_and_later_resumes(api: KubernetesApi) -> None:
    with queues(api, [A100], RESEARCH) as lab:
        lab.submit("Research", "train", gpus=8)
        lab.runs("train")
        queue = lab.namespaces["Research"]

        def stop(policy: str) -> None:
            api.patch(API_VERSION, "ClusterQueue", queue, {"spec": {"stopPolicy": policy}})

        stop("HoldAndDrain")
        eventually(lambda: not lab.admitted("train"), "the job is evicted")
        assert lab.evictions("train") == {"ClusterQueueStopped": 1}
        eventually(lambda: lab.pods("train") == [], "its pods are gone")
        lab.submit("Research", "later", gpus=8)
        assert "is inactive" in lab.refusal("later")
        stop("None")
        lab.runs("train", "later")
        assert not lab.job("train")["status"].get("failed")


def _follows(lab: Lab, name: str, active: bool) -> bool:
    """Whether a Job runs as its Workload is active."""
    return lab.job(name)["spec"]["suspend"] is not active and lab.admitted(name) is active


def test_a_job_that_rules_refuse_since_it_was_made_can_be_stopped_and_started(api: KubernetesApi) -> None:
    """An environment that begins to deny: an update by a controller is no request of a member."""
    with queues(api, [A100], RESEARCH) as lab:
        space = lab.namespaces["Research"]
        lab.submit("Research", "train", gpus=8)
        lab.runs("train")
        train = lab.job("train")
        assert "activeDeadlineSeconds" not in train["spec"]
        made = [api.create(body) for body in policies(actions=["Deny"])]

        def denied() -> bool:
            try:
                api.patch(
                    "batch/v1", "Job", "train", {"metadata": {"labels": {"by": "an-administrator"}}}, space
                )
            except ApiError as error:
                return "MLS-K8S-06" in str(error)
            return False

        try:
            eventually(denied, "the rules hold")
            workload = lab.workload("train")["metadata"]["name"]
            for active in (False, True):
                api.patch(API_VERSION, "Workload", workload, {"spec": {"active": active}}, space)
                eventually(partial(_follows, lab, "train", active), lambda: lab.workload("train"))
        finally:
            for body in reversed(made):
                api.delete(body["apiVersion"], body["kind"], body["metadata"]["name"])
            gone(api, made)


def test_a_job_without_a_queue_is_queued_with_its_team(api: KubernetesApi) -> None:
    with queues(api, [A100], RESEARCH) as lab:
        lab.submit("Research", "train", gpus=8)
        lab.runs("train")
        assert lab.job("train")["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "default"
        assert lab.workload("train")["spec"]["queueName"] == "default"
        assert lab.workload("train")["spec"]["priority"] == 0


@pytest.fixture
def gate(api: KubernetesApi, request: pytest.FixtureRequest) -> Iterator[Lab]:
    """A team that runs on the whole pool, half of it the gate's."""
    with queues(api, [A100], RESEARCH, {**SMOKE, "drain": request.param}) as lab:
        lab.namespaces = {**lab.namespaces, "gate": GATE_NAMESPACE}
        for index in range(4):
            lab.submit("Research", f"train-{index}", gpus=8)
        lab.runs(*(f"train-{index}" for index in range(4)))
        validate(lab, "smoke", gate_queue("a100"), VALIDATION)
        yield lab


def validate(lab: Lab, name: str, queue: str, priority: str, *, pool: str = "a100", gpus: int = 8) -> None:
    labels = {"kueue.x-k8s.io/queue-name": queue}
    rule = {"key": POOL_LABEL, "operator": "In", "values": [pool]}
    required = {"nodeSelectorTerms": [{"matchExpressions": [rule]}]}
    there = {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}}
    lab.submit("gate", name, gpus=gpus, pods=2, cpu="2", priority=priority, labels=labels, pod=there)


def test_pools_are_validated_side_by_side_and_none_on_the_nodes_of_another(api: KubernetesApi) -> None:
    gate: GateArgs = {"nodes": {"a100": 2, "l4": 2}}
    with queues(api, [A100, L4], RESEARCH, gate) as lab:
        lab.namespaces = {**lab.namespaces, "gate": GATE_NAMESPACE}
        validate(lab, "training", gate_queue("a100"), VALIDATION)
        validate(lab, "interactive", gate_queue("l4"), VALIDATION, pool="l4", gpus=1)
        assert (lab.flavor("training"), lab.flavor("interactive")) == ("a100", "l4")
        # A day later: the quota of one pool is no quota of another.
        validate(lab, "once-more", gate_queue("a100"), VALIDATION)
        assert "insufficient unused quota" in lab.refusal("once-more")
        lab.finish("interactive")
        validate(lab, "second", gate_queue("l4"), VALIDATION, pool="l4", gpus=1)
        lab.runs("second")
        lab.finish("training")
        lab.runs("once-more")


@pytest.mark.parametrize("gate", [False], indirect=True)
def test_the_validation_waits_for_idle_nodes(gate: Lab) -> None:
    assert "insufficient unused quota" in gate.refusal("smoke")
    # What becomes idle is kept for it: a borrower that came later does not take it again, though it needs
    # less and the jobs that run end one after the other.
    gate.submit("Research", "later", gpus=8)
    gate.refusal("later")
    gate.finish("train-0")
    eventually(lambda: "8 more needed" in gate.refusal("smoke"), "what one job left is kept")
    gate.finish("train-1")
    gate.runs("smoke")
    assert not gate.admitted("later")
    assert not any(gate.evictions(f"train-{index}") for index in (2, 3))
    gate.finish("smoke")
    gate.runs("later")


@pytest.mark.parametrize("gate", [False], indirect=True)
def test_the_validation_takes_its_nodes_back_from_its_own_repetition(gate: Lab) -> None:
    gate.finish("smoke")
    gate.finish("train-0")
    gate.finish("train-1")
    validate(gate, "weekly", "smoke-schedule", "background")
    gate.runs("weekly")
    validate(gate, "again", gate_queue("a100"), VALIDATION)
    gate.runs("again")
    assert gate.evictions("weekly") == {"Preempted": 1}
    assert not any(gate.evictions(f"train-{index}") for index in (2, 3))


@pytest.mark.parametrize("gate", [True], indirect=True)
def test_the_validation_drains_its_nodes_where_it_is_asked_to(gate: Lab) -> None:
    gate.runs("smoke")
    trains = [f"train-{index}" for index in range(4)]
    assert sorted(bool(gate.evictions(name)) for name in trains) == [False, False, True, True]


@pytest.mark.parametrize("gate", [False], indirect=True)
def test_a_job_that_gets_no_queue_is_refused(gate: Lab) -> None:
    def refusal() -> str:
        try:
            gate.submit("gate", f"stray-{uuid.uuid4().hex[:6]}", gpus=8)
        except ApiError as error:
            return str(error)
        return ""

    # The API server learns of the policy a moment after it was made.
    assert "no queue" in eventually(refusal)
