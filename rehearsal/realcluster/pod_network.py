"""Addresses of pods and Services on this machine, and DNS names."""

import ipaddress
from collections.abc import Callable, Iterable
from dataclasses import replace

from rehearsal.controlplane.api import Object
from rehearsal.core.model import Record
from rehearsal.core.state import State
from rehearsal.kubernetes.clusters import KubeCluster
from rehearsal.kubernetes.controllers.services import SUFFIX, Services
from rehearsal.realcluster.cluster import RealCluster
from rehearsal.workloads.addresses import Addresses
from rehearsal.workloads.pod import PodRunner
from rehearsal.workloads.proxy import Proxy
from rehearsal.workloads.rewriting import Host
from rehearsal.workloads.translate import Pod

_SLOT = "node-agent"
# The API server refuses loopback addresses of endpoints (apis/core/validation: ValidateNonSpecialIP), so
# 127.64.0.0/10, where pods listen, is reported as 10.64.0.0/10.
_SHOWN = int(ipaddress.ip_address("10.0.0.0")) - int(ipaddress.ip_address("127.0.0.0"))


def shown_address(address: str) -> str:
    """Reported address of a pod for its local address."""
    return str(ipaddress.ip_address(int(ipaddress.ip_address(address)) + _SHOWN))


class EmulatedPodNetwork:
    """Assigns addresses to pods; serves Services at theirs."""

    def __init__(
        self, state: State, cluster: Callable[[], RealCluster], pods: Callable[[], Iterable[PodRunner]]
    ) -> None:
        self._cluster, self._pods = cluster, pods
        self._addresses, self._proxy = Addresses(state), Proxy()
        self._open: dict[str, Record] = {}

    def services(self) -> Services:
        """The current Services of the cluster."""
        return _Services(self._cluster(), self._addresses, self._proxy, self._pods)

    def urls(self, pod: Pod) -> list[str]:
        """Last known URLs of a pod's Services, without a request."""
        cluster = replace(self._cluster(), services=tuple(self._open.values()))
        return Services(cluster, self._addresses, self._proxy, self._pods).urls(pod)

    def address(self, body: Object) -> str:
        """Address of a pod; a pod with a DNS name has it before it exists."""
        return self._addresses.of(_slot(self._cluster(), body))

    def release(self, body: Object) -> None:
        """Release the address of a deleted pod."""
        self._addresses.release(_slot(self._cluster(), body))

    def sync(self) -> None:
        """Serve exactly the existing Services; assign addresses to load balancers, as a cloud does."""
        cluster, services = self._cluster(), self.services()
        present = {record.id: record for record in cluster.objects("Service")}
        for gone in self._open.keys() - present.keys():
            services.close(gone)
            del self._open[gone]
        for name, record in present.items():
            spec = record.inputs["spec"]
            before = self._open.get(name)
            if before is None or before.inputs["spec"] != spec:
                services.open(record)
            self._open[name] = record
            balanced = ((record.inputs.get("status") or {}).get("loadBalancer") or {}).get("ingress")
            if spec.get("type") == "LoadBalancer" and not balanced:
                self._balance(cluster, record.inputs)

    def stop(self) -> None:
        """Close everything."""
        self._proxy.stop()

    def _balance(self, cluster: RealCluster, service: Object) -> None:
        """Assign an address to a load balancer: one for documentation (RFC 5737, RFC 6761), not reachable."""
        metadata = service["metadata"]
        digits = metadata["uid"].replace("-", "")
        row = (
            {"hostname": f"a{digits[:31]}.elb.amazonaws.com"}
            if cluster.on_aws
            else {"ip": f"203.0.113.{1 + int(digits[:4], 16) % 254}"}
        )
        patch = {"status": {"loadBalancer": {"ingress": [row]}}}
        cluster.api.patch(
            "v1", "Service", metadata["name"], patch, metadata["namespace"], subresource="status"
        )


class _Services(Services):
    """Services that resolve names of pods before the pods exist."""

    def reserved(self, name: str) -> Host | None:
        """See `Services`; also `hostname.service.namespace`."""
        host, _, rest = name.removesuffix(SUFFIX).partition(".")
        service, _, namespace = rest.partition(".")
        if namespace and "." not in namespace and self.cluster.get("Service", namespace, service):
            return Host(self.addresses.of(_named_slot(self.cluster, namespace, service, host)))
        return super().reserved(name)


def _slot(cluster: RealCluster, body: Object) -> str:
    metadata, spec = body["metadata"], body["spec"]
    if spec.get("subdomain"):
        return _named_slot(
            cluster, metadata["namespace"], spec["subdomain"], spec.get("hostname") or metadata["name"]
        )
    return f"{_SLOT}|{metadata['uid']}|"


def _named_slot(cluster: KubeCluster, namespace: str, service: str, host: str) -> str:
    return f"{_SLOT}|{cluster.scope}|{namespace}/{service}/{host}|"
