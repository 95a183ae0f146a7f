"""A team with jobs in every state on older controllers, for upgrades of these."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from components.kubernetes.queueing import kueue_values
from components.kubernetes.queueing.kueue import API_VERSION
from components.kubernetes.queueing.quotas import TeamArgs
from components.kubernetes.training import trainer
from components.kubernetes.training.trainer import runtimes
from infra.launchers import kubeflow
from rehearsal.controlplane import binaries
from rehearsal.controlplane.api import ApiError, KubernetesApi, Object
from rehearsal.controlplane.control_plane import ControlPlane
from tests.cluster.queues.lab import IMAGE, Lab, flavor, machines, queues
from tests.cluster.upgrades.installing import installer
from tests.cluster.waiting import eventually

TEAM: list[TeamArgs] = [{"name": "Research", "weight": 1}]
A100 = flavor("a100", "p4d.24xlarge", 4)
MACHINES = {"a100": "p4d.24xlarge"}
TRAIN_JOB, JOB_SET = (kubeflow.API_VERSION, "TrainJob"), ("jobset.x-k8s.io/v1alpha2", "JobSet")
CRD = ("apiextensions.k8s.io/v1", "CustomResourceDefinition")
KUEUE = kueue_values.values(claimed={})
# From 2.3.0 on its definitions are templates (components/kubernetes/definitions/schemas.toml).
TRAINER_NEXT = {**trainer.VALUES, "crds": {"enabled": False}}


def other(name: str) -> tuple[Path, Path]:
    """Program and chart of another release."""
    found = binaries.other(name)
    if found is None:
        pytest.skip(f"{name} is not built: `python -m rehearsal.controlplane.binaries --others` builds it")
    return found


def install_older(plane: ControlPlane) -> None:
    """Install the older releases, in the order of a stack."""
    for addon, values in (
        ("jobset", trainer.JOBSET_VALUES),
        (trainer.CHART, trainer.VALUES),
        ("kueue", KUEUE),
    ):
        before = f"{addon}-before"
        program, chart = other(before) if before in binaries.OTHERS else (None, None)
        plane.install(addon, values, chart=chart, program=program)


def job_set(name: str) -> Object:
    """A gang of two nodes, as a member writes it."""
    asked = {"cpu": "1", "nvidia.com/gpu": "8"}
    pod = {
        "restartPolicy": "Never",
        "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists"}],
        "containers": [{"name": "main", "image": IMAGE, "resources": {"requests": asked, "limits": asked}}],
    }
    spec = {"backoffLimit": 0, "completions": 1, "parallelism": 1, "template": {"spec": pod}}
    jobs = [{"name": "node", "replicas": 1, "template": {"spec": spec}}]
    body: Object = {"apiVersion": JOB_SET[0], "kind": "JobSet", "metadata": {"name": name}}
    return {**body, "spec": {"replicatedJobs": jobs}}


def train_job(name: str) -> Object:
    """A TrainJob of one node."""
    spec = {
        "runtimeRef": {"name": "torch-a100"},
        "trainer": {"numNodes": 1, "command": ["torchrun", "train.py"]},
    }
    return {"apiVersion": TRAIN_JOB[0], "kind": "TrainJob", "metadata": {"name": name}, "spec": spec}


def pods(lab: Lab) -> dict[str, tuple[str, str, str]]:
    """Identity, node and phase of every pod of the team."""
    found = {}
    for pod in lab.api.list("v1", "Pod", lab.namespaces["Research"]):
        if "deletionTimestamp" not in pod["metadata"]:
            metadata, phase = pod["metadata"], (pod.get("status") or {}).get("phase", "")
            found[metadata["name"]] = (metadata["uid"], pod["spec"].get("nodeName", ""), phase)
    return found


def workloads(lab: Lab) -> dict[str, tuple[str, bool]]:
    """Identity of every Workload of the team, and whether it is admitted."""
    found = {}
    for row in every(lab, API_VERSION):
        conditions = {
            each["type"]: each["status"] for each in (row.get("status") or {}).get("conditions") or ()
        }
        name = row["metadata"]["name"]
        found[name] = (row["metadata"]["uid"], conditions.get("Admitted") == "True")
    return found


def every(lab: Lab, api_version: str) -> list[Object]:
    """All Workloads of the team; an API server whose definitions have just changed asks to wait a moment."""
    found: list[Object] = []

    def read() -> bool:
        try:
            found[:] = lab.api.list(api_version, "Workload", lab.namespaces["Research"])
        except ApiError as error:
            if "initializing" not in str(error):
                raise
            return False
        return True

    eventually(read, "the kind is served")
    return found


def upgrade_definitions(api: KubernetesApi, chart: str, folder: Path) -> None:
    """Run the Job before the chart."""
    with installer(api, chart, folder) as job:
        code, message = job.run()
    assert code == 0, message


@contextmanager
def in_use(plane: ControlPlane) -> Iterator[Lab]:
    """A team with jobs in every state: 3 of 4 nodes run, one job waits for more than is left."""
    offer: Any = {key: A100[key] for key in ("cpu", "memory_gib", "gpus", "fabric")}
    with ExitStack() as stack:
        api = stack.enter_context(plane.api())
        stack.enter_context(machines(api, [A100], MACHINES))
        lab = stack.enter_context(queues(api, [A100], TEAM, stays=True))
        namespace = lab.namespaces["Research"]
        for body in runtimes({"a100": offer}, IMAGE):
            api.create(body)
        lab.submit("Research", "runs", gpus=8)
        lab.nodes("runs")
        lab.create(namespace, job_set("gang"))
        lab.create(namespace, train_job("train"))
        for owner, job in (("gang", "gang-node-0"), ("train", "train-node-0")):
            lab.runs(owner)
            lab.jobs[job] = namespace
            lab.nodes(job)
        lab.submit("Research", "waits", gpus=8, pods=2)
        lab.refusal("waits")
        lab.submit("Research", "held", gpus=8)
        held = eventually(lambda: lab.workload("held"))["metadata"]["name"]
        api.patch(API_VERSION, "Workload", held, {"spec": {"active": False}}, namespace)
        eventually(lambda: not lab.admitted("held") and lab.pods("held") == [], "a member has suspended it")
        yield lab
