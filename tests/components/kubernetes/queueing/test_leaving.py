"""The Job that moves jobs away from clusters that leave a manager."""

from components.kubernetes.network_policies import PlatformNetwork
from components.kubernetes.queueing.leaving import NAME
from components.kubernetes.queueing.queues import Queueing, QueueingArgs
from tests.components.graph import Graph, deploy_graph
from tests.components.kubernetes.queueing.pools import cpu_flavor, teams


def manager(*clusters: str) -> Graph:
    """Queues of a manager with these clusters."""
    given: QueueingArgs = {
        "flavors": [cpu_flavor()],
        "teams": teams(research=3),
        "gate": {"nodes": {}},
        "ready_image": "registry.example/mlflow@sha256:11",
        "control_plane": PlatformNetwork("eks", ["10.0.0.0/16"]),
        "sends": {"stack": "large", "clusters": clusters},
    }
    return deploy_graph(lambda: {"cohort": Queueing("dev-queueing", given).cohort})


def test_connections_and_queues_change_after_the_jobs_of_a_leaving_cluster_are_moved() -> None:
    made = manager("east", "west")
    job = f"Job:dev-queueing-{NAME}"
    for kind in ("MultiKueueConfig", "ResourceFlavor", "ClusterQueue"):
        asked = next(one for one in made.cloud.asked if one.type.endswith(f":{kind}"))
        assert job in made.waits_for(f"{kind}:{asked.name}")
    assert "Job:dev-queueing-kueue-ready" in made.waits_for(job)


def test_another_set_of_clusters_is_another_job() -> None:
    both, same, one = (
        manager(*names).find("Job", NAME)["metadata"]["name"]
        for names in (("east", "west"), ("west", "east"), ("east",))
    )
    assert both == same != one


def test_the_program_cannot_delete_jobs_or_read_secrets() -> None:
    rules = manager("east").find("ClusterRole", f"{NAME}-role")["rules"]
    assert {verb for rule in rules for verb in rule["verbs"]} == {"list", "patch"}
    assert {name for rule in rules for name in rule["resources"]} == {
        "multikueueclusters", "resourceflavors", "workloads", "workloads/status",
    }  # fmt: skip
