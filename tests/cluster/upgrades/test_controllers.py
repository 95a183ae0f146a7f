"""Controllers are upgraded while jobs run, wait and are suspended: no run ends, none is lost.

Kueue 0.18.3, JobSet 0.11.1 and Trainer 2.2.1 become Kueue 0.19.2, JobSet 0.12.0 and Trainer 2.3.0, in the
order of a stack. The controllers are real; pods run on KWOK.
"""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import yaml

from components.kubernetes.queueing import kueue_values
from components.kubernetes.queueing.kueue import API_VERSION
from components.kubernetes.queueing.quotas import TeamArgs
from components.kubernetes.training import trainer
from components.kubernetes.training.trainer import runtimes
from rehearsal.controlplane import binaries
from rehearsal.controlplane.api import ApiError, KubernetesApi, Object
from rehearsal.controlplane.control_plane import ControlPlane, ControlPlaneOptions, running
from rehearsal.controlplane.processes import StartError
from smoke_training.launchers import kubeflow
from tests.cluster.queues.lab import IMAGE, Lab, flavor, machines, queues
from tests.cluster.upgrades.installing import installer
from tests.cluster.waiting import eventually
from tools.definitions import of_folder, packed

pytestmark = [pytest.mark.more, pytest.mark.timeout(900)]

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


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A cluster with the older releases."""
    home = tmp_path_factory.mktemp("upgrade") / "run"
    others = {name: other(name) for name in binaries.OTHERS}
    with running(ControlPlaneOptions(home)) as plane:
        for addon, values in (
            ("jobset", trainer.JOBSET_VALUES),
            (trainer.CHART, trainer.VALUES),
            ("kueue", KUEUE),
        ):
            program, chart = others.get(f"{addon}-before", (None, None))
            plane.install(addon, values, chart=chart, program=program)
        yield plane


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


@pytest.fixture
def lived(old: ControlPlane, tmp_path: Path) -> Iterator[Lab]:
    """A team with jobs in every state: 3 of 4 nodes run, one job waits for more than is left."""
    offer: Any = {key: A100[key] for key in ("cpu", "memory_gib", "gpus", "fabric")}
    with ExitStack() as stack:
        api = stack.enter_context(old.api())
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


def test_an_upgrade_ends_no_run_and_loses_no_workload(old: ControlPlane, lived: Lab, tmp_path: Path) -> None:
    api, namespace = lived.api, lived.namespaces["Research"]
    before, queued = pods(lived), workloads(lived)
    assert len(before) == 3 and {phase for _, _, phase in before.values()} == {"Running"}
    assert len(queued) == 5

    # The older definitions are those of the older charts.
    (older,) = of_folder(other("jobset-before")[1] / "crds")
    assert api.get(*CRD, older["metadata"]["name"])["spec"]["versions"] == older["spec"]["versions"]

    upgrade_definitions(api, "jobset", tmp_path)
    assert pods(lived) == before
    (source,) = binaries.files_of("jobset")
    (newer,) = of_folder(source / "crds")
    assert api.get(*CRD, newer["metadata"]["name"])["spec"]["versions"] == newer["spec"]["versions"]
    old.install("jobset", trainer.JOBSET_VALUES, skip_crds=True)
    assert pods(lived) == before

    # Definitions of the next Trainer, as `tools.definitions` packs them.
    program, chart = other("kubeflow-trainer-next")
    next_ones = tmp_path / "next.json.xz"
    with installer(api, trainer.CHART, tmp_path) as job:
        next_ones.write_bytes(packed(trainer_definitions(chart)))
        code, message = job.run(definitions=next_ones, version="2.3.0")
        assert code == 0, message
    old.install(trainer.CHART, TRAINER_NEXT, chart=chart, program=program)
    assert pods(lived) == before

    # A release whose program does not start, and the control plane that the next try finds.
    with pytest.raises(StartError):
        old.install("kueue", KUEUE, program=Path("/bin/false"))
    assert pods(lived) == before and workloads(lived) == queued
    upgrade_definitions(api, "kueue", tmp_path)
    old.install("kueue", KUEUE, skip_crds=True)
    assert pods(lived) == before
    assert {name: uid for name, (uid, _) in workloads(lived).items()} == {
        name: uid for name, (uid, _) in queued.items()
    }

    # Both versions are read: the conversion webhook is the new one's.
    names = {row["metadata"]["name"] for row in every(lived, "kueue.x-k8s.io/v1beta1")}
    assert names == set(queued)
    for row in api.list(*CRD):
        if row["spec"]["group"] == "kueue.x-k8s.io":
            assert row["status"]["storedVersions"] == ["v1beta2"]

    # The queue moves on, by the new controllers.
    assert not lived.admitted("waits") and not lived.admitted("held")
    lived.finish("runs")
    lived.nodes("waits", 2)
    kept = {name: row for name, row in pods(lived).items() if not name.startswith(("runs", "waits"))}
    assert kept == {name: row for name, row in before.items() if not name.startswith("runs")}
    lived.finish("waits")
    lived.create(namespace, train_job("after"))
    lived.jobs["after-node-0"] = namespace
    lived.runs("after")
    lived.nodes("after-node-0")
    with pytest.raises(ApiError):
        lived.create(namespace, {**job_set("bad"), "spec": {"network": {"subdomain": "no.label"}}})


def trainer_definitions(chart: Path) -> list[Object]:
    """The definitions that Trainer 2.3.0 has as templates, without their condition."""
    found = []
    for path in sorted((chart / "templates" / "crd").glob("*.yaml")):
        text = path.read_text(encoding="utf-8")
        body = "\n".join(line for line in text.split("---\n", 1)[1].splitlines() if not line.startswith("{{"))
        found += [each for each in yaml.load_all(body, Loader=yaml.CSafeLoader) if each]
    return found
