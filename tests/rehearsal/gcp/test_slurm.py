"""Clusters of Cluster Director: login nodes, and parts that cannot be changed."""

from tests.rehearsal.driver import refused
from tests.rehearsal.gcp.harness import Driver
from tests.rehearsal.gcp.rules.examples.slurm import CLUSTER, WHOLE, cluster


def test_a_cluster_names_its_login_nodes(google: Driver) -> None:
    made = google.create(CLUSTER, "research", **WHOLE)
    (login,) = made["orchestrator"]["slurm"]["loginNodes"]["instances"]
    assert login["instance"].endswith("/zones/us-central1-a/instances/research-login-001")
    assert made["name"].endswith("/locations/us-central1/clusters/research")


def test_machines_of_a_compute_resource_cannot_be_changed(google: Driver) -> None:
    google.create(CLUSTER, "research", **WHOLE)
    steps = "computeResources.0.config.newOnDemandInstances.machineType"
    refused("immutable", google.update, "research", **cluster(steps, "n2-standard-8"))
    grown = google.update("research", **cluster("orchestrator.slurm.nodeSets.0.maxDynamicNodeCount", "8"))
    assert grown["orchestrator"]["slurm"]["nodeSets"][0]["maxDynamicNodeCount"] == "8"
