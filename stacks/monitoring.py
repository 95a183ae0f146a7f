"""What watches a stack: the monitoring in its cluster, with the people that its cloud can tell."""

import pulumi

from components.kubernetes.monitoring.routes import RouteArgs
from components.kubernetes.monitoring.stack import Monitoring
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
    """Declare it. Nothing else waits for it: a stack trains also while nobody watches."""
    routes: list[RouteArgs] = [
        {"name": name, "namespace": team_namespace(name), "receiver": receiver}
        for name, receiver in alerting.teams.items()
    ]
    return Monitoring(
        f"{spec.name}-monitoring",
        {
            "retention_days": wanted.retention_days,
            "storage_gib": wanted.storage_gib,
            "platform": alerting.platform,
            "teams": routes,
            "agents": tracking.grants["agents"],
            "has_gpus": any(pool.offer["gpus"] for pool in pools.by_name.values()),
            "devices_managed": pools.devices_managed,
            "image": tracking.image,
            "alert_log": alerting.from_log,
        },
        pulumi.ResourceOptions.merge(cluster.inside, pulumi.ResourceOptions(depends_on=[*alerting.ready])),
    )
