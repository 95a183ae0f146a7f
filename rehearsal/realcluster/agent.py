"""Node agent: registers the nodes of the emulated groups and runs the pods scheduled to them.

Pods that the rehearsal can run become processes of this machine; for the others only a status is reported:
pods that run once have succeeded, all others run.
"""

import contextlib
import logging
import shutil
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import requests

from rehearsal.controlplane.api import STRATEGIC, ApiError, KubernetesApi, Object
from rehearsal.core.state import State
from rehearsal.kubernetes.clusters import KubeCluster
from rehearsal.kubernetes.controllers.kubelet import described
from rehearsal.kubernetes.controllers.nodes import nodes
from rehearsal.kubernetes.controllers.sandbox import Identity, Sandbox
from rehearsal.realcluster.cluster import RealCluster, current
from rehearsal.realcluster.node_objects import node_object
from rehearsal.realcluster.pod_network import EmulatedPodNetwork, shown_address
from rehearsal.workloads.controllers import timestamp
from rehearsal.workloads.faults import inject_faults
from rehearsal.workloads.job import share
from rehearsal.workloads.job_rules import JobSpec
from rehearsal.workloads.pod import PodRunner, PodState
from rehearsal.workloads.pod_status import lost_status, pod_status
from rehearsal.workloads.translate import Pod, Surroundings
from rehearsal.workloads.waiting import WaitingError

_LOG = logging.getLogger("rehearsal")
# Poll interval of the node groups; everything else arrives by watches.
_LOOK_S = 1.0
_WATCH_S = 60.0
_AGAIN_S = 0.3
# Tokens are created once and must outlive the rehearsal.
_TOKEN_S = 24 * 3600
_ENDED = ("Succeeded", "Failed")


class _Placed(Sandbox):
    """A sandbox whose pods were placed by the scheduler; reads from the API server."""

    def prepare(self, pod: Pod, container: Mapping[str, Any]) -> Surroundings:
        """See `workloads.pod.Node`."""
        with _waiting():
            return super().prepare(pod, container)

    def lookup(self, kind: str, namespace: str, name: str) -> Mapping[str, Any] | None:
        """See `Sandbox`."""
        with _waiting():
            return super().lookup(kind, namespace, name)

    def node_of(self, pod: Pod) -> str:
        """See `Sandbox`."""
        return pod.node


@contextlib.contextmanager
def _waiting() -> Iterator[None]:
    """Let a pod wait while the API server refuses: after its start, rights are not yet loaded."""
    try:
        yield
    except ApiError as error:
        raise WaitingError("FailedMount", str(error)) from error


@dataclass
class _Running:
    """A pod of this agent: its object, its runner, and the last reported state."""

    body: Object
    runner: PodRunner
    started: str
    reported: PodState | None = None
    ending: bool = False


class Agent:
    """The kubelets and the kube-proxy of all nodes of one control plane."""

    def __init__(self, state: State, home: Path, api: KubernetesApi, identity: Identity, scope: str) -> None:
        self._state, self._home, self._api, self._identity = state, home, api, identity
        self._scope = scope
        self._pods: dict[str, _Running] = {}
        self._registered: dict[str, Object] = {}
        self._nodes: frozenset[str] = frozenset()
        self._lock = threading.RLock()
        self._changed, self._stopping = threading.Event(), threading.Event()
        self._network = EmulatedPodNetwork(state, self._cluster, lambda: [one.runner for one in self._all()])

    def start(self) -> None:
        """Start the threads."""
        for work in (self._keep_nodes, self._watch_pods, self._watch_services, self._report):
            threading.Thread(target=self._repeat, args=(work,), name=work.__name__, daemon=True).start()

    def stop(self) -> None:
        """End every process."""
        self._stopping.set()
        self._changed.set()
        runners = [one.runner for one in self._all()]
        for runner in runners:
            runner.stop(now=True)
        for runner in runners:
            runner.join(10.0)
        self._network.stop()

    def describe(self) -> list[dict[str, Any]]:
        """Every pod of this agent, as a row of `status`."""
        rows, cluster = [], self._cluster().name
        for one in self._all():
            urls = self._network.urls(one.runner.pod) if one.runner.state.run else []
            rows.append({"cluster": cluster, **described(*_owner(one.body), one.runner, urls)})
        return rows

    # -- threads ---------------------------------------------------------------------------------------

    def _repeat(self, work: Callable[[], None]) -> None:
        """Repeat work until stopped; errors of the API server are retried."""
        while not self._stopping.is_set():
            try:
                work()
            except (ApiError, requests.RequestException, ValueError) as error:
                if not self._stopping.wait(_AGAIN_S):
                    _LOG.info("%s is repeated: %s", work.__name__, error)

    def _keep_nodes(self) -> None:
        """Register the nodes that the groups may grow to, and delete those of removed groups."""
        wanted = {node.name: node_object(node) for node in nodes(self._cluster())}
        # Before registration: the scheduler may bind a pod at once.
        self._nodes = frozenset(wanted)
        for name, body in wanted.items():
            if _asked(body) != _asked(self._registered.get(name)):
                self._register(body)
                self._registered[name] = body
        for name in self._registered.keys() - wanted.keys():
            self._api.delete("v1", "Node", name)
            for one in self._all():
                if one.body["spec"]["nodeName"] == name:
                    self._delete(one.body)
            del self._registered[name]
        self._stopping.wait(_LOOK_S)

    def _register(self, body: Object) -> None:
        name = body["metadata"]["name"]
        try:
            self._api.create(body)
        except ApiError as error:
            if error.reason != "AlreadyExists":
                raise
            self._api.patch("v1", "Node", name, {part: body[part] for part in ("metadata", "spec")})
            self._api.patch("v1", "Node", name, {"status": body["status"]}, subresource="status")

    def _watch_pods(self) -> None:
        present = {body["metadata"]["uid"] for body in self._api.list("v1", "Pod")}
        for one in self._all():
            if one.body["metadata"]["uid"] not in present:
                self._forget(one.body)
        for event, body in self._api.watch("v1", "Pod", timeout_s=_WATCH_S):
            if self._stopping.is_set():
                return
            if event == "DELETED":
                self._forget(body)
            elif body["spec"].get("nodeName") in self._nodes:
                self._see(body)

    def _watch_services(self) -> None:
        self._network.sync()
        for _event, _body in self._api.watch("v1", "Service", timeout_s=_WATCH_S):
            if self._stopping.is_set():
                return
            self._network.sync()

    def _report(self) -> None:
        self._changed.wait()
        self._changed.clear()
        refused: Exception | None = None
        for one in self._all():
            state = one.runner.state
            if state == one.reported or one.ending:
                continue
            try:
                shown = shown_address(one.runner.pod.ip)
                status = pod_status(one.body["spec"]["containers"], state, one.started)
                self._patch_status(one.body, {**status, "podIP": shown, "podIPs": [{"ip": shown}]})
            except (ApiError, requests.RequestException) as error:
                if not (isinstance(error, ApiError) and error.code == 404):
                    refused = error
                    continue
            one.reported = state
        if refused:
            self._changed.set()
            raise refused

    # -- pods ------------------------------------------------------------------------------------------

    def _see(self, body: Object) -> None:
        """Handle a pod that was bound to one of our nodes, or has changed."""
        uid, phase = body["metadata"]["uid"], (body.get("status") or {}).get("phase")
        with self._lock:
            known = self._pods.get(uid)
        if body["metadata"].get("deletionTimestamp"):
            if known is None:
                self._delete(body)
            elif not known.ending:
                known.ending = True
                threading.Thread(target=self._end, args=(known,), daemon=True).start()
        elif known is None and phase not in _ENDED:
            if phase == "Running" and body["spec"]["restartPolicy"] != "Always":
                self._patch_status(body, lost_status(body["spec"]["containers"]))
            else:
                self._run(body)

    def _run(self, body: Object) -> None:
        metadata, spec = body["metadata"], body["spec"]
        pod = Pod(
            namespace=metadata["namespace"],
            name=metadata["name"],
            uid=metadata["uid"],
            ip=self._network.address(body),
            spec=spec,
            labels=metadata.get("labels") or {},
            annotations=metadata.get("annotations") or {},
            node=spec["nodeName"],
        )
        cluster = self._cluster()
        services = self._network.services()
        sandbox = _Placed(cluster, self._home, services, self._identity, self._account)
        log = self._home / "logs" / pod.namespace / f"{pod.name}.log"
        kind, owner = _owner(body)
        job = self._api.find("batch/v1", "Job", owner, pod.namespace) if kind == "Job" else None
        index = int(pod.annotations.get("batch.kubernetes.io/job-completion-index", 0))
        runner = PodRunner(
            pod, sandbox, log, restart=spec.get("restartPolicy") or "Always",
            cpus=share(JobSpec.parse(job["spec"]), index) if job else (), on_change=self._changed.set,
        )  # fmt: skip
        with self._lock:
            self._pods[pod.uid] = _Running(body, runner, timestamp())
        runner.start()
        inject_faults(runner, self._home)

    def _end(self, one: _Running) -> None:
        """End a pod that is being deleted, then remove its object."""
        runner = one.runner
        runner.stop(now=one.body["metadata"].get("deletionGracePeriodSeconds") == 0)
        if not runner.join(8.0):
            runner.stop(now=True)
            runner.join(2.0)
        with contextlib.suppress(ApiError, requests.RequestException):  # retried by the next watch
            self._delete(one.body)

    def _forget(self, body: Object) -> None:
        with self._lock:
            one = self._pods.pop(body["metadata"]["uid"], None)
        if one is None:
            return
        one.runner.stop(now=True)
        self._network.release(body)
        pod = one.runner.pod
        shutil.rmtree(self._home / "pods" / pod.namespace / pod.name, ignore_errors=True)

    def _account(self, cluster: KubeCluster, pod: Pod) -> Mapping[str, bytes]:
        """Files of a pod's service account; its token is bound to the pod."""
        metadata = {"name": pod.name, "uid": pod.uid}
        token = self._api.token(pod.namespace, pod.service_account, seconds=_TOKEN_S, pod=metadata)
        return {"token": token.encode(), "ca.crt": self._api.access.authority.read_bytes()}

    # -- the API server --------------------------------------------------------------------------------

    def _delete(self, body: Object) -> None:
        metadata = body["metadata"]
        now = {"gracePeriodSeconds": 0, "preconditions": {"uid": metadata["uid"]}}
        url = self._api.resource("v1", "Pod").url(metadata["namespace"], metadata["name"])
        try:
            self._api.request("DELETE", url, now)
        except ApiError as error:
            if error.code not in (404, 409):  # deleted, or replaced by one of the same name
                raise

    def _patch_status(self, body: Object, status: Object) -> None:
        metadata = body["metadata"]
        patch = {"metadata": {"uid": metadata["uid"]}, "status": status}
        self._api.patch(
            "v1", "Pod", metadata["name"], patch, metadata["namespace"],
            subresource="status", content=STRATEGIC,
        )  # fmt: skip

    def _cluster(self) -> RealCluster:
        return current(self._state, self._api, self._scope)

    def _all(self) -> list[_Running]:
        with self._lock:
            return list(self._pods.values())


def _asked(body: Object | None) -> tuple[Object, ...]:
    """The parts of a node that come from its group, without times."""
    return (body["metadata"], body["spec"], body["status"]["capacity"]) if body else ()


def _owner(body: Object) -> tuple[str, str]:
    metadata = body["metadata"]
    owner = next(iter(metadata.get("ownerReferences") or ()), {"kind": "Pod", "name": metadata["name"]})
    stem, _, suffix = owner["name"].rpartition("-")
    if owner["kind"] == "ReplicaSet" and suffix == (metadata.get("labels") or {}).get("pod-template-hash"):
        return "Deployment", stem
    return owner["kind"], owner["name"]
