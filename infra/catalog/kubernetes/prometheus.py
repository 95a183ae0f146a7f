"""Size of Prometheus from the nodes of a stack: series by exporter, and the memory that they need."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import ceil

from infra.errors import Problem

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
# Six series of a Workload that waits or runs, and one of each finished one, which Kueue keeps for a week
# (components `workload_metrics`, `kueue_values`): of a queue, and of one team with all finished jobs that its
# quota of objects allows (`tenancy`).
_WORKLOADS, _MOST_FINISHED = 6 * 500 + 2_000, 30_000
# Kueue for a queue, and all that does not grow: Prometheus, Alertmanager, the operator, Grafana, the ledger.
_QUEUE, _FIXED = 400, 12_000
# Memory of one series, for queries, for series that come and go, and for reading the log at a start:
# prometheus/prometheus#4553 has 8 KiB as its rule, without queries, for 1.5 million series in 10 GB; #17888
# took more than 80 GB for 7.6 million. And the least with which it runs: 3 KiB from release 2.20 on
# (robustperception.io/why-does-prometheus-use-so-much-ram); 3.16 took 2 (docs/explanation/monitoring.md).
_SERIES_KIB, _LEAST_SERIES_KIB = 8, 3
# Memory of the process itself.
_PROCESS_MIB = 512
_LEAST_GIB = 2
# Processors of a system node: its machine is not in the catalog of every cloud, and it is small.
SYSTEM_CPUS = 8
# Memory of a node that Prometheus cannot use: of kernel, kubelet and the stack's programs on every node.
_BESIDE_GIB = 3


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
    of_queues = queues * (_QUEUE + _WORKLOADS)
    return _FIXED + pods + _MOST_FINISHED + of_queues + sum(pool.count * pool.series for pool in pools)


def memory_gib(expected: int, series_kib: int = _SERIES_KIB) -> int:
    """Memory limit of Prometheus for a number of series, in GiB."""
    return max(_LEAST_GIB, ceil((_PROCESS_MIB + expected * series_kib / 1024) / 1024))


def memory_problems(path: str, wanted: int, expected: int) -> Iterator[Problem]:
    """The limit that was set is not below the least that was measured; the estimate is higher."""
    least = memory_gib(expected, _LEAST_SERIES_KIB)
    if wanted < least:
        rule = f"the {expected:,} series of all nodes and teams need at least {least} GiB"
        fix = f"Set {memory_gib(expected)}, or leave it out. A measured figure may be as low as {least}."
        yield Problem(path, wanted, rule, fix, code="prometheus-memory-too-small")


def node_problems(path: str, machine: str, machine_gib: float, *, limit_gib: int) -> Iterator[Problem]:
    """Prometheus runs on a system node, within the node's memory."""
    if limit_gib + _BESIDE_GIB > machine_gib:
        rule = f"Prometheus may take {limit_gib} GiB, and {machine} has {machine_gib:g} GiB for all its pods"
        fix = f"Use a machine with at least {limit_gib + _BESIDE_GIB} GiB, or lower `max_nodes` of the pools."
        yield Problem(path, machine, rule, fix, code="system-node-too-small")


def cpus_for_jobs(vcpu: int) -> int:
    """Processors of a node that pods of jobs can use, at least."""
    return max(0, vcpu * 9 // 10 - 1)
