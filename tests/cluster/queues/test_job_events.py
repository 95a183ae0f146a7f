"""The reason why a job does not start is an Event of the job; a label starts one that Kueue gave up.

Real Kueue, JobSet and Trainer; the ledger's program runs with the rights that its component gives it.
"""

from collections.abc import Iterator, Mapping

import pytest

from agents.queued_jobs.reasons import of_workload
from agents.queued_jobs.reports import REPEAT_S, SETTLED_S, Reports
from agents.queued_jobs.retries import Retries
from agents.shared.api_server import ApiServer
from agents.shared.kueue import IDLE, RETRY_LABEL, STOPPED_LABEL
from components.kubernetes.queueing.kueue import API_VERSION, PRIORITY_LABEL, QUEUE_NAME_LABEL
from components.kubernetes.queueing.kueue_values import MOST_REQUEUES
from rehearsal.controlplane.api import KubernetesApi, Object
from rehearsal.controlplane.control_plane import ControlPlane
from tests.cluster.accounting.ledger_program import Standing, ledger
from tests.cluster.queues.lab import Lab
from tests.cluster.queues.members import member
from tests.cluster.queues.test_train_jobs import JOB_SET, TRAIN_JOB, short, trainer
from tests.cluster.waiting import eventually

JOB, POD = ("batch/v1", "Job"), ("v1", "Pod")
# No node has this name: admitted, and its pods never start.
NOWHERE = {"nodeSelector": {"kubernetes.io/hostname": "none"}}


@pytest.fixture(scope="module")
def lab(api: KubernetesApi) -> Iterator[Lab]:
    with trainer(api) as lab:
        yield lab
        api.delete(*POD, "alone", lab.namespaces["Research"])


@pytest.fixture(scope="module")
def standing(api: KubernetesApi, lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Standing]:
    with ledger(api, tmp_path_factory.mktemp("ledger"), [*lab.namespaces.values()]) as standing:
        standing.start()
        yield standing


def events(api: KubernetesApi, found: Object) -> Mapping[str, Object]:
    """The Events that `kubectl describe` shows of an object, by their reason (kubectl searches by UID)."""
    head = found["metadata"]
    fields = f"involvedObject.uid={head['uid']},involvedObject.name={head['name']}"
    rows = api.list("v1", "Event", head["namespace"], fields=f"{fields},involvedObject.kind={found['kind']}")
    return {row["reason"]: row for row in rows}


def pod_spec() -> Object:
    """A pod with more GPUs than the three nodes have, and what the policies of new objects add."""
    resources = {"limits": {"nvidia.com/gpu": "25"}}
    container = {"name": "main", "image": "example.com/none:1", "resources": resources}
    tolerant = [{"key": "nvidia.com/gpu", "operator": "Exists"}]
    return {"restartPolicy": "Never", "containers": [container], "tolerations": tolerant}


def job_set(name: str, namespace: str, labels: Mapping[str, str] | None = None) -> Object:
    spec = {"backoffLimit": 0, "template": {"spec": pod_spec()}}
    row = {"name": "workers", "replicas": 1, "template": {"spec": spec}}
    return {
        "apiVersion": JOB_SET[0], "kind": "JobSet",
        "metadata": {"name": name, "namespace": namespace, "labels": labels or {}},
        "spec": {"replicatedJobs": [row]},
    }  # fmt: skip


def test_each_kind_of_job_has_an_event_with_reason_and_fix(
    api: KubernetesApi, lab: Lab, standing: Standing, monkeypatch: pytest.MonkeyPatch
) -> None:
    (namespace,) = standing.namespaces
    api.create(job_set("set", namespace))
    lab.create(namespace, short("trained", 9))
    lab.submit("Research", "large", gpus=8, pods=9)
    lab.submit("Research", "queue", gpus=1, labels={QUEUE_NAME_LABEL: "training-queue"})
    head = {"name": "alone", "namespace": namespace}
    api.create({"apiVersion": "v1", "kind": "Pod", "metadata": head, "spec": pod_spec()})
    lab.submit("Research", "runs", gpus=1)
    # Kueue creates no Workload of these.
    lab.submit("Research", "urgent", gpus=1, priority="urgent")
    api.create(job_set("urgent-set", namespace, {PRIORITY_LABEL: "urgent"}))
    urgent = short("urgent-trained", 1)
    lab.create(
        namespace, {**urgent, "metadata": {**urgent["metadata"], "labels": {PRIORITY_LABEL: "urgent"}}}
    )
    expected = {
        (*JOB_SET, "set"): "NeverFits", (*TRAIN_JOB, "trained"): "NeverFits", (*JOB, "large"): "NeverFits",
        (*JOB, "queue"): "NoSuchQueue", (*POD, "alone"): "NeverFits", (*JOB, "urgent"): "NoSuchPriority",
        (*JOB_SET, "urgent-set"): "NoSuchPriority", (*TRAIN_JOB, "urgent-trained"): "NoSuchPriority",
    }  # fmt: skip
    for (version, kind, name), reason in expected.items():
        found = api.get(version, kind, name, namespace)
        row = eventually(
            lambda found=found, reason=reason: events(api, found).get(reason),  # type: ignore[misc]
            lambda found=found, name=name: (name, events(api, found)),  # type: ignore[misc]
        )
        assert row["type"] == "Warning" and row["count"] == 1 and "Fix: " in row["message"], name
    # No class of the stack's own jobs.
    assert "production, default, sweep in" in events(api, lab.job("urgent"))["NoSuchPriority"]["message"]
    # Kueue's own message, and no Event of a job that runs.
    assert "nvidia.com/gpu" in events(api, lab.job("large"))["NeverFits"]["message"]
    _is_repeated(api, lab, standing, monkeypatch)
    ours = api.list("v1", "Event", namespace, fields="source=trainstack-queue")
    assert {row["involvedObject"]["name"] for row in ours} == {name for _, _, name in expected}
    for version, kind, name in expected:
        api.delete(version, kind, name, namespace, propagation="Background")
    lab.finish("runs")
    # The quota of objects is counted anew while they go: a request meanwhile may be refused (409).
    left = [*(one for one in expected), (*JOB, "runs")]
    eventually(lambda: all(api.find(*one, namespace) is None for one in left), "they are gone")
    eventually(lambda: not api.list("v1", "Pod", namespace), "their pods are gone")


def _is_repeated(api: KubernetesApi, lab: Lab, standing: Standing, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process with the same account continues the Event of the first, and repeats it later."""
    refused: list[str] = []
    server = _connected(api, standing, monkeypatch)
    reports = Reports(server, refused.append)
    reports.observe(lab.workload("large"), server.now(), 0.0)
    for at, count in ((SETTLED_S, 1), (SETTLED_S + REPEAT_S, 2)):
        reports.send(server.now(), at)
        assert events(api, lab.job("large"))["NeverFits"]["count"] == count, refused


def _connected(api: KubernetesApi, standing: Standing, monkeypatch: pytest.MonkeyPatch) -> ApiServer:
    """A connection with the account of the program."""
    host, port = api.access.server.removeprefix("https://").split(":")
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", host)
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", port)
    (account,) = standing.folder.iterdir()
    return ApiServer(account)


def _is_stopped_by_an_administrator(
    plane: ControlPlane, api: KubernetesApi, lab: Lab, monkeypatch: pytest.MonkeyPatch, standing: Standing
) -> None:
    """A retry that waits for quota is stopped, which no label undoes, and resumed."""
    (namespace,) = standing.namespaces
    lab.submit("Research", "all", gpus=8, pods=3)
    lab.runs("all")
    with KubernetesApi(member(plane, api, namespace)) as ada:
        ada.patch(*JOB, "stuck", {"metadata": {"labels": {RETRY_LABEL: "1"}}}, namespace)
    eventually(lambda: "unused quota" in lab.refusal("stuck"), lambda: lab.workload("stuck"))
    name = lab.workload("stuck")["metadata"]["name"]
    api.patch(API_VERSION, "Workload", name, {"spec": {"active": False}}, namespace)
    workload = lab.workload("stuck")
    # Kueue leaves it as it was.
    assert lab.condition("stuck", "Evicted")["reason"] == "DeactivatedDueToRequeuingLimitExceeded"
    server = _connected(api, standing, monkeypatch)
    retries = Retries(server)
    retries.observe(workload)
    retries.obey(lambda uid: "2", server.now(), 0.0)
    assert lab.workload("stuck")["spec"]["active"] is False
    reason = of_workload(lab.workload("stuck"), server.now())
    assert reason and reason.kind == "deactivated"
    # A label of an earlier stop as idle is no permission any more.
    api.patch(API_VERSION, "Workload", name, {"metadata": {"labels": {STOPPED_LABEL: IDLE}}}, namespace)
    api.patch(API_VERSION, "Workload", name, {"spec": {"active": True}}, namespace)
    eventually(
        lambda: STOPPED_LABEL not in lab.workload("stuck")["metadata"]["labels"],
        lambda: lab.workload("stuck"),
    )
    lab.finish("all")


def test_a_job_at_the_requeue_limit_starts_again_with_all_its_attempts(
    plane: ControlPlane,
    api: KubernetesApi,
    lab: Lab,
    standing: Standing,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lab.submit("Research", "stuck", gpus=1, pod=NOWHERE)
    lab.runs("stuck")

    # As after so many attempts.
    def tried(status: Object) -> None:
        status["requeueState"] = {"count": MOST_REQUEUES}

    eventually(lambda: lab.change("stuck", tried), "it was tried so often")
    lab.age("stuck", "Admitted", 20 * 60)
    row = eventually(lambda: events(api, lab.job("stuck")).get("RequeueLimit"), lambda: lab.workload("stuck"))
    assert f"kubectl label job stuck {RETRY_LABEL}=" in row["message"]
    assert lab.workload("stuck")["spec"]["active"] is False
    _is_stopped_by_an_administrator(plane, api, lab, monkeypatch, standing)
    lab.runs("stuck")
    workload = lab.workload("stuck")
    assert workload["spec"]["active"] is True and "requeueState" not in workload["status"]
    # It is queued again, and not deactivated at once.
    lab.age("stuck", "Admitted", 20 * 60)
    eventually(lambda: lab.evictions("stuck").get("PodsReadyTimeout"), lambda: lab.workload("stuck"))
    workload = lab.workload("stuck")
    assert workload["spec"]["active"] is True and workload["status"]["requeueState"]["count"] == 1
