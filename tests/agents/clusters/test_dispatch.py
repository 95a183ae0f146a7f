"""Decisions about jobs of a manager."""

from typing import Any

import pytest

from agents.clusters.dispatch import CHECK, LOST_TAINT, Nominated, Returned, decide, taints

CLUSTERS = {"east-l4": "east", "west-l4": "west", "west-cpu": "west"}


def workload(*parts: tuple[str, int], state: str = "Pending", **more: Any) -> dict[str, Any]:
    """A Workload with quota; `parts`: flavor and GPUs of each."""
    assigned = [
        {"flavors": {"cpu": flavor}, "resourceUsage": {"cpu": "1", "nvidia.com/gpu": str(gpus)}}
        for flavor, gpus in parts
    ]
    conditions = [{"type": "QuotaReserved", "status": "True"}]
    checks = [{"name": CHECK, "state": state}]
    admission = {"podSetAssignments": assigned}
    status = {"conditions": conditions, "admissionChecks": checks, "admission": admission}
    return {"status": {**status, **more}}


@pytest.mark.parametrize(
    ("given", "decision"),
    [
        (workload(("east-l4", 1)), Nominated("east")),
        # A launcher without GPUs goes where the others are, whatever comes first.
        (workload(("west-cpu", 0), ("east-l4", 8)), Nominated("east")),
        (workload(("east-l4", 1), nominatedClusterNames=["east"]), None),
        # Quota moved to another cluster before a worker admitted the job.
        (workload(("east-l4", 1), nominatedClusterNames=["west"]), Nominated("east")),
        (workload(("east-l4", 1), clusterName="east"), None),
        (workload(("east-l4", 1), state="Ready"), None),
        (workload(("west-l4", 1)), Returned("cluster west cannot be reached")),
        (workload(("other", 1)), None),
        (workload(("east-l4", 1), conditions=[{"type": "QuotaReserved", "status": "False"}]), None),
        ({}, None),
    ],
)
def test_a_job_goes_to_the_cluster_of_its_quota(given: dict[str, Any], decision: object) -> None:
    assert decide(given, CLUSTERS, {"west"}) == decision


def test_flavors_of_a_lost_cluster_get_a_taint_and_lose_it_again() -> None:
    own = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}
    closed = {"spec": {"nodeTaints": [own, LOST_TAINT]}}
    assert taints({"spec": {"nodeTaints": [own]}}, lost=True) == [own, LOST_TAINT]
    assert taints(closed, lost=False) == [own]
    assert taints(closed, lost=True) is None
    assert taints({"spec": {}}, lost=False) is None
