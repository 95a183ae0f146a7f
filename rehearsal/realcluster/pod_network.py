"""Addresses of pods and Services on this machine, and the names that lead to them."""

import ipaddress
from collections.abc import Callable, Iterable
from dataclasses import replace

from rehearsal.controlplane.api import Object
from rehearsal.core.model import Record
from rehearsal.core.state import State
from rehearsal.kubernetes.controllers.services import SUFFIX, Services
from rehearsal.realcluster.cluster import RealCluster
from rehearsal.workloads.addresses import Addresses
from rehearsal.workloads.pod import PodRunner
from rehearsal.workloads.proxy import Proxy
from rehearsal.workloads.rewriting import Host
from rehearsal.workloads.translate import Pod

_SLOT = "node-agent"
# The API server takes no loopback address as that of an endpoint (apis/core/validation:
# ValidateNonSpecialIP), so 127.64.0.0/10, where pods really listen, is reported as 10.64.0.0/10.
_SHOWN = int(ipaddress.ip_address("10.0.0.0")) - int(ipaddress.ip_address("127.0.0.0"))


def shown_address(address: str) -> str:
    """The address of a pod in the cluster, for its address on this machine."""
    return str(ipaddress.ip_address(int(ipaddress.ip_address(address)) + _SHOWN))


class EmulatedPodNetwork:
    """Keeps who has which address; lets Services answer at theirs."""

    def __init__(
        self, state: State, cluster: Callable[[], RealCluster], pods: Callable[[], Iterable[PodRunner]]
    ) -> None:
        self._cluster, self._pods = cluster, pods
        self._addresses, self._proxy = Addresses(state), Proxy()
        self._open: dict[str, Record] = {}

    def services(self) -> Services:
        """The Services of the cluster as it is now."""
        return _Services(self._cluster(), self._addresses, self._proxy, self._pods)

    def urls(self, pod: Pod) -> list[str]:
        """Where the Services of a pod answered when they were last looked at; asks nobody."""
        cluster = replace(self._cluster(), services=tuple(self._open.values()))
        return Services(cluster, self._addresses, self._proxy, self._pods).urls(pod)

    def address(self, body: Object) -> str:
        """The address of a pod; one with a name of its own in DNS has it before it exists."""
        return self._addresses.of(_slot(body))

    def release(self, body: Object) -> None:
        """Give back the address of a pod that is gone."""
        self._addresses.release(_slot(body))

    def sync(self) -> None:
        """Let every Service answer, and no other; give load balancers an address, as a cloud would."""
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
        """What the cloud's controller does. Addresses of documentation (RFC 5737, RFC 6761) lead nowhere."""
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
    """Services in whose names pods can be reached before they exist."""

    def reserved(self, name: str) -> Host | None:
        """See `Services`; also `hostname.service.namespace`."""
        host, _, rest = name.removesuffix(SUFFIX).partition(".")
        service, _, namespace = rest.partition(".")
        if namespace and "." not in namespace and self.cluster.get("Service", namespace, service):
            return Host(self.addresses.of(f"{_SLOT}|{namespace}/{service}/{host}|"))
        return super().reserved(name)


def _slot(body: Object) -> str:
    metadata, spec = body["metadata"], body["spec"]
    if spec.get("subdomain"):
        return (
            f"{_SLOT}|{metadata['namespace']}/{spec['subdomain']}/{spec.get('hostname') or metadata['name']}|"
        )
    return f"{_SLOT}|{metadata['uid']}|"
