"""A TrainJob on the stack's runtimes, under the real Trainer, JobSet and Kueue."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from components.kubernetes.queueing.quotas import TeamArgs
from components.kubernetes.training.trainer import runtimes
from rehearsal.controlplane.api import KubernetesApi, Object
from smoke_training.launchers import kubeflow
from smoke_training.launchers.runplan import RunPlan
from tests.cluster.queues.lab import IMAGE, Lab, flavor, machines, queues
from tests.cluster.waiting import eventually, gone

TEAM: list[TeamArgs] = [{"name": "Research", "weight": 1}]
A100 = flavor("a100", "p4d.24xlarge", 3)
MACHINES = {"a100": "p4d.24xlarge"}
TRAIN_JOB, JOB_SET = (kubeflow.API_VERSION, "TrainJob"), ("jobset.x-k8s.io/v1alpha2", "JobSet")
PLAN = RunPlan(
    name="launched", image=IMAGE, command=("train.py",), nodes=1, gpus_per_node=8, cpu=80, memory_gib=900,
    node_labels={"trainstack.dev/pool": "a100"}, timeout_s=3600,
)  # fmt: skip


@contextmanager
def trainer(api: KubernetesApi) -> Iterator[Lab]:
    """Three nodes, a team, and the runtimes of a stack with that pool."""
    offer: Any = {key: A100[key] for key in ("cpu", "memory_gib", "gpus", "fabric")}
    bodies = list(runtimes({"a100": offer}, IMAGE))
    with machines(api, [A100], MACHINES), queues(api, [A100], TEAM) as lab:
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


def short(name: str, nodes: int) -> Object:
    """What a person has to write."""
    return {
        "apiVersion": kubeflow.API_VERSION,
        "kind": "TrainJob",
        "metadata": {"name": name},
        "spec": {
            "runtimeRef": {"name": "torch-a100"},
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
