"""A pool without capacity: its jobs, and how they move to another pool (docs/runbooks)."""

from components.kubernetes.queueing.kueue import API_VERSION
from components.kubernetes.queueing.quotas import TeamArgs
from rehearsal.controlplane.api import KubernetesApi
from tests.cluster.queues.lab import Lab, flavor, queues
from tests.cluster.waiting import eventually

EMPTY = flavor("empty", "p4d.24xlarge", 1, preference=-1)
OTHER = flavor("other", "p4d.24xlarge", 1)
TEAM: list[TeamArgs] = [{"name": "Research", "weight": 1}]


def gives_up(lab: Lab, times: int) -> None:
    """Its pods were not ready in time, once more; then it is admitted again."""
    lab.runs("train")
    lab.age("train", "Admitted", 20 * 60)
    eventually(lambda: lab.evictions("train").get("PodsReadyTimeout") == times, lambda: lab.workload("train"))
    lab.again("train")


def test_its_jobs_are_given_it_again_until_another_pool_is_preferred(api: KubernetesApi) -> None:
    with queues(api, [EMPTY, OTHER], TEAM) as lab:
        lab.submit("Research", "train", gpus=8)
        assert lab.flavor("train") == "empty"
        gives_up(lab, 1)
        assert lab.flavor("train") == "empty"
        # As `up` does with a higher `preference` of the pool.
        queue = api.get(API_VERSION, "ClusterQueue", lab.namespaces["Research"])
        (group,) = queue["spec"]["resourceGroups"]
        later = [*reversed(group["flavors"])]
        assert [each["name"] for each in later] == ["other", "empty"]
        changed = {"spec": {"resourceGroups": [{**group, "flavors": later}]}}
        api.patch(API_VERSION, "ClusterQueue", queue["metadata"]["name"], changed)
        gives_up(lab, 2)
        assert lab.flavor("train") == "other"
