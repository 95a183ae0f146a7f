"""Time windows of pools, for their queues and the agent that enforces them."""

from datetime import UTC, datetime

import pulumi

from components.kubernetes.capacity.args import WindowArgs
from components.kubernetes.capacity.capacity_windows import CapacityWindows
from components.kubernetes.queueing.queues import Queueing
from infra.stackspec import StackSpec
from infra.stackspec.layouts import PoolSpec
from infra.stackspec.purchases import CapacityBlock
from stacks.parts import Cluster, Pools, Tracking


def window_of(pool: PoolSpec, drain_minutes: int) -> WindowArgs | None:
    """The window of a pool; None: always available. Jobs leave a block `drain_minutes` before its end."""
    window: WindowArgs = {}
    bought = pool.purchase
    if isinstance(bought, CapacityBlock) and bought.starts is not None and bought.ends is not None:
        window["block"] = {
            "starts": _utc(bought.starts),
            "ends": _utc(bought.ends),
            "drain_minutes": drain_minutes,
        }
    if pool.hours is not None:
        window["hours"] = {
            "days": list(pool.hours.days),
            "start": pool.hours.start,
            "hours": pool.hours.hours,
            "classes": list(pool.hours.classes),
        }
    return window or None


def capacity_windows(
    spec: StackSpec, *, cluster: Cluster, pools: Pools, queueing: Queueing, tracking: Tracking
) -> list[pulumi.Resource]:
    """The agent that enforces windows of pools, which jobs wait for; empty without windows."""
    windows = {name: pool.flavor["window"] for name, pool in pools.by_name.items() if "window" in pool.flavor}
    if not windows:
        return []
    opts = cluster.after(queueing)
    return [CapacityWindows(f"{spec.name}-capacity", {"windows": windows, "image": tracking.image}, opts)]


def _utc(moment: str) -> str:
    return f"{datetime.fromisoformat(moment).astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"
