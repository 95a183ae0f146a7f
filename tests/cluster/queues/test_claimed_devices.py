"""A TrainJob of a team on nodes whose RDMA adapters pods claim (DRANET), under the real controllers."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

from components.gcp.pools.offers import RDMA_CLASS, RDMA_RESOURCE, node_offer
from components.kubernetes.accelerators import POOL_LABEL
from components.kubernetes.queueing.quotas import FlavorArgs, TeamArgs
from components.kubernetes.training.trainer import runtimes
from infra.catalog.gcp import facts
from infra.launchers import kubeflow
from rehearsal.controlplane.api import KubernetesApi, Object
from tests.cluster.queues.lab import IMAGE, Lab, machines, queues
from tests.cluster.waiting import eventually, gone

TEAM: list[TeamArgs] = [{"name": "Research", "weight": 1}]
MACHINE, NODES, ADAPTERS = "a4-highgpu-8g", 2, 8
OFFER = node_offer(facts.machine_type(MACHINE), pods_per_node=32, disk_gib=500, rdma=True)
A4 = cast(FlavorArgs, {**OFFER, "name": "a4", "node_labels": {POOL_LABEL: "a4"}, "max_nodes": NODES})
DEVICES, TRAIN_JOB = "resource.k8s.io/v1", (kubeflow.API_VERSION, "TrainJob")


def driver() -> Iterator[Object]:
    """Objects that DRANET publishes: the class of its devices, and those of every node."""
    chosen = f"device.driver == '{RDMA_CLASS}'"
    yield {
        "apiVersion": DEVICES, "kind": "DeviceClass", "metadata": {"name": RDMA_CLASS},
        "spec": {"selectors": [{"cel": {"expression": chosen}}]},
    }  # fmt: skip
    for node in (f"a4-{index}" for index in range(NODES)):
        yield {
            "apiVersion": DEVICES, "kind": "ResourceSlice", "metadata": {"name": f"{node}-mrdma"},
            "spec": {
                "driver": RDMA_CLASS, "nodeName": node,
                "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
                "devices": [{"name": f"gpu{index}rdma0"} for index in range(ADAPTERS)],
            },
        }  # fmt: skip


@contextmanager
def cluster(api: KubernetesApi) -> Iterator[Lab]:
    """Two nodes with their adapters, a team, and the stack's runtimes of the pool."""
    bodies = [*driver(), *runtimes({"a4": OFFER}, IMAGE)]
    with machines(api, [A4], {"a4": MACHINE}), queues(api, [A4], TEAM) as lab:
        for body in bodies:
            api.create(body)
        try:
            yield lab
        finally:
            for job in api.list(*TRAIN_JOB, lab.namespaces["Research"]):
                api.delete(*TRAIN_JOB, job["metadata"]["name"], lab.namespaces["Research"])
            for body in bodies:
                api.delete(body["apiVersion"], body["kind"], body["metadata"]["name"])
            gone(api, bodies)


def test_a_train_job_gets_the_adapters_of_its_nodes_and_they_count_in_its_queue(api: KubernetesApi) -> None:
    with cluster(api) as lab:
        namespace = lab.namespaces["Research"]
        lab.create(namespace, {
            "apiVersion": kubeflow.API_VERSION, "kind": "TrainJob", "metadata": {"name": "fast"},
            "spec": {
                "runtimeRef": {"name": "torch-a4"},
                "trainer": {"numNodes": NODES, "command": ["torchrun", "train.py"]},
            },
        })  # fmt: skip
        lab.runs("fast")
        (used,) = lab.workload("fast")["status"]["admission"]["podSetAssignments"]
        assert used["resourceUsage"][RDMA_RESOURCE] == str(NODES * ADAPTERS)
        lab.jobs["fast-node-0"] = namespace
        assert len(set(lab.nodes("fast-node-0", NODES))) == NODES
        for pod in lab.pods("fast-node-0"):
            assert allocated(api, pod) == ADAPTERS

        # Its adapters count, not its GPUs alone.
        claims = {"resourceClaims": [{"name": "rdma", "resourceClaimTemplateName": "torch-a4"}]}
        lab.submit("Research", "later", tolerate=True, pod=claims)
        assert RDMA_RESOURCE in lab.refusal("later")
        api.delete(*TRAIN_JOB, "fast", namespace)
        lab.runs("later")


def allocated(api: KubernetesApi, pod: Object) -> int:
    """The devices that the scheduler allocated to a pod's only claim."""

    def found() -> list[Any]:
        made = (pod_now(api, pod).get("status") or {}).get("resourceClaimStatuses") or ()
        if not made:
            return []
        claim = api.get(DEVICES, "ResourceClaim", made[0]["resourceClaimName"], pod["metadata"]["namespace"])
        return list(
            ((claim.get("status") or {}).get("allocation") or {}).get("devices", {}).get("results", ())
        )

    return len(eventually(found, lambda: pod_now(api, pod)))


def pod_now(api: KubernetesApi, pod: Object) -> Object:
    return api.get("v1", "Pod", pod["metadata"]["name"], pod["metadata"]["namespace"])
