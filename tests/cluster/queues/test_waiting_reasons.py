"""Reasons why a job cannot start, from the real Kueue, as `trainstack queue` shows them to a member."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from components.kubernetes.queueing.kueue import QUEUE_NAME_LABEL
from components.kubernetes.queueing.kueue_values import MOST_REQUEUES
from components.kubernetes.queueing.quotas import TeamArgs
from rehearsal.controlplane.api import KubernetesApi, Object
from rehearsal.controlplane.control_plane import ControlPlane
from tests.cluster.queues.lab import Lab, flavor, machines, queues
from tests.cluster.queues.members import member
from tests.cluster.queues.test_queue_report import Seen
from tests.cluster.waiting import eventually

# Nodes of one pool exist; those of the other never come.
POOLS = [flavor("cpu", "g6.2xlarge", 2, gpus=0), flavor("l4", "g6.2xlarge", 8)]
TEAM: list[TeamArgs] = [{"name": "Research", "weight": 1}]
_ELASTIC = Path(__file__).with_name("samples") / "pytorch-elastic.yaml"


def pod(limits: dict[str, str], **more: Any) -> Object:
    container = {"name": "main", "image": "example.com/none:1", "resources": {"limits": limits}}
    return {"restartPolicy": "Never", "containers": [{**container, **more.pop("container", {})}], **more}


SMALL = {"cpu": "500m", "memory": "256Mi"}


@pytest.fixture(scope="module")
def seen(plane: ControlPlane, api: KubernetesApi) -> Iterator[Seen]:
    """A job for each reason, all of one member."""
    if shutil.which("kubectl") is None:
        pytest.skip("there is no kubectl here")
    types = {"cpu": "g6.2xlarge"}
    with machines(api, POOLS[:1], types), queues(api, POOLS, TEAM) as lab:
        eventually(lambda: _completed(lab), "the API server completes jobs")
        namespace = lab.namespaces["Research"]
        lab.submit("Research", "fine", pod=pod(SMALL))
        lab.submit("Research", "queue", labels={QUEUE_NAME_LABEL: "training-queue"})
        lab.submit("Research", "priority", priority="urgent")
        lab.submit("Research", "large", gpus=9)
        lab.submit("Research", "partition", pod=pod({**SMALL, "nvidia.com/mig-1g.5gb": "1"}))
        lab.submit("Research", "other", pod=pod({**SMALL, "amd.com/gpu": "1"}))
        lab.submit("Research", "claimed", pod=_with_claim(api, namespace))
        lab.submit("Research", "image", gpus=1)
        lab.submit("Research", "secret", gpus=1)
        lab.submit("Research", "shell", pod=pod(SMALL, hostNetwork=True))
        for body in yaml.safe_load_all(_ELASTIC.read_text()):
            api.create({**body, "metadata": {**body["metadata"], "namespace": namespace}})
        access = json.dumps(member(plane, api, namespace).kubeconfig())
        yield Seen(lab, {"member": access})
        for name in ("imagenet-worker-1", "imagenet-worker-2"):
            api.delete("v1", "Pod", name, namespace)


def _completed(lab: Lab) -> bool:
    body = {"apiVersion": "batch/v1", "kind": "Job", "spec": {"template": {"spec": pod({"cpu": "1"})}}}
    made = {**body, "metadata": {"name": "probe", "namespace": lab.namespaces["Research"]}}
    (container,) = lab.api.create(made, dry_run=True)["spec"]["template"]["spec"]["containers"]
    return "requests" in container["resources"]


def _with_claim(api: KubernetesApi, namespace: str) -> Object:
    """A pod with a GPU as claimed by Dynamic Resource Allocation, for which no driver is installed."""
    request = {"name": "gpu", "exactly": {"deviceClassName": "gpu.nvidia.com"}}
    api.create({
        "apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate",
        "metadata": {"name": "single-gpu", "namespace": namespace},
        "spec": {"spec": {"devices": {"requests": [request]}}},
    })  # fmt: skip
    claims = [{"name": "gpu", "resourceClaimTemplateName": "single-gpu"}]
    return pod(SMALL, resourceClaims=claims)


def _report(lab: Lab, job: str, reason: str, message: str) -> None:
    """The state of a pod's container as its kubelet reports it."""
    eventually(lambda: lab.pods(job), "its pod exists")
    state = {"waiting": {"reason": reason, "message": message}}
    row = {"name": "main", "image": "", "imageID": "", "ready": False, "restartCount": 0, "state": state}
    made = lab.pods(job)[0]["metadata"]
    change = {"status": {"containerStatuses": [row]}}
    lab.api.patch("v1", "Pod", made["name"], change, made["namespace"], subresource="status")


def _waiting(seen: Seen) -> dict[str, Any]:
    return {name: row["reason"] for name, row in seen.waiting("member", "--team", "Research").items()}


def test_a_job_with_limits_below_the_default_requests_runs(seen: Seen) -> None:
    assert seen.lab.flavor("fine") == "cpu"
    seen.lab.nodes("fine")


def test_each_reason_has_the_fact_and_a_fix(seen: Seen) -> None:
    lab = seen.lab
    _report(lab, "image", "ImagePullBackOff", 'Back-off pulling image "example.com/none:1"')
    _report(lab, "secret", "CreateContainerConfigError", 'secret "login" not found')
    lab.runs("shell")
    lab.age("shell", "Admitted", 120)
    expected = {
        "queue": ("no such queue", "training-queue"),
        "priority": ("no such priority", "urgent"),
        "large": ("never fits", "8 in l4"),
        "partition": ("unknown resource", "nvidia.com/mig-1g.5gb"),
        "other": ("unknown resource", "amd.com/gpu"),
        "claimed": ("unknown resource", "gpu.nvidia.com"),
        "image": ("image", "example.com/none:1"),
        "secret": ("configuration", "login"),
        "shell": ("pods refused", ""),
        "imagenet-worker-1": ("volume claim", "efs-claim"),
        "imagenet-worker-2": ("volume claim", "efs-claim"),
    }

    def shown() -> bool:
        found = _waiting(seen)
        return {name: row["kind"] for name, row in found.items()} == {
            name: kind for name, (kind, _) in expected.items()
        }

    eventually(shown, lambda: _waiting(seen), patience_s=30)
    for name, row in _waiting(seen).items():
        assert expected[name][1] in row["text"], name
        assert row["fix"], name


def test_a_job_that_never_starts_stops_holding_quota(seen: Seen) -> None:
    lab = seen.lab
    lab.submit("Research", "endless", gpus=1, pods=4)
    lab.runs("endless")

    # As after so many attempts.
    def tried(status: Object) -> None:
        status["requeueState"] = {"count": MOST_REQUEUES}

    eventually(lambda: lab.change("endless", tried), "it was tried so often")
    lab.submit("Research", "next", gpus=1, pods=4)
    assert "insufficient unused quota" in lab.refusal("next")
    lab.age("endless", "Admitted", 20 * 60)
    lab.runs("next")
    assert lab.workload("endless")["spec"]["active"] is False
    assert lab.job("endless")["spec"]["suspend"] is True
    row = _waiting(seen)["endless"]
    assert row["kind"] == "requeue limit" and row["fix"]
    namespace = lab.namespaces["Research"]

    def reported() -> bool:
        rows = lab.api.list("v1", "Event", namespace, fields="involvedObject.name=endless")
        return any("maximum number of re-queuing retries" in row["message"] for row in rows)

    eventually(reported, "an event of the job has the reason")
