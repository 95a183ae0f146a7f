"""Jobs of clusters that leave a manager."""

from typing import Any

import pytest

from agents.clusters.dispatch import CHECK, RETRY
from agents.clusters.leaving import LEAVING_TAINT, moved, place_of, taints, wait

FLAVORS = {"east-l4": "east", "west-l4": "west", "cpu": ""}
NOW = "2026-11-30T10:00:00Z"


def workload(flavor: str = "", sent: str = "", state: str = "Ready", *true: str) -> dict[str, Any]:
    parts = [{"flavors": {"cpu": flavor}}] if flavor else []
    status: dict[str, Any] = {"conditions": [{"type": one, "status": "True"} for one in true]}
    status |= {"admissionChecks": [{"name": "gpu-budget", "state": "Ready"}, {"name": CHECK, "state": state}]}
    return {"status": {**status, "clusterName": sent, "admission": {"podSetAssignments": parts}}}


@pytest.mark.parametrize(
    ("given", "place"),
    [
        (workload("west-l4", "west"), "west"),
        # Quota, and not sent yet.
        (workload("west-l4", state="Pending"), "west"),
        # Sent, while its quota is given back.
        (workload("", "west"), "west"),
        (workload("east-l4", "east"), ""),
        (workload("cpu"), ""),
        (workload("west-l4", "west", "Ready", "Finished"), ""),
        ({}, ""),
    ],
)
def test_a_job_is_on_the_cluster_of_its_quota(given: dict[str, Any], place: str) -> None:
    assert place_of(given, FLAVORS, {"west"}) == place


def test_a_job_is_queued_again_once() -> None:
    change = moved(workload("west-l4", "west"), "west", NOW)
    assert change is not None
    budget, check = change["admissionChecks"]
    assert budget == {"name": "gpu-budget", "state": "Ready"}
    assert (check["state"], check["lastTransitionTime"]) == (RETRY, NOW)
    assert moved(workload("west-l4", "west", RETRY), "west", NOW) is None
    assert moved(workload("west-l4", "west", "Ready", "Evicted"), "west", NOW) is None


def test_flavors_of_a_cluster_that_stays_after_all_are_opened() -> None:
    own = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}
    assert taints({"spec": {"nodeTaints": [own]}}, leaves=True) == [own, LEAVING_TAINT]
    assert taints({"spec": {"nodeTaints": [own, LEAVING_TAINT]}}, leaves=True) is None
    assert taints({"spec": {"nodeTaints": [own, LEAVING_TAINT]}}, leaves=False) == [own]


class Left:
    """Jobs that are left, by look."""

    def __init__(self, *counts: int | Exception) -> None:
        self._counts = iter(counts)

    def left(self) -> int:
        found = next(self._counts)
        if isinstance(found, Exception):
            raise found
        return found


def test_an_update_waits_for_the_last_job_and_not_for_ever() -> None:
    now = [0.0]

    def sleep(seconds: float) -> None:
        now[0] += seconds

    waits: Any = Left(2, OSError("no route"), 1, 0, 0)
    assert wait(waits, 60, lambda: now[0], sleep) == (True, "no job is on a cluster that leaves")
    stuck: Any = Left(*[3] * 100)
    passed, reason = wait(stuck, 60, lambda: now[0], sleep)
    assert not passed and "3 jobs" in reason


def test_a_job_that_is_admitted_after_an_empty_look_is_waited_for() -> None:
    looks = Left(0, 1, 0, 0)
    given: Any = looks
    assert wait(given, 60, lambda: 0.0, lambda _: None)[0]
    with pytest.raises(StopIteration):
        looks.left()
