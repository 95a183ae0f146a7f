"""Node of a pod, and the scheduler's message when none fits."""

from decimal import Decimal

import pytest

from rehearsal.workloads.controllers import shares
from rehearsal.workloads.scheduling import SchedulerNode, Taint, place, requests

GPU = "nvidia.com/gpu"
SYSTEM = SchedulerNode(
    "system-0", "system", {"pool": "system"}, (), {"cpu": Decimal(4), "memory": Decimal(16 * 2**30)}
)
GPUS = SchedulerNode(
    "gpu-0",
    "gpu",
    {"pool": "gpu"},
    (Taint(GPU, "present", "NoSchedule"),),
    {"cpu": Decimal(48)},
    {GPU: Decimal(4)},
)
TOLERATION = {"key": GPU, "operator": "Exists", "effect": "NoSchedule"}


def pod(gpus: int | None = None, **spec: object) -> dict[str, object]:
    limits = {GPU: gpus} if gpus else {}
    return {"containers": [{"name": "c", "resources": {"limits": limits}}], **spec}


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (
            pod(4, nodeSelector={"pool": "gpu"}),
            "0/2 nodes are available: 1 node(s) didn't match Pod's node affinity/selector, "
            "1 node(s) had untolerated taint {nvidia.com/gpu: present}.",
        ),
        (pod(8, tolerations=[TOLERATION]), "0/2 nodes are available: 2 Insufficient nvidia.com/gpu."),
    ],
)
def test_the_reasons_are_counted_as_the_scheduler_does(spec: dict[str, object], message: str) -> None:
    assert place(spec, [SYSTEM, GPUS], {}) == (None, message)


def test_a_pod_that_fits() -> None:
    node, _ = place(pod(4, tolerations=[TOLERATION]), [SYSTEM, GPUS], {})
    assert node is GPUS
    node, message = place(pod(4, tolerations=[TOLERATION]), [SYSTEM, GPUS], {"gpu-0": {GPU: Decimal(1)}})
    assert node is None and "Insufficient nvidia.com/gpu" in message


def test_unknown_capacity_refuses_nothing_but_devices() -> None:
    bare = SchedulerNode("n", "g")
    assert place({"containers": [{"resources": {"requests": {"cpu": "400"}}}]}, [bare], {})[0] is bare
    assert place(pod(1), [bare], {})[0] is None


def test_affinity_expressions() -> None:
    def wants(operator: str, *values: str) -> dict[str, object]:
        expression = {"key": "pool", "operator": operator, "values": list(values)}
        term = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
        return pod(affinity={"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": term}})

    assert place(wants("In", "system"), [SYSTEM], {})[0] is SYSTEM
    assert place(wants("NotIn", "system"), [SYSTEM], {})[0] is None
    assert place(wants("Exists"), [SYSTEM], {})[0] is SYSTEM
    assert place(wants("DoesNotExist"), [SYSTEM], {})[0] is None


def test_requests_add_up_and_init_containers_count_alone() -> None:
    spec = {
        "containers": [{"resources": {"requests": {"cpu": "500m"}}}, {"resources": {"limits": {"cpu": "1"}}}],
        "initContainers": [{"resources": {"requests": {"cpu": "2"}}}],
    }
    assert requests(spec) == {"cpu": Decimal(2)}


@pytest.mark.parametrize("count", [1, 2, 3, 7])
def test_processors_are_shared_fairly(count: int) -> None:
    found = shares(count)
    assert len(found) == count
    assert max(map(len, found)) - min(map(len, found)) <= 1
    used = [cpu for share in found for cpu in share]
    assert max(used.count(cpu) for cpu in used) - min(used.count(cpu) for cpu in set(used)) <= 1
