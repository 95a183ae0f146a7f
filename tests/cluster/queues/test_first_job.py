"""The first job of a new member: samples that name no taint, queue or shared memory, on the real Kueue."""

import copy
import json
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from components.kubernetes.accelerators import POOL_LABEL
from components.kubernetes.queueing.defaults import fields as defaults
from components.kubernetes.queueing.kueue import API_VERSION
from components.kubernetes.queueing.quotas import GPU, TeamArgs
from components.kubernetes.queueing.stopping import UNSUPPORTED
from components.kubernetes.training.trainer import runtimes
from infra.launchers import kubeflow
from policies.admission.manifests import manifests as policies
from rehearsal.controlplane.api import ApiError, KubernetesApi, Object
from rehearsal.controlplane.control_plane import ControlPlane
from tests.cluster.queues.lab import IMAGE, Lab, flavor, machines, queues
from tests.cluster.queues.members import member
from tests.cluster.waiting import eventually, gone

_SAMPLES = Path(__file__).with_name("samples")
TUTORIAL = Path(__file__).resolve().parents[3] / "docs" / "tutorials" / "first-cluster-job.md"
# The cheapest first, as Kueue tries them; nothing here needs the largest.
POOLS = [
    flavor("cpu", "g6.2xlarge", 8, gpus=0, usd_per_hour=0.1),
    flavor("a100", "p4d.24xlarge", 1, usd_per_hour=22),
    flavor("l4", "g6.2xlarge", 30, usd_per_hour=0.98),
]
TYPES = {"cpu": "g6.2xlarge", "l4": "g6.2xlarge", "a100": "p4d.24xlarge"}
TEAMS: list[TeamArgs] = [{"name": "Plain", "weight": 1}, {"name": "Gpus", "weight": 1}]
RUNTIME = (kubeflow.API_VERSION, "TrainingRuntime")
# Pods of each sample.
STARTING = {
    "kueue-job": 3, "kueue-jobset": 2, "kueue-pod": 1, "kueue-deployment": 3,
    "kueue-statefulset": 3, "jobset-pytorch": 4, "trainer-multi-node": 3, "nvidia-gpu-pod": 1,
}  # fmt: skip


def sample(name: str, namespace: str) -> Iterator[Object]:
    """The objects of a sample, in the namespace of a team instead of any that it names."""
    for body in yaml.safe_load_all((_SAMPLES / f"{name}.yaml").read_text()):
        if body:
            yield {**body, "metadata": {**body["metadata"], "namespace": namespace}}


def templates(body: Object) -> Iterator[Object]:
    """The pod specs of an object that has any."""
    spec = body["spec"]
    if "replicatedJobs" in spec:
        yield from (job["template"]["spec"]["template"]["spec"] for job in spec["replicatedJobs"])
    elif body["kind"] == "Pod":
        yield spec
    elif "template" in spec:
        yield spec["template"]["spec"]


def with_gpus(body: Object) -> Object:
    """The object with one more line: a GPU for its pods; of a JobSet with a driver, for the workers."""
    made = copy.deepcopy(body)
    if made["kind"] == "TrainJob":
        made["spec"]["trainer"]["resourcesPerNode"] = {"limits": {GPU: 1}}
    for pod in list(templates(made))[:1]:
        resources = pod["containers"][0].setdefault("resources", {})
        resources.setdefault("limits", {})[GPU] = 1
    return made


@dataclass
class Cluster:
    """Two teams, and the connection of a member of each."""

    lab: Lab
    members: dict[str, KubernetesApi]

    def pods(self, team: str) -> list[Object]:
        return self.lab.api.list("v1", "Pod", self.lab.namespaces[team])

    def pools(self, team: str) -> list[tuple[bool, str]]:
        """Whether each pod of a team requests GPUs, and the pool of its node."""
        nodes = {one["metadata"]["name"]: one["metadata"] for one in self.lab.api.list("v1", "Node")}
        return [
            (_gpus(pod) > 0, nodes[pod["spec"]["nodeName"]]["labels"][POOL_LABEL])
            for pod in self.pods(team)
            if "nodeName" in pod["spec"]
        ]


def _gpus(pod: Object) -> int:
    return sum(
        int((one.get("resources", {}).get("limits") or {}).get(GPU, 0)) for one in pod["spec"]["containers"]
    )


@pytest.fixture(scope="module", params=["warn", pytest.param("deny", marks=pytest.mark.more)])
def cluster(plane: ControlPlane, api: KubernetesApi, request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """A stack's queues, policies and runtimes, where rules warn or deny."""
    denies = request.param == "deny"
    rules = policies(actions=("Deny",) if denies else ("Warn", "Audit"))
    bodies = list(runtimes({}, IMAGE))
    with machines(api, POOLS, TYPES), queues(api, POOLS, TEAMS, ending=denies) as lab:
        for body in (*rules, *bodies):
            api.create(body)
        members = {}
        for team, namespace in lab.namespaces.items():
            access = member(plane, api, namespace)
            members[team] = KubernetesApi(access)
            eventually(partial(_ready, members[team], namespace, denies=denies), "policies hold")
        try:
            yield Cluster(lab, members)
        finally:
            _end(api, lab)
            for body in (*reversed(rules), *bodies):
                api.delete(body["apiVersion"], body["kind"], body["metadata"]["name"])
            gone(api, [*rules, *bodies])
            for connection in members.values():
                connection.__exit__(None, None, None)


def _end(api: KubernetesApi, lab: Lab) -> None:
    for namespace in lab.namespaces.values():
        for version, kind in (
            ("apps/v1", "Deployment"), ("apps/v1", "StatefulSet"), (kubeflow.API_VERSION, "TrainJob"),
            ("batch/v1", "Job"), ("jobset.x-k8s.io/v1alpha2", "JobSet"), ("v1", "Pod"),
        ):  # fmt: skip
            for body in api.list(version, kind, namespace):
                name = body["metadata"]["name"]
                api.delete(version, kind, name, namespace, propagation="Background")


def _ready(who: KubernetesApi, namespace: str, *, denies: bool) -> bool:
    """Whether the API server completes jobs, and judges them."""
    container = {"name": "a", "image": "a.b/c:1", "resources": {"limits": {GPU: 1}}}
    spec = {"restartPolicy": "Never", "containers": [container]}
    metadata = {"name": "probe", "namespace": namespace}
    pod: Object = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
    made = who.create(pod, dry_run=True)
    done = _mounts_shm(made) and any(row.get("key") == GPU for row in made["spec"]["tolerations"])
    if not (done and denies):
        return done
    job: Object = {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": {}}
    job["spec"] = {"backoffLimit": 10, "template": {"spec": spec}}
    try:
        who.create(job, dry_run=True)
    except ApiError as error:
        return "MLS-K8S-06" in str(error)
    return False


def _mounts_shm(pod: Object) -> bool:
    return all(
        any(row["mountPath"] == "/dev/shm" for row in one.get("volumeMounts") or ())
        for one in pod["spec"]["containers"]
    )


@pytest.fixture(scope="module")
def started(cluster: Cluster) -> Cluster:
    """Every sample as it is for one team, and with GPUs for the other, submitted by a member of each."""
    changes: dict[str, Callable[[Object], Object]] = {"Plain": lambda body: body, "Gpus": with_gpus}
    for team, change in changes.items():
        for name in STARTING:
            for body in sample(name, cluster.lab.namespaces[team]):
                cluster.members[team].create(change(body))
    expected = sum(STARTING.values())

    def run() -> bool:
        return all(
            len(found := cluster.pods(team)) == expected
            and all((pod.get("status") or {}).get("phase") in ("Running", "Succeeded") for pod in found)
            for team in changes
        )

    eventually(run, lambda: _waiting(cluster), patience_s=90)
    return cluster


def _waiting(cluster: Cluster) -> Any:
    rows = []
    for namespace in cluster.lab.namespaces.values():
        for row in cluster.lab.api.list(API_VERSION, "Workload", namespace):
            conditions = (row.get("status") or {}).get("conditions") or ()
            said = [each.get("message") for each in conditions if each["type"] == "QuotaReserved"]
            rows.append((row["metadata"]["name"], said))
    pods = [
        (pod["metadata"]["name"], (pod.get("status") or {}).get("phase"), pod["spec"].get("nodeName"))
        for team in cluster.members
        for pod in cluster.pods(team)
    ]
    return rows, pods


def test_a_sample_as_it_is_takes_nodes_without_gpus_unless_it_requests_one(started: Cluster) -> None:
    pools = started.pools("Plain")
    assert len(pools) == sum(STARTING.values())
    assert set(pools) == {(False, "cpu"), (True, "l4")}
    assert pools.count((True, "l4")) == STARTING["nvidia-gpu-pod"]


def test_a_sample_with_a_gpu_takes_the_cheapest_machine_that_has_one(started: Cluster) -> None:
    pools = started.pools("Gpus")
    assert set(pools) == {(False, "cpu"), (True, "l4")}
    # The driver of Kueue's JobSet requests none, and takes no such machine.
    assert pools.count((False, "cpu")) == 1


def test_pods_with_gpus_get_shared_memory_and_a_memory_limit(started: Cluster) -> None:
    share = POOLS[2]["memory_gib"] // POOLS[2]["gpus"]
    for pod in started.pods("Gpus"):
        volumes = {row["name"]: row for row in pod["spec"].get("volumes") or ()}
        if not _gpus(pod):
            assert defaults.SHM not in volumes
            continue
        assert volumes[defaults.SHM]["emptyDir"]["medium"] == "Memory"
        assert _mounts_shm(pod)
        (container,) = pod["spec"]["containers"]
        # A pod of its own has no pool yet when it is created.
        largest = POOLS[1]["memory_gib"] // POOLS[1]["gpus"]
        assert container["resources"]["limits"]["memory"] in (f"{share}Gi", f"{largest}Gi")


def test_a_train_job_on_a_runtime_that_requests_gpus_itself_starts(cluster: Cluster) -> None:
    namespace, mine = cluster.lab.namespaces["Gpus"], cluster.members["Gpus"]
    container = {"name": "node", "image": IMAGE, "resources": {"limits": {GPU: 1}}}
    labels = {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}
    template = {"metadata": {"labels": labels}, "spec": {"template": {"spec": {"containers": [container]}}}}
    jobs = [{"name": "node", "template": template}]
    spec = {"mlPolicy": {"numNodes": 1}, "template": {"spec": {"replicatedJobs": jobs}}}
    metadata = {"name": "tuned", "namespace": namespace}
    made: Object = {"apiVersion": RUNTIME[0], "kind": RUNTIME[1], "metadata": metadata, "spec": spec}
    cluster.lab.api.create(made)
    reference = {"name": "tuned", "kind": RUNTIME[1]}
    run = {"apiVersion": RUNTIME[0], "kind": "TrainJob", "metadata": metadata}
    mine.create({**run, "spec": {"runtimeRef": reference}})
    cluster.lab.jobs["tuned"] = cluster.lab.jobs["tuned-node-0"] = namespace
    assert cluster.lab.flavor("tuned") == "l4"
    cluster.lab.nodes("tuned-node-0")


def test_the_jobs_of_the_tutorial_run_on_the_cheapest_machines(cluster: Cluster) -> None:
    lab, namespace = cluster.lab, cluster.lab.namespaces["Gpus"]
    bodies = [
        yaml.safe_load(text) for text in re.findall(r"```yaml\n(.*?)```", TUTORIAL.read_text(), re.DOTALL)
    ]
    assert [body["kind"] for body in bodies] == ["Job", "TrainJob"]
    for body in bodies:
        name = body["metadata"]["name"]
        cluster.members["Gpus"].create({**body, "metadata": {"name": name, "namespace": namespace}})
        lab.jobs[name] = lab.jobs[f"{name}-node-0"] = namespace
        assert lab.flavor(name) == "l4"
    lab.nodes("first")
    lab.nodes("two-nodes-node-0", 2)


def test_a_group_of_pods_is_refused_with_the_kinds_to_use_instead(cluster: Cluster) -> None:
    namespace = cluster.lab.namespaces["Plain"]
    for body in sample("kueue-pod-group", namespace):
        for author in (cluster.members["Plain"], cluster.lab.api):
            with pytest.raises(ApiError, match=UNSUPPORTED) as refused:
                author.create(body)
            assert "JobSet" in str(refused.value)


@pytest.mark.parametrize("name", ["kuberay-job", "kueue-pytorchjob"])
def test_a_kind_whose_operator_is_absent_is_refused_by_name(
    cluster: Cluster, plane: ControlPlane, tmp_path: Path, name: str
) -> None:
    if (kubectl := shutil.which("kubectl")) is None:
        pytest.skip("there is no kubectl here")
    namespace = cluster.lab.namespaces["Plain"]
    (body,) = sample(name, namespace)
    config, given = tmp_path / "config", tmp_path / "given.yaml"
    config.write_text(json.dumps(member(plane, cluster.lab.api, namespace).kubeconfig()))
    given.write_text(yaml.safe_dump(body))
    words = [kubectl, "--kubeconfig", str(config), "create", "-f", str(given)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert f'no matches for kind "{body["kind"]}" in version "{body["apiVersion"]}"' in done.stderr


def pod(*containers: Object, **more: Any) -> Object:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "one"}, "spec": {
        "restartPolicy": "Never", "containers": list(containers), **more,
    }}  # fmt: skip


def _container(name: str, gpus: int = 0, **more: Any) -> Object:
    return {
        "name": name,
        "image": "a.b/c:1",
        **({"resources": {"limits": {GPU: gpus}}} if gpus else {}),
        **more,
    }


def test_what_a_pod_declares_itself_stays(cluster: Cluster) -> None:
    def created(body: Object) -> Object:
        body["metadata"]["namespace"] = cluster.lab.namespaces["Plain"]
        made: Object = cluster.members["Plain"].create(body, dry_run=True)["spec"]
        return made

    own = {"volumeMounts": [{"name": "own", "mountPath": "/dev/shm"}]}
    volumes = [{"name": "own", "emptyDir": {"medium": "Memory"}}]
    made = created(pod(_container("a", 1, **own), _container("log"), volumes=volumes))
    assert not [row for row in made["volumes"] if row["name"] == defaults.SHM]
    # Containers of a pod share /dev/shm, so all of them get the volume: init containers and sidecars too.
    made = created(pod(_container("a"), initContainers=[_container("side", 1, restartPolicy="Always")]))
    assert all(
        any(row["mountPath"] == "/dev/shm" for row in one["volumeMounts"])
        for one in (*made["containers"], *made["initContainers"])
    )
    assert any(row.get("key") == GPU for row in made["tolerations"])
    # A request above the share of the machine is also the limit.
    large = _container("a", 1)
    large["resources"]["requests"] = {"memory": "400Gi"}
    (container,) = created(pod(large))["containers"]
    assert container["resources"]["limits"]["memory"] == "400Gi"
    everything = [{"operator": "Exists"}]
    job: Object = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "one"}}
    job["spec"] = {"template": {"spec": pod(_container("a", 1), tolerations=everything)["spec"]}}
    job["spec"] |= {"activeDeadlineSeconds": 60, "backoffLimit": 1}
    made = created(job)
    assert made["template"]["spec"]["tolerations"] == everything
    assert (made["activeDeadlineSeconds"], made["backoffLimit"]) == (60, 1)
    assert not any(row.get("key") == GPU for row in created(pod(_container("a")))["tolerations"])


def test_a_job_without_gpus_waits_where_only_nodes_with_gpus_are_free(started: Cluster) -> None:
    started.lab.submit("Plain", "more", pods=POOLS[0]["cpu"] * POOLS[0]["max_nodes"])
    said = started.lab.refusal("more")
    assert "insufficient unused quota for cpu in flavor cpu" in said
    assert all(
        f"untolerated taint {{{GPU} present" in part for part in said.split(", ") if "flavor l4" in part
    )
    assert started.lab.pods("more") == []
