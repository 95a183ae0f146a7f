"""Detection of allocated but unused GPUs."""

from components.kubernetes.idle.idle_gpus import IdleGpus
from components.kubernetes.monitoring.names import PROMETHEUS_URL
from components.kubernetes.queueing.queues import Queueing
from infra.checkpoints import checkpoints
from infra.naming import team_namespace
from infra.stackspec import StackSpec
from infra.stackspec.layouts import ClusterLayout
from stacks.parts import Cluster, Tracking


def idle_gpus(
    spec: StackSpec, layout: ClusterLayout, cluster: Cluster, queueing: Queueing, tracking: Tracking
) -> None:
    """Declare the detection of idle GPUs, if enabled."""
    wanted = layout.idle_gpus
    if wanted is None:
        return
    IdleGpus(
        f"{spec.name}-idle",
        {
            # Rules of the spec require monitoring. Without a response, nothing is stopped.
            "prometheus": PROMETHEUS_URL,
            "namespaces": [team_namespace(team.name) for team in spec.teams],
            "interactive_pools": [pool.name for pool in layout.pools if pool.purpose == "interactive"],
            "minutes": wanted.minutes,
            "grace_minutes": wanted.grace_minutes,
            "jobs": wanted.jobs,
            "interval_s": checkpoints(spec).interval_s,
            "image": tracking.image,
        },
        # The namespaces of teams are created with the queues.
        cluster.after(queueing),
    )
