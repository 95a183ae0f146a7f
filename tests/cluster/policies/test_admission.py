"""The API server refuses exactly the objects that the rules fail."""

import copy
import uuid
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from policies.admission.expressions import expressions
from policies.admission.manifests import manifests
from policies.evaluate import evaluate
from policies.resource import Resource
from policies.rules import CATALOG
from policies.settings import RuleSettings
from policies.stack import Stack
from rehearsal.controlplane.api import ApiError, KubernetesApi, Object
from tests.cluster.waiting import eventually, gone

SETTINGS = RuleSettings(host_network_pools=("h100",))
IMAGE = "docker.io/library/train:1"
GPU = {"nvidia.com/gpu": "1"}
BOUNDED = {"resources": {"limits": {**GPU, "memory": "8Gi"}}}
SHM = {"volumeMounts": [{"name": "shm", "mountPath": "/dev/shm"}]}
BEFORE = {"name": "before", "image": "torch", "command": ["true"]}
DISK: list[Any] = [{"name": "shm", "emptyDir": {}}]
MEMORY: list[Any] = [{"name": "shm", "emptyDir": {"medium": "Memory"}}]
PRIVILEGED = {"securityContext": {"privileged": True}}
PLUGIN = {"image": "nvcr.io/nvidia/k8s-device-plugin:v0.20.0@sha256:" + "ab" * 32, **PRIVILEGED}
ENDS = {"activeDeadlineSeconds": 60, "backoffLimit": 0}


def spec(*, pod: Any = None, **container: Any) -> Any:
    own = {"name": "train", "image": IMAGE, **container}
    return {"restartPolicy": "Never", "containers": [own], **(pod or {})}


def a_pod(*, pod: Any = None, **container: Any) -> Object:
    return {"apiVersion": "v1", "kind": "Pod", "spec": spec(pod=pod, **container)}


def a_job(ends: Any = None, **container: Any) -> Object:
    said = {**(ENDS if ends is None else ends), "template": {"spec": spec(**container)}}
    return {"apiVersion": "batch/v1", "kind": "Job", "spec": said}


def a_cron_job(ends: Any, **container: Any) -> Object:
    made = {"schedule": "0 0 * * *", "jobTemplate": {"spec": a_job(ends, **container)["spec"]}}
    return {"apiVersion": "batch/v1", "kind": "CronJob", "spec": made}


def a_job_set(ends: Any = None, **container: Any) -> Object:
    jobs = [{"name": "node", "template": {"spec": a_job(ends, **container)["spec"]}}]
    return {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "spec": {"replicatedJobs": jobs}}


def a_daemon(kind: str, **container: Any) -> Object:
    pods = {"metadata": {"labels": {"app": "a"}}, "spec": spec(pod={"restartPolicy": "Always"}, **container)}
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "spec": {"selector": {"matchLabels": {"app": "a"}}, "template": pods},
    }


def a_queue(**said: Any) -> Object:
    return {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ClusterQueue", "spec": said}


FROM_POOL = {"nodeSelector": {"cloud.google.com/gke-nodepool": "h100"}}
NAMES = [{"key": "team", "operator": "In", "values": ["a"]}]
ALL_NAMES = [{"key": "kubernetes.io/metadata.name", "operator": "Exists"}]
CASES: dict[str, Object] = {
    "plain pod": a_pod(),
    "privileged pod": a_pod(**PRIVILEGED),
    "privileged first container": a_pod(
        pod={"initContainers": [{"name": "a", "image": IMAGE, **PRIVILEGED}]}
    ),
    "privileged job": a_job(**PRIVILEGED),
    "privileged cron job": a_cron_job(ENDS, **PRIVILEGED),
    "privileged job set": a_job_set(**PRIVILEGED),
    "privileged deployment": a_daemon("Deployment", **PRIVILEGED),
    "device plugin": a_daemon("DaemonSet", **PLUGIN),
    "another daemon": a_daemon("DaemonSet", **PRIVILEGED),
    "a device plugin that is none": a_daemon("DaemonSet", **{**PLUGIN, "image": "evil.io/k8s-device-plugin"}),
    "device plugin in a pod": a_pod(**PLUGIN),
    "device plugin in a deployment": a_daemon("Deployment", **PLUGIN),
    "processes of the host": a_pod(pod={"hostPID": True}),
    "network of the host": a_pod(pod={"hostNetwork": True}),
    "network of the host on a listed pool": a_pod(pod={"hostNetwork": True, **FROM_POOL}),
    "processes of the host on a listed pool": a_pod(pod={"hostPID": True, **FROM_POOL}),
    "memory of the host in a job set": a_job_set(pod={"hostIPC": True}),
    "gpu without memory": a_pod(resources={"limits": GPU}),
    "gpu with memory": a_pod(**BOUNDED),
    "torch without shared memory": a_pod(command=["torchrun"], **BOUNDED),
    "torch on a disk": a_pod(pod={"volumes": DISK}, command=["torchrun"], **BOUNDED, **SHM),
    "torch with shared memory": a_pod(pod={"volumes": MEMORY}, command=["torchrun"], **BOUNDED, **SHM),
    "two gpus without shared memory": a_pod(resources={"limits": {"nvidia.com/gpu": 2, "memory": "1Gi"}}),
    "torch in an init container": a_pod(pod={"initContainers": [{**BEFORE, **BOUNDED}]}),
    "torch beside the others": a_pod(
        pod={"initContainers": [{**BEFORE, **BOUNDED, "restartPolicy": "Always"}]}
    ),
    "no gpu": a_pod(resources={"limits": {"nvidia.com/gpu": "0"}}),
    "job": a_job(),
    "job without a deadline": a_job({"backoffLimit": 0}),
    "job with retries by default": a_job({"activeDeadlineSeconds": 60}),
    "job with many retries": a_job({**ENDS, "backoffLimit": 4}),
    "cron job": a_cron_job(ENDS),
    "cron job without a deadline": a_cron_job({"backoffLimit": 0}),
    "job set": a_job_set(),
    "job set without a deadline": a_job_set({"backoffLimit": 0}),
    "queue of some": a_queue(namespaceSelector={"matchLabels": {"team": "a"}}),
    "queue of named": a_queue(namespaceSelector={"matchExpressions": NAMES}),
    "queue of all": a_queue(namespaceSelector={}),
    "queue of all by their name": a_queue(namespaceSelector={"matchExpressions": ALL_NAMES}),
    "queue of none": a_queue(),
}


@pytest.fixture(scope="module")
def policed(api: KubernetesApi) -> Iterator[str]:
    """A namespace of a cluster that has the policies."""
    name = f"test-{uuid.uuid4().hex[:8]}"
    api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    made = [api.create(body) for body in manifests(SETTINGS)]
    # API servers learn of a policy a moment after it was made: each has to have refused something.
    for rule, case in {
        "MLS-K8S-01": "privileged pod",
        "MLS-K8S-02": "processes of the host",
        "MLS-K8S-04": "gpu without memory",
        "MLS-K8S-06": "job without a deadline",
        "MLS-K8S-08": "queue of all",
    }.items():
        eventually(partial(_holds, api, rule, CASES[case], name), f"{rule} holds")
    yield name
    for body in reversed(made):
        api.delete(body["apiVersion"], body["kind"], body["metadata"]["name"])
    api.delete("v1", "Namespace", name)
    gone(api, made)


def _holds(api: KubernetesApi, rule: str, case: Object, namespace: str) -> bool:
    return rule in refused(api, case, namespace)


def refused(api: KubernetesApi, case: Object, namespace: str) -> set[str]:
    """The rules by which the API server refuses to make it."""
    where = {} if case["kind"] == "ClusterQueue" else {"namespace": namespace}
    body = {**copy.deepcopy(case), "metadata": {"name": "case", **where}}
    try:
        api.create(body, dry_run=True)
    except ApiError as error:
        found = {rule for rule in CATALOG.rules if f"{rule}:" in str(error)}
        assert found, error
        return found
    return set()


def failed(case: Object) -> set[str]:
    """The rules that fail it, of those that the API server asks."""
    group, _, version = case["apiVersion"].rpartition("/")
    token = f"kubernetes:{group or 'core'}/{version}:{case['kind']}"
    resource = Resource(token, "case", "case", props={"metadata": {"name": "case"}, **case})
    asked = [CATALOG.rules[one.rule] for one in expressions(SETTINGS)]
    return {one.rule.id for one in evaluate(Stack([resource], SETTINGS), asked) if one.result == "fail"}


@pytest.mark.parametrize("case", CASES)
def test_the_api_server_and_the_rules_agree(api: KubernetesApi, policed: str, case: str) -> None:
    found, expected = refused(api, CASES[case], policed), failed(CASES[case])
    # The API server names the first policy that refuses; one it names has to be one that fails.
    assert bool(found) == bool(expected), (found, expected)
    assert found <= expected


def test_a_container_for_debugging_is_asked_about(api: KubernetesApi, policed: str) -> None:
    pod = api.create({**a_pod(), "metadata": {"name": "debugged", "namespace": policed}})
    debugger = {"name": "look", "image": IMAGE, **PRIVILEGED}
    pod["spec"]["ephemeralContainers"] = [debugger]
    del pod["metadata"]["resourceVersion"]  # the scheduler changes it meanwhile
    with pytest.raises(ApiError, match="MLS-K8S-01"):
        api.replace(pod, subresource="ephemeralcontainers")


def test_the_system_and_what_goes_are_left_alone(api: KubernetesApi, policed: str) -> None:
    body = {**a_pod(**PRIVILEGED), "metadata": {"name": "agent", "namespace": "kube-system"}}
    assert api.create(body, dry_run=True)["kind"] == "Pod"


def test_the_api_server_finds_no_fault_in_the_expressions(api: KubernetesApi, policed: str) -> None:
    """It checks their types in its own time, for each kind that they are about."""
    del policed
    for body in manifests(SETTINGS)[::2]:
        name = body["metadata"]["name"]

        def checked(name: str = name) -> Any:
            found = api.get("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy", name)
            return found if "typeChecking" in found.get("status", {}) else None

        assert not eventually(checked, name)["status"]["typeChecking"].get("expressionWarnings")
