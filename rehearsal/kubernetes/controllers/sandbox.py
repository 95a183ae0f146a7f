"""Preparation of pods: node, volumes, names, identity."""

import threading
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from pathlib import Path

from rehearsal.dataplane import folders
from rehearsal.dataplane.aws import images
from rehearsal.kubernetes.clusters import KubeCluster
from rehearsal.kubernetes.controllers.nodes import may_grow, nodes
from rehearsal.kubernetes.controllers.services import Services
from rehearsal.kubernetes.controllers.volumes import Account, Volumes
from rehearsal.kubernetes.gcp.identity import may_use
from rehearsal.workloads.pod import PodHost
from rehearsal.workloads.rewriting import LocalNames
from rehearsal.workloads.scheduling import place, requests
from rehearsal.workloads.translate import Object, Pod, Surroundings
from rehearsal.workloads.waiting import WaitingError

# Bucket types and their URI schemes.
_BUCKETS = {
    "aws:s3/bucket:Bucket": "s3",
    "aws:s3/bucketV2:BucketV2": "s3",
    "gcp:storage/bucket:Bucket": "gs",
}
# Database types and their outputs with addresses.
_DATABASES = {
    "aws:rds/cluster:Cluster": ("endpoint", "readerEndpoint"),
    "gcp:sql/databaseInstance:DatabaseInstance": ("privateIpAddress", "firstIpAddress", "dnsName"),
}
Identity = Callable[[KubeCluster, Pod, Path], Mapping[str, str]]


class Sandbox:
    """Prepares the pods of one cluster."""

    def __init__(
        self, cluster: KubeCluster, home: Path, services: Services, identity: Identity, account: Account
    ) -> None:
        self._cluster, self._home, self._services, self._identity = cluster, home, services, identity
        self._volumes = Volumes(cluster, home, account)
        self._placed: dict[str, tuple[str, Pod]] = {}
        self._lock = threading.Lock()

    def prepare(self, pod: Pod, container: Object) -> Surroundings:
        """See `workloads.pod.Node`."""
        account = pod.service_account
        if not self._cluster.exists("ServiceAccount", pod.namespace, account):
            raise WaitingError(
                "FailedCreate",
                f'pods "{pod.name}" is forbidden: error looking up service account '
                f"{pod.namespace}/{account}: "
                f'serviceaccount "{account}" not found',
            )
        node = self.node_of(pod)
        images.pulled(self._cluster.state, container.get("image"))
        folder = self._home / "pods" / pod.namespace / pod.name
        for name in ("home", "tmp"):
            (folder / name).mkdir(parents=True, exist_ok=True)
        buckets = self._buckets(pod)
        paths, files = self._volumes.mount(pod, container, folder, buckets)
        message_path = str(container.get("terminationMessagePath") or "/dev/termination-log")
        return Surroundings(
            names=LocalNames(
                namespace=pod.namespace,
                paths={**paths, message_path: folder / f"{container['name']}.termination"},
                hosts=self._services.hosts(),
                buckets=buckets,
                databases=self._databases(pod),
                reserve=self._services.reserved,
            ),
            lookup=lambda kind, name: self.lookup(kind, pod.namespace, name),
            folder=folder,
            injected={**self._identity(self._cluster, pod, folder), **missing_hardware(container)},
            config_files=files,
            node=node,
        )

    def forget(self, pod: Pod) -> None:
        """Free a pod's place on its node."""
        with self._lock:
            self._placed.pop(pod.uid, None)

    def growth(self, pods: Iterable[Pod]) -> str:
        """A warning when these pods need nodes that no autoscaler would add, empty otherwise."""
        found = nodes(self._cluster)
        used: dict[str, dict[str, Decimal]] = {}
        neighbours: dict[str, list[Mapping[str, str]]] = {}
        for pod in pods:
            node, _ = place(pod.spec, found, used, neighbours)
            if node is None:
                return ""
            if not node.running and not may_grow(self._cluster):
                return (
                    f"node group {node.group} has to grow beyond its desired size for these pods, and no "
                    "cluster autoscaler is installed: on the real cluster they would stay Pending"
                )
            _add(used.setdefault(node.name, {}), requests(pod.spec))
            neighbours.setdefault(node.name, []).append(pod.labels)
        return ""

    def node_of(self, pod: Pod) -> str:
        """The node of a pod, chosen on first use. Raises WaitingError when none fits."""
        with self._lock:
            if pod.uid in self._placed:
                return self._placed[pod.uid][0]
            used: dict[str, dict[str, Decimal]] = {}
            neighbours: dict[str, list[Mapping[str, str]]] = {}
            for name, other in self._placed.values():
                _add(used.setdefault(name, {}), requests(other.spec))
                neighbours.setdefault(name, []).append(other.labels)
            node, message = place(pod.spec, nodes(self._cluster), used, neighbours)
            if node is None:
                raise WaitingError("Unschedulable", message)
            self._placed[pod.uid] = (node.name, pod)
            return node.name

    def lookup(self, kind: str, namespace: str, name: str) -> Object | None:
        """Inputs of an object of the cluster, with its kind; None when there is none."""
        record = self._cluster.get(kind, namespace, name)
        return None if record is None else {**record.inputs, "kind": kind}

    def _buckets(self, pod: Pod) -> dict[str, Path]:
        found = {}
        for token, scheme in _BUCKETS.items():
            for record in self._cluster.state.find(type=token):
                name = str(record.outputs.get("bucket") or record.id)
                folder = folders.bucket(self._home, name, scheme)
                folder.mkdir(parents=True, exist_ok=True)
                may = scheme != "gs" or may_use(self._cluster, pod, record)
                found[f"{scheme}://{name}"] = folder if may else folders.denied(self._home, name, scheme)
        return found

    def _databases(self, pod: Pod) -> dict[str, Path]:
        found = {}
        for token, names in _DATABASES.items():
            for record in self._cluster.state.find(type=token):
                folder = folders.database(self._home, record.id)
                folder.mkdir(parents=True, exist_ok=True)
                addresses = [str(record.outputs[name]) for name in names if record.outputs.get(name)]
                found.update(dict.fromkeys(addresses, folder))
                if _has_proxy(pod, str(record.outputs.get("connectionName") or "")):
                    found.update(dict.fromkeys(("localhost", "127.0.0.1"), folder))
        return found


def _has_proxy(pod: Pod, connection: str) -> bool:
    """Return whether a container of the pod is a Cloud SQL Auth Proxy of an instance."""
    containers = (*(pod.spec.get("containers") or ()), *(pod.spec.get("initContainers") or ()))
    arguments = (
        str(word) for one in containers for word in (*(one.get("command") or ()), *(one.get("args") or ()))
    )
    return bool(connection) and any(connection in word.partition("?")[0].split(",") for word in arguments)


class Admitted:
    """Host for the pods of one object; `refused` is the reason why admission refuses them all."""

    def __init__(self, node: PodHost, refused: Callable[[], str]) -> None:
        self._node, self._refused = node, refused
        self._made: set[str] = set()

    def prepare(self, pod: Pod, container: Object) -> Surroundings:
        """See `workloads.pod.Node`."""
        if pod.uid not in self._made and (reason := self._refused()):
            raise WaitingError("FailedCreate", reason)
        self._made.add(pod.uid)
        return self._node.prepare(pod, container)


def missing_hardware(container: Object) -> Mapping[str, str]:
    """Makes a validation treat its node as one without GPUs, although the pod got some.

    It then runs on the CPU, and its result records that GPUs were not validated.
    """
    asked = (container.get("resources") or {}).get("limits") or {}
    emulated = "nvidia.com/gpu" in asked and not Path("/dev/nvidia0").exists()
    return {"SMOKE_DEVICE": "cpu"} if emulated else {}


def _add(total: dict[str, Decimal], more: Mapping[str, Decimal]) -> None:
    for name, amount in more.items():
        total[name] = total.get(name, Decimal(0)) + amount
