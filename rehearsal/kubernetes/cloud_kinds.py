"""Custom kinds that clusters of GKE serve without a chart or CustomResourceDefinition.

Sources: GKE documentation, "Set up multi-network support for Pods" (Network, GKENetworkParamSet, with
`enableMultiNetworking`), "Deploy GPUs for batch workloads with Dynamic Workload Scheduler"
(ProvisioningRequest), "Get started with managed collection" (PodMonitoring), "About custom ComputeClasses".
"""

from collections.abc import Iterator, Mapping
from typing import Any

from rehearsal.kubernetes.charts import Crd

_NETWORKS = (
    Crd("networking.gke.io", "Network", "networks", ("v1",), namespaced=False),
    Crd("networking.gke.io", "GKENetworkParamSet", "gkenetworkparamsets", ("v1",), namespaced=False),
)
_REQUESTS = Crd("autoscaling.x-k8s.io", "ProvisioningRequest", "provisioningrequests", ("v1",), True)
_CLASSES = Crd("cloud.google.com", "ComputeClass", "computeclasses", ("v1",), namespaced=False)
_MONITORING = Crd("monitoring.googleapis.com", "PodMonitoring", "podmonitorings", ("v1",), namespaced=True)


def brought(outputs: Mapping[str, Any]) -> Iterator[Crd]:
    """Custom kinds of a cluster, by its properties."""
    yield from (_REQUESTS, _CLASSES)
    if outputs.get("enableMultiNetworking") is True:
        yield from _NETWORKS
    prometheus = (outputs.get("monitoringConfig") or {}).get("managedPrometheus") or {}
    if prometheus.get("enabled") is True:
        yield _MONITORING
