"""Pods of networks with a daemon on a real API server: as the stack renders them, and modified."""

import copy
import uuid
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, cast

import pytest

from components.kubernetes.queueing import node_access
from components.kubernetes.queueing.admission import policies
from components.kubernetes.queueing.kueue_values import MANAGED, MANAGED_LABEL
from components.kubernetes.queueing.quotas import FlavorArgs
from infra.launchers import kubernetes
from infra.launchers.gcp import gke
from infra.launchers.runplan import RunPlan
from rehearsal.controlplane.api import ApiError, KubernetesApi, Object
from tests.cluster.waiting import eventually, gone
from tests.infra.launchers import plans

HIGH, MEGA = [f"high-{index}" for index in range(4)], [f"mega-{index}" for index in range(8)]
FLAVORS = [cast(FlavorArgs, {"name": "x", "pod": needs}) for needs in (gke.tcpx(HIGH), gke.tcpxo(MEGA))]
OWN = (node_access.NAME, node_access.SHELLS)
Spoil = Callable[[dict[str, Any]], object]


def pod(plan: RunPlan) -> dict[str, Any]:
    _, job = kubernetes.job(plan)
    return cast("dict[str, Any]", copy.deepcopy(job["spec"]["template"]["spec"]))


@pytest.fixture(scope="module")
def fenced(api: KubernetesApi) -> Iterator[str]:
    name = f"test-{uuid.uuid4().hex[:8]}"
    labels = {"pod-security.kubernetes.io/enforce": "privileged", "fenced": name}
    api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}})
    api.create(
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "training", "namespace": name}}
    )
    made = []
    for body in policies(FLAVORS_OF_QUEUES, []):
        if body["metadata"]["name"] in OWN:
            text = copy.deepcopy(body)
            if "matchConstraints" in text["spec"]:
                # Of this namespace alone, which Kueue leaves to itself.
                selector = text["spec"]["matchConstraints"]["namespaceSelector"]
                assert selector == {"matchLabels": {MANAGED_LABEL: MANAGED}}
                selector["matchLabels"] = {"fenced": name}
            made.append(api.create(text))
    spoiled = pod(plans.tcpxo())
    spoiled["hostNetwork"] = True
    eventually(partial(_refused, api, name, spoiled), "the policy holds")
    yield name
    for body in reversed(made):
        api.delete(body["apiVersion"], body["kind"], body["metadata"]["name"])
    api.delete("v1", "Namespace", name)
    gone(api, made)


FLAVORS_OF_QUEUES = [cast(FlavorArgs, {**flavor, "gpus": 8}) for flavor in FLAVORS]


def said(api: KubernetesApi, namespace: str, spec: dict[str, Any]) -> str:
    spec["serviceAccountName"] = "training"
    body: Object = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "case", "namespace": namespace},
        "spec": spec,
    }
    try:
        api.create(body, dry_run=True)
    except ApiError as error:
        assert node_access.NAME in str(error), error
        return str(error)
    return ""


def _refused(api: KubernetesApi, namespace: str, spec: dict[str, Any]) -> bool:
    return bool(said(api, namespace, spec))


@pytest.mark.parametrize(
    "plan", [plans.tcpx(), plans.tcpxo(), plans.gib_networks(), plans.training(), plans.cpu()]
)
def test_pods_as_the_launchers_render_them_are_let_in(plan: RunPlan, api: KubernetesApi, fenced: str) -> None:
    assert said(api, fenced, pod(plan)) == ""


def daemon(spec: dict[str, Any]) -> dict[str, Any]:
    """The only container beside the run that does not end: another one waits for the plugin before it."""
    beside = (one for one in spec["initContainers"] if one.get("restartPolicy") == "Always")
    return cast("dict[str, Any]", next(beside))


def without_daemon(spec: dict[str, Any]) -> dict[str, Any]:
    """The daemon, taken out of the pod."""
    alone = daemon(spec)
    spec["initContainers"].remove(alone)
    return alone


def run(spec: dict[str, Any]) -> dict[str, Any]:
    return cast("dict[str, Any]", spec["containers"][0])


def of_node(path: str) -> Spoil:
    def spoil(spec: dict[str, Any]) -> None:
        spec["volumes"].append({"name": "more", "hostPath": {"path": path}})
        run(spec)["volumeMounts"].append({"name": "more", "mountPath": "/more"})

    return spoil


def ends_first(spec: dict[str, Any]) -> None:
    alone = daemon(spec)
    del alone["restartPolicy"], alone["startupProbe"]


def as_run(spec: dict[str, Any]) -> None:
    """The daemon alone: a shell without the name of a container would start in it."""
    alone = without_daemon(spec)
    spec["containers"] = [{key: value for key, value in alone.items() if key != "restartPolicy"}]


def over(path: str) -> Spoil:
    def spoil(spec: dict[str, Any]) -> None:
        spec["volumes"].append({"name": "more", "emptyDir": {}})
        daemon(spec)["volumeMounts"].append({"name": "more", "mountPath": path})

    return spoil


SPOILED: dict[str, Spoil] = {
    "network of the node": lambda spec: spec.update(hostNetwork=True),
    "processes of the node": lambda spec: spec.update(hostPID=True),
    "a privileged run": lambda spec: run(spec).update(securityContext={"privileged": True}),
    "a privileged daemon": lambda spec: daemon(spec).update(securityContext={"privileged": True}),
    "a capability for the run": lambda spec: run(spec).update(
        securityContext={"capabilities": {"add": ["NET_ADMIN"]}}
    ),
    "more capabilities for the daemon": lambda spec: daemon(spec)["securityContext"]["capabilities"][
        "add"
    ].append("SYS_ADMIN"),
    "the root of the node": of_node("/"),
    "the node's kernel settings for the run": of_node("/sys"),
    "the daemon's folder for the run": lambda spec: run(spec)["volumeMounts"].append(
        {"name": "node-sys", "mountPath": "/x"}
    ),
    "another command of the daemon": lambda spec: daemon(spec).update(command=["sh", "-c", "id"]),
    "arguments of the daemon": lambda spec: daemon(spec).update(args=["id"]),
    "another image by its name": lambda spec: daemon(spec).update(image="evil.example/x"),
    "its image by another name": lambda spec: daemon(spec).update(name="mine"),
    "a library for the daemon": lambda spec: daemon(spec)["env"].append(
        {"name": "LD_PRELOAD", "value": "/x.so"}
    ),
    "another folder of libraries": lambda spec: daemon(spec)["env"][0].update(value="/more"),
    "a program over the daemon's": over("/fts"),
    "a folder over the daemon's libraries": over("/usr/local/nvidia/lib64x"),
    "a command after its start": lambda spec: daemon(spec).update(
        lifecycle={"postStart": {"exec": {"command": ["id"]}}}
    ),
    "a command as a probe": lambda spec: daemon(spec).update(
        startupProbe={"exec": {"command": ["sh", "-c", "id"]}}
    ),
    "the daemon as the run": as_run,
    "the daemon beside the run": lambda spec: spec["containers"].append(without_daemon(spec)),
    "a daemon that ends before the run": ends_first,
    "processes shared with the daemon": lambda spec: spec.update(shareProcessNamespace=True),
    "a port of the node": lambda spec: run(spec).update(ports=[{"containerPort": 80, "hostPort": 80}]),
    "no seccomp": lambda spec: spec.update(securityContext={"seccompProfile": {"type": "Unconfined"}}),
    "a sysctl": lambda spec: spec.update(
        securityContext={"sysctls": [{"name": "kernel.msgmax", "value": "1"}]}
    ),
}


@pytest.mark.parametrize("case", sorted(SPOILED))
def test_nothing_else_reaches_the_node(case: str, api: KubernetesApi, fenced: str) -> None:
    spec = pod(plans.tcpxo())
    SPOILED[case](spec)
    assert said(api, fenced, spec)


def test_the_daemon_of_one_network_is_not_that_of_another(api: KubernetesApi, fenced: str) -> None:
    spec = pod(plans.tcpx())
    daemon(spec)["image"] = gke.TCPXO_DAEMON
    assert said(api, fenced, spec)


@pytest.mark.parametrize(
    ("container", "kept"), [("tcpxo-daemon", True), ("tcpx-daemon", True), ("", True), ("node", False)]
)
@pytest.mark.parametrize("door", ["exec", "attach"])
def test_a_shell_in_a_daemon_is_refused(
    door: str, container: str, kept: bool, api: KubernetesApi, fenced: str
) -> None:
    path = f"/api/v1/namespaces/{fenced}/pods/case/{door}"
    query = {"command": "sh", "stdout": "true", **({"container": container} if container else {})}
    with pytest.raises(ApiError) as refused:
        api.request("POST", path, query=query)
    # There is no such pod; who is refused is refused before anybody looks for it.
    assert (node_access.SHELLS in str(refused.value)) is kept


@pytest.mark.parametrize(
    ("debugger", "kept"),
    [
        ({"targetContainerName": "tcpxo-daemon"}, True),
        ({"image": gke.TCPXO_DAEMON}, True),
        ({"targetContainerName": "node"}, False),
    ],
)
def test_no_debugger_is_in_a_daemon(
    debugger: dict[str, str], kept: bool, api: KubernetesApi, fenced: str
) -> None:
    """Also by administrators: members have no right to add one."""
    body: Object = {
        "apiVersion": "v1", "kind": "Pod", "metadata": {"generateName": "debugged-", "namespace": fenced},
        "spec": {**pod(plans.tcpxo()), "serviceAccountName": "training", "nodeName": "none"},
    }  # fmt: skip
    made = api.create(body)["metadata"]["name"]
    change = {"spec": {"ephemeralContainers": [{"name": "debug", "image": "example.com/x:1", **debugger}]}}
    url = f"/api/v1/namespaces/{fenced}/pods/{made}/ephemeralcontainers"
    query, content = {"dryRun": "All"}, "application/strategic-merge-patch+json"
    try:
        api.request("PATCH", url, change, content=content, query=query)
        refused = False
    except ApiError as error:
        assert node_access.NAME in str(error), error
        refused = True
    api.request("DELETE", f"/api/v1/namespaces/{fenced}/pods/{made}", {"gracePeriodSeconds": 0})
    assert refused is kept
