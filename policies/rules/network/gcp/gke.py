"""Networks between nodes of GKE."""

from collections.abc import Iterator
from typing import Any

from policies import facts
from policies.catalog import CATALOG, NotApplicableError, Violation
from policies.resource import Resource
from policies.rules.accelerators import GkePool, pools_of
from policies.rules.pools import GKE_CLUSTER, NODE_POOL
from policies.stack import Stack


@CATALOG.rule_around(
    "MLS-NET-10",
    "medium",
    (NODE_POOL, GKE_CLUSTER),
    "Nodes reach their bandwidth with gVNIC only; without compact placement they are anywhere in a zone.",
    "Set nodeConfig.gvnic.enabled, and placementPolicy.type to COMPACT.",
)
def gpu_nodes_are_close(source: Resource, stack: Stack) -> Iterator[Violation]:
    """A GKE pool of several nodes with several GPUs each has gVNIC and compact placement."""
    pools = [pool for pool in pools_of(source, stack) if isinstance(pool, GkePool)]
    reasons = []
    for pool in pools:
        try:
            yield from _far(pool)
        except NotApplicableError as error:
            reasons.append(error)
    if len(reasons) == len(pools):
        raise reasons[0]


def _far(pool: GkePool) -> Iterator[Violation]:
    if _gpus(pool.props) < 2:
        raise NotApplicableError("its nodes have no two GPUs")
    if _most_nodes(pool.props) < 2:
        raise NotApplicableError("it has at most one node")
    config = pool.props.get("nodeConfig") or {}
    if (config.get("gvnic") or {}).get("enabled") is not True:
        yield Violation("its nodes have no gVNIC", f"{pool.prefix}nodeConfig.gvnic.enabled")
    if (pool.props.get("placementPolicy") or {}).get("type") != "COMPACT":
        other = _placed_by(pool.props, config)
        if other:
            raise NotApplicableError(other)
        yield Violation("its nodes are placed anywhere", f"{pool.prefix}placementPolicy.type")


def _placed_by(props: Any, config: Any) -> str:
    """Reason why GKE accepts no compact placement; empty if it does.

    GoogleCloudPlatform/cluster-toolkit@10470803 modules/compute/gke-node-pool (placement_policy).
    """
    queued = (props.get("queuedProvisioning") or {}).get("enabled") is True
    if queued or config.get("flexStart") is True:
        return "nodes of Dynamic Workload Scheduler take no compact placement"
    reserved = (config.get("reservationAffinity") or {}).get("consumeReservationType")
    return "its nodes are where their reservation is" if reserved == "SPECIFIC_RESERVATION" else ""


def _gpus(props: Any) -> int:
    """GPUs of one node: attached ones, or those of the machine type."""
    config = props.get("nodeConfig") or {}
    attached = sum(int(one.get("count") or 0) for one in config.get("guestAccelerators") or ())
    return attached or facts.gke_gpus(str(config.get("machineType"))) or 0


def _most_nodes(props: Any) -> int:
    """The maximum size over all its zones; of one that does not scale, its size."""
    scaling = props.get("autoscaling") or {}
    zones = max(1, len(props.get("nodeLocations") or ()))
    if scaling:
        return int(scaling.get("totalMaxNodeCount") or zones * int(scaling.get("maxNodeCount") or 0))
    return zones * int(props.get("nodeCount") or props.get("initialNodeCount") or 0)
