"""Monitoring in the cluster of a stack, with the alert receivers of its cloud."""

from collections.abc import Iterator, Sequence
from typing import Literal

from components.kubernetes.monitoring.receivers import ReceiverArgs
from components.kubernetes.monitoring.routes import RouteArgs
from components.kubernetes.monitoring.scrapes import own_exporter
from components.kubernetes.monitoring.stack import Monitoring, MonitoringArgs
from components.kubernetes.tracking.pod import AgentArgs
from infra.catalog.kubernetes import prometheus
from infra.naming import team_namespace
from infra.stackspec import StackSpec
from infra.stackspec.layouts import ClusterLayout, InClusterMonitoring
from infra.stackspec.receivers import ReceiverSpec
from stacks.parts import Alerting, Cluster, Pools


def monitored(
    spec: StackSpec,
    layout: ClusterLayout,
    wanted: InClusterMonitoring,
    *,
    cluster: Cluster,
    pools: Pools,
    agents: Sequence[AgentArgs],
    image: str,
    alerting: Alerting,
    place: Literal["manager", "worker"] | None = None,
) -> Monitoring:
    """Declare the monitoring; `place` among several clusters. No other part depends on it."""
    routes: list[RouteArgs] = [
        {"name": name, "namespace": team_namespace(name), "receiver": receiver}
        for name, receiver in alerting.teams.items()
    ]
    series = prometheus.series(_nodes(layout, pools), len(spec.teams) + 2)
    memory = wanted.memory_gib or prometheus.memory_gib(series)
    args: MonitoringArgs = {
        "retention_days": wanted.retention_days,
        "storage_gib": wanted.storage_gib,
        "memory_gib": memory,
        "platform": alerting.platform,
        "teams": routes,
        "agents": agents,
        "image": image,
        "alert_log": alerting.from_log,
        "receivers": [_receiver(one) for one in wanted.receivers],
    }
    if place is not None:
        args["place"] = place
    if wanted.runbooks_url:
        args["runbooks_url"] = wanted.runbooks_url
    if any(pool.offer["gpus"] for pool in pools.by_name.values()):
        args["gpu_exporter"] = alerting.gpu_exporter or own_exporter()
    if any("fabric" in pool.offer for pool in pools.by_name.values()):
        args["rdma"] = True
    return Monitoring(f"{spec.name}-monitoring", args, cluster.after(*alerting.ready))


def _receiver(wanted: ReceiverSpec) -> ReceiverArgs:
    made: ReceiverArgs = {
        "name": wanted.name,
        "kind": wanted.kind,
        "key": wanted.key or wanted.name,
        "severities": wanted.severities,
        "europe": wanted.region == "eu",
    }
    if wanted.team is not None:
        made["team"] = {"name": wanted.team, "namespace": team_namespace(wanted.team)}
    return made


def _nodes(layout: ClusterLayout, pools: Pools) -> Iterator[prometheus.Nodes]:
    """All nodes of a stack, at the maximum of each pool."""
    yield prometheus.Nodes(layout.system_pool.max_nodes, prometheus.SYSTEM_CPUS)
    for pool in layout.pools:
        offer = pools.by_name[pool.name].offer
        devices = offer["fabric"]["count"] if "fabric" in offer else 0
        yield prometheus.Nodes(pool.max_nodes, offer["cpu"], offer["gpus"], devices)
