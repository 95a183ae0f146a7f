"""Services: addresses, selected pods, DNS names."""

import itertools
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from rehearsal.core.model import Record
from rehearsal.kubernetes.clusters import KubeCluster, namespace_of
from rehearsal.workloads.addresses import Addresses
from rehearsal.workloads.pod import PodRunner
from rehearsal.workloads.proxy import PRIVILEGED, Choose, Proxy
from rehearsal.workloads.rewriting import Host
from rehearsal.workloads.translate import Object, Pod

SUFFIX = ".svc.cluster.local"


class Services:
    """The Services of one cluster; `pods` returns the current pods.

    A Service has an address even before it exists, so that an earlier pod can get its address.
    """

    def __init__(
        self,
        cluster: KubeCluster,
        addresses: Addresses,
        proxy: Proxy,
        pods: Callable[[], Iterable[PodRunner]],
    ) -> None:
        self.cluster, self.addresses, self._proxy, self._pods = cluster, addresses, proxy, pods
        self._turn = itertools.count()
        self._lock = threading.Lock()

    def open(self, record: Record) -> None:
        """Serve a Service at its address."""
        spec = record.inputs.get("spec") or {}
        proxied = spec.get("selector") and spec.get("clusterIP") != "None"
        rows = spec.get("ports") or () if proxied else ()
        ports = {
            int(row["port"]): self._chooser(record, row)
            for row in rows
            if row.get("protocol") in (None, "TCP")
        }
        self._proxy.open(self.address(record.id), ports)

    def close(self, id: str) -> None:
        """Close a deleted Service and release its address."""
        self._proxy.open(self.address(id), {})
        self.addresses.release(f"{self.cluster.scope}|service|{id}|")

    def urls(self, pod: Pod) -> list[str]:
        """URLs of a pod's Services."""
        found: list[str] = []
        for record in self.cluster.objects("Service", pod.namespace):
            spec = record.inputs.get("spec") or {}
            if spec.get("clusterIP") != "None" and selected(spec, pod):
                address = self.address(record.id)
                ports = (int(row["port"]) for row in spec.get("ports") or ())
                found.extend(f"http://{address}:{PRIVILEGED.get(port, port)}" for port in ports)
        return found

    def hosts(self) -> dict[str, Host]:
        """Every DNS name that resolves now."""
        pods = list(self._pods())
        found: dict[str, Host] = {}
        for record in self.cluster.objects("Service"):
            namespace, spec = namespace_of(record.outputs), record.inputs.get("spec") or {}
            members = [r for r in pods if r.pod.namespace == namespace and selected(spec, r.pod)]
            full = f"{record.name}.{namespace}{SUFFIX}"
            headless = spec.get("clusterIP") == "None"
            if headless and members:
                found[full] = Host(max(members, key=lambda runner: runner.state.ready).pod.ip)
            elif not headless:
                found[full] = Host(self.address(record.id), PRIVILEGED)
            for runner in members:
                if runner.pod.spec.get("subdomain") == record.name:
                    found[f"{runner.pod.hostname}.{full}"] = Host(runner.pod.ip)
        return found

    def reserved(self, name: str) -> Host | None:
        """Address of a Service that may not exist yet, by its fully qualified name."""
        service, _, namespace = name.removesuffix(SUFFIX).partition(".")
        if "." in namespace or not self.cluster.exists("Namespace", "", namespace):
            return None
        if self.cluster.get("Service", namespace, service) is not None:
            return None  # headless without pods
        return Host(self.address(f"{namespace}/{service}"), PRIVILEGED)

    def address(self, id: str) -> str:
        """The address of a Service, by its namespace and name."""
        return self.addresses.of(f"{self.cluster.scope}|service|{id}|")

    def _chooser(self, record: Record, row: Object) -> Choose:
        namespace, spec = namespace_of(record.outputs), record.inputs.get("spec") or {}

        def choose() -> tuple[str, int] | None:
            ready = [
                runner.pod
                for runner in self._pods()
                if runner.state.ready and runner.pod.namespace == namespace and selected(spec, runner.pod)
            ]
            if not ready:
                return None
            with self._lock:
                pod = ready[next(self._turn) % len(ready)]
            return pod.ip, target_port(row, pod)

        return choose


def selected(spec: Object, pod: Pod) -> bool:
    """Return whether a Service selects a pod."""
    selector: dict[str, Any] = spec.get("selector") or {}
    return bool(selector) and selector.items() <= dict(pod.labels).items()


def target_port(row: Object, pod: Pod) -> int:
    """Target port of a Service's port in a pod."""
    target = row.get("targetPort") or row["port"]
    for name, number in _named_ports(pod):
        if name == target:
            return number
    return int(target)


def _named_ports(pod: Pod) -> Iterator[tuple[str | None, int]]:
    for container in pod.spec.get("containers") or ():
        for port in container.get("ports") or ():
            yield port.get("name"), int(port["containerPort"])
