"""The shipped stack's objects comply with the policies that it deploys in its cluster."""

import copy
import uuid
from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import pytest

from infra.launchers import kubeflow, kubernetes
from policies.admission.manifests import SYSTEM
from rehearsal.controlplane.api import ApiError, KubernetesApi, Object
from tests.cluster.manifests import manifests
from tests.cluster.stack_objects import PAIR, of_charts, of_program, pods
from tests.cluster.waiting import eventually, gone
from tests.infra.launchers import plans
from tests.stacks.composition.composed import composed

LABEL = "trainstack.dev/policy"
KINDS = ("Deployment", "DaemonSet", "Job", "CronJob")


def deployed() -> list[Object]:
    """The policies as the stack has them where they refuse."""
    graph = composed(PAIR, lambda spec: spec["layout"].update(admission="deny"))
    return [
        body
        for body in manifests(graph)
        if body["kind"].startswith("ValidatingAdmissionPolicy")
        and LABEL in body["metadata"].get("annotations", {})
    ]


@pytest.fixture(scope="module")
def policed(api: KubernetesApi) -> Iterator[str]:
    """A namespace of a cluster that has the policies of the stack."""
    name = f"test-{uuid.uuid4().hex[:8]}"
    api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    made = [api.create(body) for body in deployed()]
    eventually(partial(_refused, api, privileged(name)), "a policy refuses")
    eventually(partial(_refused, api, endless(name)), "another policy refuses")
    yield name
    for body in reversed(made):
        api.delete(body["apiVersion"], body["kind"], body["metadata"]["name"])
    api.delete("v1", "Namespace", name)
    gone(api, made)


def privileged(namespace: str) -> Object:
    container = {"name": "a", "image": "example.com/a:1", "securityContext": {"privileged": True}}
    metadata = {"name": "case", "namespace": namespace}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [container]}}


def endless(namespace: str) -> Object:
    pod = {"restartPolicy": "Never", "containers": [{"name": "a", "image": "example.com/a:1"}]}
    metadata = {"name": "case", "namespace": namespace}
    return {
        "apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": {"template": {"spec": pod}},
    }  # fmt: skip


def _refused(api: KubernetesApi, body: Object) -> bool:
    """Whether one of the policies does; anything else that is wrong with it is no matter here."""
    try:
        api.create(body, dry_run=True)
    except ApiError as error:
        return "MLS-K8S-" in str(error)
    return False


def placed(body: Object, namespace: str) -> Object:
    """The same object in the namespace, of a name that is free there."""
    kept = {key: body["metadata"][key] for key in ("labels", "annotations") if key in body["metadata"]}
    found = {**body, "metadata": {**kept, "namespace": namespace, "generateName": "case-"}}
    if body["kind"] == "Pod":
        found["spec"] = {**body["spec"], "serviceAccountName": "default"}
    return copy.deepcopy(found)


def test_what_the_stack_and_its_charts_make_is_admitted(api: KubernetesApi, policed: str) -> None:
    ours = [*of_program(), *(body for bodies in of_charts().values() for body in bodies)]
    asked = [body for body in ours if body["kind"] in KINDS and body["metadata"]["namespace"] not in SYSTEM]
    asked += [pod for body, pod in pods(ours) if body["metadata"]["namespace"] not in SYSTEM]
    assert {body["kind"] for body in asked} == {"Deployment", "Job", "CronJob", "Pod"}
    assert [body for body in asked if _refused(api, placed(body, policed))] == []
    queues = [body for body in of_program() if body["kind"] == "ClusterQueue"]
    assert queues and not any(_refused(api, body) for body in queues)


def test_runs_as_the_launchers_render_them_are_admitted(api: KubernetesApi, policed: str) -> None:
    plan = replace(plans.training(), max_restarts=0)
    jobset = placed(kubernetes.jobset(plan)[0], policed)
    jobs = [body for body in kubernetes.job(plan) if body["kind"] == "Job"]
    assert not _refused(api, jobset)
    for job in jobs:
        assert not _refused(api, placed(job, policed))
        assert not any(_refused(api, placed(pod, policed)) for _, pod in pods([job]))
    (train,) = kubeflow.train_job(plan)
    assert not _refused(api, placed(train, policed))


def test_pods_of_the_runtimes_are_admitted(api: KubernetesApi, policed: str) -> None:
    """As Trainer makes them: the runtime's pod with what the TrainJob says of its image and command."""
    runtimes = [body for body in of_program() if body["kind"] == "ClusterTrainingRuntime"]
    assert len(runtimes) > 1
    for runtime in runtimes:
        (job,) = runtime["spec"]["template"]["spec"]["replicatedJobs"]
        template = job["template"]["spec"]["template"]
        container = {**template["spec"]["containers"][0], "command": ["torchrun", "train.py"]}
        spec = {**template["spec"], "containers": [container]}
        labels = runtime["metadata"]["labels"]
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"labels": labels}, "spec": spec}
        assert not _refused(api, placed(pod, policed)), runtime["metadata"]["name"]


def test_what_breaks_a_rule_is_refused_and_the_system_is_left_alone(api: KubernetesApi, policed: str) -> None:
    assert _refused(api, privileged(policed)) and _refused(api, endless(policed))
    assert not _refused(api, privileged("kube-system"))
