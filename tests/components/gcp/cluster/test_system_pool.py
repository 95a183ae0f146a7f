"""The system pool: small, hardened, and there before what runs on it."""

from tests.components.gcp.cluster.clusters import POOL, ZONES, cluster
from tests.components.graph import Graph


def test_the_system_pool_is_small_on_demand_and_sized_over_all_zones(made: Graph) -> None:
    pool = made.find("NodePool")
    node = pool["nodeConfig"]

    assert pool["autoscaling"] == {
        "totalMinNodeCount": 2,
        "totalMaxNodeCount": 6,
        "locationPolicy": "BALANCED",
    }
    # A number per zone: 3 zones have to start with one each for 2 nodes to be there.
    assert pool["initialNodeCount"] == 1
    assert made.ignored["NodePool:dev-cluster-system"] == ["initialNodeCount"]
    assert "nodeCount" not in pool
    assert pool["nodeLocations"] == ZONES
    assert not {"spot", "preemptible", "flexStart", "guestAccelerators", "taints"} & set(node)
    assert node["machineType"] == "e2-standard-4"
    assert node["labels"] == {"trainstack.dev/pool": "system"}
    assert node["resourceLabels"] == {"owner": "ml"}


def test_the_system_pool_starts_with_enough_nodes_in_few_zones() -> None:
    one_zone = cluster(zones=ZONES[:1], system_pool={**POOL, "min_nodes": 3}).find("NodePool")
    two_zones = cluster(zones=ZONES[:2], system_pool={**POOL, "min_nodes": 3}).find("NodePool")

    assert one_zone["initialNodeCount"] == 3
    assert two_zones["initialNodeCount"] == 2


def test_system_nodes_are_hardened_and_upgrades_take_none_away(made: Graph) -> None:
    pool = made.find("NodePool")
    node = pool["nodeConfig"]

    assert node["shieldedInstanceConfig"] == {"enableSecureBoot": True, "enableIntegrityMonitoring": True}
    assert node["workloadMetadataConfig"] == {"mode": "GKE_METADATA"}
    assert node["metadata"] == {"disable-legacy-endpoints": "true"}
    assert node["imageType"] == "COS_CONTAINERD"
    assert pool["upgradeSettings"] == {"strategy": "SURGE", "maxSurge": 1, "maxUnavailable": 0}
    assert pool["management"] == {"autoRepair": True, "autoUpgrade": True}


def test_system_nodes_have_room_for_gkes_agents_and_our_services() -> None:
    assert cluster(pods_per_node=16).find("NodePool")["maxPodsPerNode"] == 64
    assert cluster(pods_per_node=110).find("NodePool")["maxPodsPerNode"] == 110


def test_system_nodes_have_a_disk_that_their_series_takes(made: Graph) -> None:
    new = cluster(system_pool={**POOL, "machine": "n4-standard-4"}).find("NodePool")
    assert made.find("NodePool")["nodeConfig"]["diskType"] == "pd-balanced"
    assert new["nodeConfig"]["diskType"] == "hyperdisk-balanced"
