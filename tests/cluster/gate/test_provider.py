"""`pulumi up` with the unmodified provider ends at the gate as it should, with the reason in its error."""

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pulumi
import pulumi_kubernetes as k8s
import pytest
from pulumi import automation

from components.kubernetes.queueing import kueue
from components.kubernetes.validation import watcher
from components.kubernetes.validation.args import SmokeTestArgs
from components.kubernetes.validation.gate import SmokeTest
from components.kubernetes.validation.smoke_home import SmokeHome
from rehearsal.controlplane.api import KubernetesApi, Object
from rehearsal.controlplane.control_plane import ControlPlane
from rehearsal.controlplane.nodes import KwokPool, add_nodes
from tests.cluster.gate.conftest import QUEUE, SMOKE
from tests.cluster.programs import finished, started
from tests.cluster.provider.real import needs_provider, stacks

pytestmark = needs_provider


class Kubelet(threading.Thread):
    """Runs the pods of the watcher as processes; all others are KWOK's."""

    def __init__(self, plane: ControlPlane, folder: Path) -> None:
        super().__init__(daemon=True)
        self._plane, self._folder, self.over = plane, folder, threading.Event()

    def run(self) -> None:
        done: set[str] = set()
        with self._plane.api() as api:
            while not self.over.wait(0.2):
                for pod in api.list("v1", "Pod", watcher.NAMESPACE):
                    if pod["metadata"]["uid"] not in done and pod["status"].get("phase") == "Running":
                        done.add(pod["metadata"]["uid"])
                        self._run(api, pod)

    def _run(self, api: KubernetesApi, pod: Object) -> None:
        (container,) = pod["spec"]["containers"]
        words = container["args"]
        given: dict[str, object] = {
            key.removeprefix("--"): word for key, word in zip(words[::2], words[1::2], strict=True)
        }
        given["message"] = self._folder / "message"
        token = api.token(watcher.NAMESPACE, watcher.NAME)
        process = started(watcher.PROGRAM, given, api.access, token, self._folder)
        code, message = finished(process, self._folder, 600)
        ended = {"exitCode": code, "reason": "Error" if code else "Completed", "message": message}
        state = {"name": container["name"], "image": container["image"], "imageID": "", "ready": False}
        names = "containers with unready status: [waits]"
        ready = {"type": "Ready", "status": "False", "reason": "PodFailed", "message": names}
        status = {
            "phase": "Failed" if code else "Succeeded",
            "conditions": [*(row for row in pod["status"]["conditions"] if row["type"] != "Ready"), ready],
            "containerStatuses": [{**state, "restartCount": 0, "state": {"terminated": ended}}],
        }
        name = pod["metadata"]["name"]
        api.patch("v1", "Pod", name, {"status": status}, watcher.NAMESPACE, subresource="status")


@pytest.fixture
def kubelet(plane: ControlPlane, api: KubernetesApi, tmp_path: Path, queues: None) -> Iterator[None]:
    """A node for the platform's pods, and what runs the watcher there."""
    add_nodes(api, [KwokPool("gate-platform", "g4dn.xlarge", 1)])
    runs = Kubelet(plane, tmp_path)
    runs.start()
    yield
    runs.over.set()
    runs.join()
    api.delete("v1", "Node", "gate-platform-0")


def deployed(plane: ControlPlane, folder: Path, smoke: SmokeTestArgs, pods: dict[str, str]) -> Any:
    """A stack of the gate alone; `pods` are the annotations by which the fake pods of training live."""
    kubeconfig = plane.kubeconfig.read_text()

    def program() -> None:
        def live(args: pulumi.ResourceTransformArgs) -> pulumi.ResourceTransformResult | None:
            spec: Any = args.props.get("spec") or {}
            if not args.type_.endswith(":Job") or spec.get("completionMode") != "Indexed":
                return None
            template = dict(spec["template"])
            metadata = dict(template.get("metadata") or {})
            metadata["annotations"] = {f"trainstack.dev/{key}": value for key, value in pods.items()}
            changed = {**spec, "template": {**template, "metadata": metadata}}
            return pulumi.ResourceTransformResult({**args.props, "spec": changed}, args.opts)

        cluster = k8s.Provider("cluster", kubeconfig=kubeconfig)
        inside = pulumi.ResourceOptions(provider=cluster, transforms=[live])
        home = SmokeHome("gate", {"namespace": smoke["namespace"]}, inside)
        SmokeTest("gate", {**smoke, "namespace": home.namespace}, inside)

    return stacks(folder)(program)


def outcome(
    plane: ControlPlane, folder: Path, smoke: SmokeTestArgs, pods: dict[str, str]
) -> tuple[str, float]:
    """The engine's error of a failed `up`, empty for a successful one, and its duration in seconds."""
    stack, said, began = deployed(plane, folder / "state", smoke, pods), "", time.monotonic()
    try:
        stack.up(on_output=lambda _: None)
    except automation.CommandError as error:
        said = str(error)
    took = time.monotonic() - began
    stack.destroy(on_output=lambda _: None)
    return said, took


def test_a_validation_that_fails_fails_the_up_at_once(
    plane: ControlPlane, tmp_path: Path, kubelet: None
) -> None:
    pods = {"seconds": "1s", "exit-code": "1", "message": "FAIL: rank 1 is slow"}
    said, took = outcome(plane, tmp_path, SMOKE, pods)
    assert "[BackoffLimitExceeded]" in said
    assert "FAIL: rank 1 is slow" in said
    assert took < 60


def test_a_validation_that_stays_in_its_queue_ends_the_up_at_its_time_out(
    plane: ControlPlane, api: KubernetesApi, tmp_path: Path, kubelet: None
) -> None:
    hold: Object = {"spec": {"stopPolicy": "Hold"}}
    api.patch(kueue.API_VERSION, "ClusterQueue", QUEUE, hold)
    said, took = outcome(plane, tmp_path, {**SMOKE, "queue_timeout_s": 5}, {})
    assert "5 s" in said and "suspended" in said
    assert took < 60


def test_a_validation_that_passes_lets_the_up_pass(
    plane: ControlPlane, tmp_path: Path, kubelet: None
) -> None:
    assert outcome(plane, tmp_path, SMOKE, {"seconds": "1s", "message": "PASS"})[0] == ""
