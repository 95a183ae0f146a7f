"""Workloads as Kueue writes them, for tests of the book."""

from collections.abc import Mapping
from typing import Any

from agents.gpu_ledger.attempts import Seen, seen
from agents.shared.times import stamp

POOL, GPU = "a100", "nvidia.com/gpu"
DAY = 86_400
# 2026-11-25T00:00:00Z.
MIDNIGHT = 1_795_564_800


def workload(
    uid: str = "u1",
    *,
    admitted: int | None = None,
    released: int | None = None,
    finished: int | None = None,
    ready: int | None = None,
    unready: int | None = None,
    gpus: int = 8,
    pods: int = 1,
    done: int = 0,
    done_at: int | None = None,
    past: int = 0,
    limit: int | None = None,
    labels: Mapping[str, str] | None = None,
    created: int = MIDNIGHT,
) -> dict[str, Any]:
    """A Workload with these conditions; `gpus` are of all pods."""
    times = {
        ("Admitted", "True"): admitted, ("Admitted", "False"): released, ("Finished", "True"): finished,
        ("PodsReady", "True"): ready, ("PodsReady", "False"): unready,
    }  # fmt: skip
    conditions = [
        {"type": kind, "status": status, "lastTransitionTime": stamp(at)}
        for (kind, status), at in times.items()
        if at is not None
    ]
    usage = {"cpu": "4", GPU: str(gpus)} if gpus else {"cpu": "4"}
    flavors = dict.fromkeys(usage, POOL)
    assigned = [{"name": "main", "count": pods, "flavors": flavors, "resourceUsage": usage}]
    status: dict[str, Any] = {"conditions": conditions}
    if admitted is not None:
        status["admission"] = {"clusterQueue": "team-a", "podSetAssignments": assigned}
    if done:
        status["reclaimablePods"] = [{"name": "main", "count": done}]
    if past:
        status["accumulatedPastExecutionTimeSeconds"] = past
    requests = {GPU: str(gpus // pods)} if gpus else {}
    template = {"spec": {"containers": [{"resources": {"requests": requests}}]}}
    spec: dict[str, Any] = {"podSets": [{"name": "main", "count": pods, "template": template}]}
    if limit is not None:
        spec["maximumExecutionTimeSeconds"] = limit
    fields = [{"manager": "kueue-reclaimable-pods", "time": stamp(done_at)}] if done_at else []
    return {
        "metadata": {
            "uid": uid, "namespace": "team-a", "name": f"job-{uid}", "labels": dict(labels or {}),
            "creationTimestamp": stamp(created), "managedFields": fields,
        },
        "spec": spec,
        "status": status,
    }  # fmt: skip


def said(uid: str = "u1", **given: Any) -> Seen:
    """What such a Workload says."""
    found = seen(workload(uid, **given))
    assert found
    return found
