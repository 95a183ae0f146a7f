"""Size of Prometheus from the nodes of a stack: series by exporter, and the memory that they need."""

from collections.abc import Iterable
from dataclasses import dataclass
from math import ceil

# Series of one node, beside those below: node exporter 1.12 without the collectors that `node_series` turns
# off, and the kubelet's own histograms (kubernetes pkg/kubelet/metrics).
_NODE, _KUBELET = 600, 800
# Modes of `node_cpu_seconds_total` that are kept, for each virtual processor.
CPU_MODES = ("idle", "iowait", "steal")
# node_network_* of one interface (node_exporter collector/netclass_linux.go, netdev_common.go), and counters
# of an RDMA device. Interfaces of pods are left out.
_INTERFACE, _INTERFACES = 40, 4
# cAdvisor for a container and its pod after the relabelings; kube-state-metrics for a pod and a node.
_CADVISOR, _STATE_POD, _STATE_NODE = 60, 45, 90
# Fields of `gpu_metrics` for a GPU, or for a part of one.
_GPU = 15
# Pods of the platform on every node, and pods of the platform that run once.
_DAEMONS, _PLATFORM_PODS = 10, 60
# Six series for each Workload that is kept (`workload_metrics`).
_WORKLOADS = 6 * 2_000
# Kueue for a queue, and all that does not grow: Prometheus, Alertmanager, the operator, Grafana, the ledger.
_QUEUE, _FIXED = 400, 12_000
# Memory of one series: four times what Prometheus 3.16 took (docs/explanation/monitoring.md), for queries,
# for series that come and go, and for reading the log at a start. And of the process itself.
_SERIES_KIB, _PROCESS_MIB = 8, 512
_LEAST_GIB = 2


@dataclass(frozen=True)
class Nodes:
    """Nodes of one pool, at its maximum."""

    count: int
    cpus: int
    """Virtual processors of a node."""
    gpus: int = 0
    """GPUs of a node, or parts of GPUs."""
    devices: int = 0
    """Devices of its fabric."""

    @property
    def pods(self) -> int:
        """Pods of a node: those of the platform, and a pod for each GPU or for eight processors."""
        return _DAEMONS + max(self.gpus, min(self.cpus // 8, 16))

    @property
    def series(self) -> int:
        """Series of one node and its pods."""
        of_node = _NODE + _KUBELET + _STATE_NODE + len(CPU_MODES) * self.cpus
        interfaces = (_INTERFACES + self.devices) * _INTERFACE
        return of_node + interfaces + _GPU * self.gpus + self.pods * (_CADVISOR + _STATE_POD)


def series(pools: Iterable[Nodes], queues: int) -> int:
    """Series of a stack with all nodes of its pools."""
    pods = _PLATFORM_PODS * (_CADVISOR + _STATE_POD)
    return _FIXED + pods + _WORKLOADS + queues * _QUEUE + sum(pool.count * pool.series for pool in pools)


def memory_gib(expected: int) -> int:
    """Memory limit of Prometheus for a number of series, in GiB."""
    return max(_LEAST_GIB, ceil((_PROCESS_MIB + expected * _SERIES_KIB / 1024) / 1024))
