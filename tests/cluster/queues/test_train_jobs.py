"""A TrainJob on the stack's runtimes, under the real Trainer, JobSet and Kueue."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from components.kubernetes.queueing.quotas import FlavorArgs, TeamArgs
from components.kubernetes.training.trainer import runtimes
from infra.launchers import kubeflow
from infra.launchers.runplan import RunPlan
from rehearsal.controlplane.api import KubernetesApi, Object
from tests.cluster.queues.lab import IMAGE, Lab, flavor, machines, queues
from tests.cluster.waiting import eventually, gone

TEAM: list[TeamArgs] = [{"name": "Research", "weight": 1}]
A100 = flavor("a100", "p4d.24xlarge", 3)
TRAIN_JOB, JOB_SET = (kubeflow.API_VERSION, "TrainJob"), ("jobset.x-k8s.io/v1alpha2", "JobSet")
PLAN = RunPlan(
    name="launched", image=IMAGE, command=("train.py",), nodes=1, gpus_per_node=8, cpu=80, memory_gib=900,
    node_labels={"trainstack.dev/pool": "a100"}, timeout_s=3600,
)  # fmt: skip


@contextmanager
def trainer(api: KubernetesApi, *flavors: FlavorArgs) -> Iterator[Lab]:
    """Pools of p4d nodes, a team, and the runtimes of a stack with these pools."""
    pools = flavors or (A100,)
    offers: Any = {
        one["name"]: {key: one[key] for key in ("cpu", "memory_gib", "gpus", "fabric")} for one in pools
    }
    of_machine = {"p4d.24xlarge": [*offers]}
    bodies = list(runtimes(offers, IMAGE, of_machine))
    nodes = dict.fromkeys(offers, "p4d.24xlarge")
    with machines(api, [*pools], nodes), queues(api, [*pools], TEAM) as lab:
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


def short(name: str, nodes: int, runtime: str = "torch-a100") -> Object:
    """What a person has to write."""
    return {
        "apiVersion": kubeflow.API_VERSION,
        "kind": "TrainJob",
        "metadata": {"name": name},
        "spec": {
            "runtimeRef": {"name": runtime},
            "trainer": {"numNodes": nodes, "command": ["torchrun", "train.py"]},
        },
    }


def test_a_train_job_waits_in_its_teams_queue_and_then_takes_whole_nodes(api: KubernetesApi) -> None:
    with trainer(api) as lab:
        namespace = lab.namespaces["Research"]
        lab.submit("Research", "before", gpus=8, pods=2)
        lab.nodes("before", 2)

        lab.create(namespace, short("short", 2))
        lab.jobs["short-node-0"] = namespace
        assert "insufficient unused quota" in lab.refusal("short")
        made = api.get(*TRAIN_JOB, "short", namespace)
        assert made["spec"]["suspend"] is True
        assert made["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "default"
        assert lab.pods("short-node-0") == []

        lab.finish("before")
        lab.runs("short")
        assert len(set(lab.nodes("short-node-0", 2))) == 2
        assert api.get(*JOB_SET, "short", namespace)["metadata"]["ownerReferences"][0]["kind"] == "TrainJob"
        pod = lab.pods("short-node-0")[0]["spec"]
        (container,) = pod["containers"]
        assert container["image"] == IMAGE
        assert container["resources"]["limits"]["vpc.amazonaws.com/efa"] == "4"
        given = {row["name"]: row.get("value") for row in container["env"]}
        assert (given["PET_NNODES"], given["PET_MASTER_ADDR"]) == ("2", "short-node-0-0.short")
        assert pod["terminationGracePeriodSeconds"] == PLAN.grace_s


def test_what_the_launcher_renders_runs_on_the_runtime_for_any_node(api: KubernetesApi) -> None:
    with trainer(api) as lab:
        namespace = lab.namespaces["Research"]
        (body,) = kubeflow.train_job(replace(PLAN, namespace=namespace))
        lab.create(namespace, body)
        lab.runs("launched")
        lab.jobs["launched-node-0"] = namespace
        lab.nodes("launched-node-0")
        assert lab.flavor("launched") == "a100"
        (pod,) = lab.pods("launched-node-0")
        assert pod["metadata"]["labels"]["trainstack.dev/run"] == "launched"
        assert pod["spec"]["affinity"]["nodeAffinity"] and pod["spec"]["tolerations"]
        eventually(lambda: lab.condition("launched", "PodsReady").get("status") == "True", "it is ready")


def test_a_train_job_on_a_machine_type_takes_the_reservation_first_and_the_pool_behind_it(
    api: KubernetesApi,
) -> None:
    first = flavor("reserved", "p4d.24xlarge", 1, usd_per_hour=0.0, preference=0)
    behind = flavor("flex", "p4d.24xlarge", 1, usd_per_hour=10.0, preference=1)
    with trainer(api, first, behind) as lab:
        namespace = lab.namespaces["Research"]
        for name, pool in (("one", "reserved"), ("two", "flex")):
            lab.create(namespace, short(name, 1, "torch-p4d.24xlarge"))
            lab.runs(name)
            lab.jobs[f"{name}-node-0"] = namespace
            assert lab.flavor(name) == pool
            assert len(lab.nodes(f"{name}-node-0", 1)) == 1
        # One on a pool's own runtime waits for this pool.
        lab.create(namespace, short("pinned", 1, "torch-reserved"))
        assert "insufficient unused quota" in lab.refusal("pinned")
