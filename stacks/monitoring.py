"""Monitoring in the cluster of a stack, with the alert receivers of its cloud."""

from components.kubernetes.monitoring.routes import RouteArgs
from components.kubernetes.monitoring.scrapes import own_exporter
from components.kubernetes.monitoring.stack import Monitoring, MonitoringArgs
from infra.naming import team_namespace
from infra.stackspec import StackSpec
from infra.stackspec.layouts import InClusterMonitoring
from stacks.parts import Alerting, Cluster, Pools, Tracking


def monitored(
    spec: StackSpec,
    wanted: InClusterMonitoring,
    *,
    cluster: Cluster,
    pools: Pools,
    tracking: Tracking,
    alerting: Alerting,
) -> Monitoring:
    """Declare the monitoring. No other part depends on it."""
    routes: list[RouteArgs] = [
        {"name": name, "namespace": team_namespace(name), "receiver": receiver}
        for name, receiver in alerting.teams.items()
    ]
    args: MonitoringArgs = {
        "retention_days": wanted.retention_days,
        "storage_gib": wanted.storage_gib,
        "platform": alerting.platform,
        "teams": routes,
        "agents": tracking.grants["agents"],
        "image": tracking.image,
        "alert_log": alerting.from_log,
    }
    if any(pool.offer["gpus"] for pool in pools.by_name.values()):
        args["gpu_exporter"] = alerting.gpu_exporter or own_exporter()
    if any("fabric" in pool.offer for pool in pools.by_name.values()):
        args["rdma"] = True
    return Monitoring(f"{spec.name}-monitoring", args, cluster.after(*alerting.ready))
