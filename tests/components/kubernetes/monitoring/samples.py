"""Metrics as the parts of a cluster export them, over two hours: what dashboards are asked on.

Names and labels are those of the exporters' sources: Kueue 0.19.2 (held against pkg/metrics/metrics.go by
`test_metric_names.py`), kube-state-metrics 2.20 (docs/metrics), DCGM exporter 4.8.2
(etc/dcp-metrics-included.csv), the kubelet and cAdvisor of Kubernetes 1.35, node exporter 1.12, Prometheus
3.14, Alertmanager 0.34, and the ledger's.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from tests.components.kubernetes.monitoring.series_cases import with_job

STEP_S, SAMPLES = 60, 120
_TEAM = 'namespace="team-vision"'
_POD = f'{_TEAM}, pod="train-0"'
_GPU = f'{_POD}, container="main", gpu="0", UUID="GPU-1", node="n1"'
_QUEUE = 'cluster_queue="team-vision", replica_role="leader"'
_QUOTA = f'cohort="trainstack", flavor="a100", resource="nvidia.com/gpu", {_QUEUE}'
_OF_CLUSTER = f'cohort="trainstack", flavor="usw2-h100", resource="nvidia.com/gpu", {_QUEUE}'
_CLAIM = f'{_TEAM}, persistentvolumeclaim="home", node="n1"'
_COST = 'team="team-vision", project="none", pool="a100"'
_COST_THERE = 'team="team-vision", project="none", pool="usw2-h100"'
_WORKLOAD = f'{_TEAM}, queue="default", active="true"'

# Value at the beginning, and what a minute adds to it.
GAUGES = {
    f'kueue_pending_workloads{{{_QUEUE}, status="active"}}': 3,
    f"kueue_admitted_active_workloads{{{_QUEUE}}}": 2,
    f"kueue_cluster_queue_resource_usage{{{_QUOTA}}}": 8,
    f"kueue_cluster_queue_nominal_quota{{{_QUOTA}}}": 16,
    f'kueue_cluster_queue_resource_pending{{{_QUEUE}, resource="nvidia.com/gpu"}}': 24,
    'up{job="kueue", pod="kueue-0"}': 1,
    'up{job="gpu-ledger", pod="ledger-0"}': 1,
    'up{job="kube-state-metrics"}': 1,
    f"DCGM_FI_DEV_GPU_UTIL{{{_GPU}}}": 87,
    f"DCGM_FI_PROF_GR_ENGINE_ACTIVE{{{_GPU}}}": 0.87,
    f"DCGM_FI_DEV_POWER_USAGE{{{_GPU}}}": 391,
    f"DCGM_FI_DEV_FB_USED{{{_GPU}}}": 30000,
    f"DCGM_FI_DEV_FB_FREE{{{_GPU}}}": 10000,
    f"DCGM_FI_PROF_PIPE_TENSOR_ACTIVE{{{_GPU}}}": 0.42,
    f'DCGM_EXP_XID_ERRORS_COUNT{{{_GPU}, xid="79", window_size_in_ms="300000"}}': 1,
    f'kube_pod_container_resource_requests{{{_POD}, container="main", resource="cpu", unit="core"}}': 4,
    'kube_node_labels{node="n1", label_trainstack_dev_pool="a100"}': 1,
    'kube_node_status_capacity{node="n1", resource="nvidia_com_gpu", unit="integer"}': 8,
    'kube_node_status_condition{node="n1", condition="DiskPressure", status="true"}': 0,
    'kube_deployment_status_replicas_available{namespace="mlflow", deployment="mlflow"}': 2,
    'kube_job_status_failed{namespace="trainstack-smoke", job_name="smoke-schedule-a100-1", reason=""}': 1,
    f"kubelet_volume_stats_available_bytes{{{_CLAIM}}}": 4e9,
    f"kubelet_volume_stats_capacity_bytes{{{_CLAIM}}}": 1e10,
    f"kubelet_volume_stats_used_bytes{{{_CLAIM}}}": 6e9,
    'node_filesystem_avail_bytes{instance="10.0.0.1:9100", mountpoint="/", fstype="xfs"}': 4e10,
    'node_filesystem_size_bytes{instance="10.0.0.1:9100", mountpoint="/", fstype="xfs"}': 1e11,
    'container_memory_working_set_bytes{namespace="monitoring", pod="a-0", container="a"}': 9e8,
    "prometheus_tsdb_head_series": 61000,
    'trainstack_cluster_lost{cluster="usw2"}': 0,
    f"kueue_cluster_queue_resource_usage{{{_OF_CLUSTER}}}": 8,
    f"kueue_cluster_queue_nominal_quota{{{_OF_CLUSTER}}}": 16,
    'trainstack_budget_used_ratio{team="team-vision"}': 0.62,
}
_RDMA = 'instance="10.0.0.1:9100", device="rdmap16s27", port="1"'
COUNTERS = {
    f'trainstack_rdma_hw_total{{{_RDMA}, counter="rdma_write_bytes"}}': 1e12,
    f'trainstack_rdma_hw_total{{{_RDMA}, counter="rx_drops"}}': 0.1,
    f'kueue_evicted_workloads_total{{{_QUEUE}, reason="Preempted", underlying_cause=""}}': 0.1,
    f"DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL{{{_GPU}}}": 6000,
    f'container_cpu_usage_seconds_total{{{_POD}, container="main"}}': 150,
    f'container_fs_reads_bytes_total{{{_POD}, container="main"}}': 1e9,
    'node_network_receive_bytes_total{instance="10.0.0.1:9100", device="eth0"}': 1e9,
    'alertmanager_notifications_total{integration="sns"}': 0.1,
    'alertmanager_notifications_failed_total{integration="sns", reason="other"}': 0.01,
    f"trainstack_gpu_cost_usd_total{{{_COST}}}": 2.9,
    f"trainstack_gpu_cost_usd_total{{{_COST_THERE}}}": 2.9,
    f'trainstack_gpu_hours_total{{{_COST_THERE}, state="held"}}': 0.13,
    f'trainstack_gpu_hours_total{{{_COST}, state="held"}}': 0.13,
}
HISTOGRAMS = {
    "kueue_admission_wait_time_seconds": f'{_QUEUE}, priority_class="default"',
    "kueue_admitted_until_ready_wait_time_seconds": f'{_QUEUE}, priority_class="default"',
}
# Of these the value is a time: seconds before the end.
TIMES = {
    f'kueue_workload_created_seconds{{{_WORKLOAD}, workload="waits", priority="production"}}': 600,
    f'kueue_workload_created_seconds{{{_WORKLOAD}, workload="new"}}': 200,
    f'kueue_workload_finished_seconds{{{_WORKLOAD}, workload="a", reason="Succeeded"}}': 600,
    f'kueue_workload_finished_seconds{{{_WORKLOAD}, workload="b", reason="Failed"}}': 600,
}


@dataclass(frozen=True)
class Series:
    """A series with its value at the beginning, and what each step adds."""

    name: str
    start: float
    step: float = 0


def every_series(end_s: int) -> Iterator[Series]:
    """All of them, when the last sample is of that second, each with the job of its exporter."""
    yield from (Series(with_job(name), value) for name, value in GAUGES.items())
    yield from (Series(with_job(name), end_s - ago) for name, ago in TIMES.items())
    yield from (Series(with_job(name), 5, step) for name, step in COUNTERS.items())
    for name, labels in HISTOGRAMS.items():
        for index, bound in enumerate(("60", "1280", "40960", "+Inf")):
            yield Series(with_job(f'{name}_bucket{{{labels}, le="{bound}"}}'), 0, index / 10)


def openmetrics(end_s: int) -> str:
    """The samples as `promtool tsdb create-blocks-from openmetrics` reads them: types are left open."""
    lines = []
    for series in sorted(every_series(end_s), key=lambda one: one.name):
        compact = series.name.replace(", ", ",")
        for step in range(SAMPLES):
            at = end_s - (SAMPLES - 1 - step) * STEP_S
            lines.append(f"{compact} {series.start + step * series.step} {at}")
    return "\n".join((*lines, "# EOF", ""))
