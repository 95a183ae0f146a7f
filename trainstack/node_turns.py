"""Validation of every node of a pool in turns: groups of nodes, and suspect nodes (pure)."""

import copy
from collections.abc import Mapping, Sequence
from typing import Any

from smoke_training.verdict_record import records

Object = Mapping[str, Any]
Group = tuple[str, ...]

HOSTNAME = "kubernetes.io/hostname"
# Pods remain for a day, for diagnosis.
_KEPT_S = 24 * 3600


def groups(nodes: Sequence[str], size: int) -> list[Group]:
    """Groups of `size` nodes in which each node is, and each group shares a node with the next one.

    Overlapping groups distinguish the faulty one of two nodes that fail together.
    Raises ValueError when there are fewer nodes than a group needs.
    """
    if not 1 <= size <= len(nodes):
        raise ValueError(f"{len(nodes)} nodes make no group of {size}")
    if size == len(nodes):
        return [tuple(nodes)]
    ring = [*nodes, *nodes]
    return [tuple(ring[first : first + size]) for first in range(0, len(nodes), max(1, size - 1))]


def suspects(passed: Mapping[Group, bool]) -> list[str]:
    """The nodes that are only in groups that did not pass."""
    good = {node for group, well in passed.items() if well for node in group}
    return sorted({node for group, well in passed.items() if not well for node in group} - good)


def job(cron_job: Object, name: str, nodes: Group) -> dict[str, Any]:
    """A run of a scheduled validation at once, on exactly these nodes (by their label `HOSTNAME`).

    It is queued like scheduled runs: below all other work, on idle nodes.
    """
    template = copy.deepcopy(dict(cron_job["spec"]["jobTemplate"]))
    spec = template["spec"]
    affinity = spec["template"]["spec"]["affinity"]["nodeAffinity"]
    for term in affinity["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]:
        term["matchExpressions"] += [{"key": HOSTNAME, "operator": "In", "values": [*nodes]}]
    metadata = {**template["metadata"], "name": name, "namespace": cron_job["metadata"]["namespace"]}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": metadata,
        "spec": {**spec, "ttlSecondsAfterFinished": _KEPT_S},
    }


def ended(found: Object) -> bool | None:
    """Return whether a Job completed; None while it runs."""
    rows = found.get("status", {}).get("conditions") or ()
    kinds = {row["type"] for row in rows if row["status"] == "True"}
    return None if not kinds & {"Complete", "Failed"} else "Complete" in kinds


def begun(found: Object) -> bool:
    """Return whether all pods of a Job run or have run."""
    status = found.get("status", {})
    there = status.get("ready", 0) + status.get("succeeded", 0) + status.get("failed", 0)
    return bool(there >= found["spec"]["completions"])


def result_text(pods: Sequence[Object]) -> str:
    """The sentence of the first verdict that a pod left, else the first line of a termination message."""
    for pod in pods:
        for row in pod.get("status", {}).get("containerStatuses") or ():
            message = (row.get("state", {}).get("terminated") or {}).get("message") or ""
            if message.strip():
                return next((one.message for one in records(message)), message.strip().splitlines()[0])
    return "no termination message"
