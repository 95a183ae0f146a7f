"""Manifests that are applied again, as CI and GitOps do: what was added to the jobs stays."""

import copy
from collections.abc import Iterator

import pytest

from agents.shared.kueue import DEADLINE_LABEL
from components.kubernetes.queueing.defaults import job_limits
from components.kubernetes.queueing.kueue_values import MANAGED, MANAGED_LABEL
from components.kubernetes.queueing.quotas import GPU, TeamArgs
from infra.catalog.kubernetes.kueue import DEFAULT_QUEUE
from infra.launchers import kubeflow
from rehearsal.controlplane.api import KubernetesApi, Object
from rehearsal.controlplane.control_plane import ControlPlane
from tests.cluster.queues.lab import IMAGE, Lab, flavor, machines, queues
from tests.cluster.queues.members import member
from tests.cluster.waiting import eventually, gone

POOLS = [
    flavor("l4", "g6.2xlarge", 2, usd_per_hour=0.98),
    flavor("small", "g6.2xlarge", 1, usd_per_hour=0.5, cpu=1),  # jobs with two cores get the other one
]
TEAMS: list[TeamArgs] = [{"name": "Again", "weight": 1}]
JOB, JOB_SET, RUNTIME = "batch/v1", "jobset.x-k8s.io/v1alpha2", (kubeflow.API_VERSION, "TrainingRuntime")
SPOT = {"key": "spot", "operator": "Exists"}


@pytest.fixture(scope="module")
def lab(api: KubernetesApi) -> Iterator[Lab]:
    with machines(api, POOLS[:1], {"l4": "g6.2xlarge"}), queues(api, POOLS, TEAMS, ending=True) as made:
        eventually(lambda: _holds(api, made.namespaces["Again"]), "policies hold")
        yield made


@pytest.fixture(scope="module")
def mine(lab: Lab, plane: ControlPlane, api: KubernetesApi) -> Iterator[KubernetesApi]:
    with KubernetesApi(member(plane, api, lab.namespaces["Again"])) as connection:
        yield connection


def job_spec(pods: int) -> Object:
    """A job with GPUs, a limit without a request, and a toleration of its own."""
    container = {"name": "a", "image": IMAGE, "resources": {"limits": {GPU: 1, "cpu": "2"}}}
    pod = {"restartPolicy": "Never", "tolerations": [SPOT], "containers": [container]}
    return {"parallelism": pods, "completions": pods, "template": {"spec": pod}}


def bodied(version: str, kind: str, name: str, namespace: str, spec: Object) -> Object:
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec}


def _queued(name: str, namespace: str) -> Object:
    body = bodied(JOB, "Job", name, namespace, job_spec(1))
    body["metadata"]["labels"] = {"kueue.x-k8s.io/queue-name": DEFAULT_QUEUE}
    return body


def _holds(api: KubernetesApi, namespace: str) -> bool:
    made = api.create(_queued("probe", namespace), dry_run=True)
    pod = made["spec"]["template"]["spec"]
    keys = [row["key"] for row in pod["tolerations"]]
    return GPU in keys and "affinity" in pod and "activeDeadlineSeconds" in made["spec"]


def _job(body: Object) -> Object:
    """The specification of the job of an object."""
    spec: Object = body["spec"]
    return dict(spec["replicatedJobs"][0]["template"]["spec"]) if "replicatedJobs" in spec else spec


def _added(body: Object) -> tuple[object, ...]:
    job = _job(body)
    pod = job["template"]["spec"]
    keys = [row["key"] for row in pod["tolerations"]]
    requests = pod["containers"][0]["resources"].get("requests")
    return keys, pod.get("affinity"), requests, job.get("activeDeadlineSeconds"), job.get("backoffLimit")


@pytest.mark.parametrize("kind", ["Job", "JobSet"])
@pytest.mark.parametrize("runs", [True, False], ids=["runs", "waits"])
def test_a_manifest_that_is_applied_again_changes_nothing(
    lab: Lab, mine: KubernetesApi, kind: str, *, runs: bool
) -> None:
    namespace, name = lab.namespaces["Again"], f"again-{kind}-{runs}".lower()
    version = JOB if kind == "Job" else JOB_SET
    # More pods than there are machines wait for ever.
    spec = job_spec(1 if runs else 3)
    if kind == "JobSet":
        # JobSet writes this default only when an object is created, and takes its absence for a change.
        spec["completionMode"] = "Indexed"
        spec = {"replicatedJobs": [{"name": "a", "template": {"spec": spec}}]}
    body = bodied(version, kind, name, namespace, spec)
    added = ["spot", GPU], {"cpu": "2"}, job_limits.LONGEST_S, job_limits.MOST_RETRIES
    made = mine.apply(copy.deepcopy(body), manager="ci")
    keys, affinity, requests, *limits = _added(made)
    assert (keys, *limits) == (added[0], *added[2:])
    assert affinity
    assert isinstance(requests, dict) and requests["cpu"] == "2"
    assert made["metadata"]["labels"][DEADLINE_LABEL] == str(job_limits.LONGEST_S)
    if runs:
        eventually(lambda: not lab.api.get(version, kind, name, namespace)["spec"].get("suspend"), name)
    for _ in range(2):
        mine.apply(copy.deepcopy(body), manager="ci")
        # `kubectl apply` sends lists: of a Job that of the tolerations, of a JobSet that of its jobs. Kueue
        # writes into the latter when the JobSet starts; from then on it refuses such a list in any case.
        if kind == "Job":
            lists = {"spec": {"template": {"spec": {"tolerations": [SPOT]}}}}
            mine.patch(version, kind, name, lists, namespace)
        elif not runs:
            mine.patch(version, kind, name, {"spec": body["spec"]}, namespace)
    assert _added(lab.api.get(version, kind, name, namespace)) == _added(made)
    lab.api.delete(version, kind, name, namespace, propagation="Background")
    gone(lab.api, [body])


def test_an_object_from_before_the_policies_may_be_changed(api: KubernetesApi, lab: Lab) -> None:
    namespace = "from-before"
    api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
    old = _queued("old", namespace)
    made = api.create(old)
    label = {"metadata": {"labels": {MANAGED_LABEL: MANAGED}}}
    api.patch("v1", "Namespace", namespace, label)
    eventually(lambda: _holds(api, namespace), "policies hold")
    changed = api.patch(JOB, "Job", "old", {"metadata": {"annotations": {"a": "b"}}}, namespace)
    assert changed["metadata"]["annotations"]["a"] == "b"
    assert _added(changed) == _added(made) and _added(made)[0] == ["spot"]
    api.delete(JOB, "Job", "old", namespace, propagation="Background")
    api.delete("v1", "Namespace", namespace)
    gone(api, [old])


def test_a_runtime_that_gets_gpus_later_tolerates_their_nodes(lab: Lab) -> None:
    namespace = lab.namespaces["Again"]
    pod: Object = {"containers": [{"name": "node", "image": IMAGE}]}
    template = {"metadata": {"labels": {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}}}
    jobs = [{"name": "node", "template": {**template, "spec": {"template": {"spec": pod}}}}]
    spec = {"mlPolicy": {"numNodes": 1}, "template": {"spec": {"replicatedJobs": jobs}}}
    body = bodied(*RUNTIME, "grows", namespace, spec)
    made = lab.api.create(copy.deepcopy(body))
    assert "tolerations" not in _job(made["spec"]["template"])["template"]["spec"]
    pod["containers"][0]["resources"] = {"limits": {GPU: 1}}
    made = lab.api.patch(*RUNTIME, "grows", {"spec": spec}, namespace)
    assert [row["key"] for row in _job(made["spec"]["template"])["template"]["spec"]["tolerations"]] == [GPU]
    lab.api.delete(*RUNTIME, "grows", namespace)


@pytest.mark.parametrize("kind", ["Job", "CronJob", "JobSet"])
def test_retries_that_a_job_declares_stay(lab: Lab, kind: str) -> None:
    spec = {**job_spec(1), "backoffLimit": 6}
    version = JOB_SET if kind == "JobSet" else JOB
    if kind == "JobSet":
        body: Object = {"replicatedJobs": [{"name": "a", "template": {"spec": spec}}]}
    else:
        body = spec if kind == "Job" else {"schedule": "0 0 * * *", "jobTemplate": {"spec": spec}}
    made = lab.api.create(bodied(version, kind, "six", lab.namespaces["Again"], body), dry_run=True)
    job = made["spec"]["jobTemplate"] if kind == "CronJob" else made
    given = job["spec"] if kind == "CronJob" else _job(made)
    # In a Job, 6 is also what the API server writes where none is declared.
    assert given["backoffLimit"] == (job_limits.MOST_RETRIES if kind == "Job" else 6)
    assert job["metadata"]["labels"][DEADLINE_LABEL] == str(job_limits.LONGEST_S)
