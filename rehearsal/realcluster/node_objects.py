"""Node objects of the emulated node groups."""

from decimal import Decimal

from rehearsal.controlplane.api import Object
from rehearsal.kubernetes.aws.nodes import EFA
from rehearsal.workloads.controllers import timestamp
from rehearsal.workloads.scheduling import SchedulerNode

# Capacity of a machine that is not in the catalog.
_UNKNOWN = {"cpu": Decimal(1024), "memory": Decimal(2**43)}
# Nodes with EFA reserve 5128 pages of 2 MiB at boot.
# source: docs.aws.amazon.com/eks/latest/userguide/node-efa.html, read 2026-07
_HUGE_PAGES = Decimal(5128 * 2**21)
_PODS = Decimal(110)


def node_object(node: SchedulerNode) -> Object:
    """A ready node, as its kubelet would register it."""
    amounts = {"pods": _PODS, **(node.capacity or _UNKNOWN), **node.extended}
    if node.extended.get(EFA):
        amounts["hugepages-2Mi"] = _HUGE_PAGES
    stated = {name: str(int(amount)) for name, amount in amounts.items()}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": node.name, "labels": {"kubernetes.io/arch": "amd64", **node.labels}},
        "spec": {
            "taints": [
                {"key": taint.key, "effect": taint.effect, **({"value": taint.value} if taint.value else {})}
                for taint in node.taints
            ]
        },
        "status": {
            "capacity": stated,
            "allocatable": stated,
            "addresses": [{"type": "Hostname", "address": node.name}],
            "conditions": [_ready()],
        },
    }


def _ready() -> Object:
    now = timestamp()
    condition = {"reason": "KubeletReady", "message": "the rehearsal's node agent is ready"}
    return {
        "type": "Ready",
        "status": "True",
        "lastHeartbeatTime": now,
        "lastTransitionTime": now,
        **condition,
    }
