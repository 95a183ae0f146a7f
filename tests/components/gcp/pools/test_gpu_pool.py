from collections.abc import Mapping
from typing import Any, cast

import pulumi
import pytest

from components.gcp.pools.gpu_pool import GcpGpuPool
from components.gcp.pools.gpu_pool_args import GcpGpuPoolArgs
from components.gcp.pools.order import waits_for
from infra.catalog.errors import UnknownFactError
from infra.errors import UserError
from rehearsal.gcp.rules import BOOK
from tests.components.graph import Graph, deploy_graph

POOL = "gcp:container/nodePool:NodePool"
RESERVATION = "projects/acme-ml/reservations/h100"
A3_ULTRA: Mapping[str, Any] = {"machine": "a3-ultragpu-8g", "rdma": True, "purchase": "spot"}
INTERACTIVE: Mapping[str, Any] = {"purpose": "interactive"}


def arguments(**changes: Any) -> GcpGpuPoolArgs:
    args: GcpGpuPoolArgs = {
        "pool": "train",
        "purpose": "training",
        "cluster": "dev-gcp",
        "location": "us-central1",
        "zones": ["us-central1-a"],
        "machine": "g2-standard-48",
        "node_service_account": "nodes@acme-ml.iam.gserviceaccount.com",
        "boot_disk_key": "projects/acme-ml/locations/us-central1/keyRings/dev/cryptoKeys/disks",
        "disk_gib": 300,
        "purchase": "on_demand",
        "min_nodes": 0,
        "max_nodes": 4,
        "pods_per_node": 32,
        "driver": "default",
        "rdma": False,
        "compact": False,
        "labels": {"team": "vision"},
        "resource_labels": {"trainstack-stack": "dev-gcp"},
    }
    return cast(GcpGpuPoolArgs, {**args, **changes})


def attachments(count: int) -> list[dict[str, str]]:
    return [{"network": f"net-{index}", "subnetwork": f"sub-{index}"} for index in range(count)]


def deployed(**changes: Any) -> Graph:
    def program() -> Mapping[str, pulumi.Input[Any]]:
        made = GcpGpuPool("dev-gcp-train", arguments(**changes))
        return {"labels": made.labels, "taints": made.taints}

    return deploy_graph(program)


def pool(**changes: Any) -> Mapping[str, Any]:
    return deployed(**changes).find("NodePool")


def problems(**changes: Any) -> str:
    with pytest.raises(UserError) as refused:
        deployed(**changes)
    return str(refused.value)


EVERY: tuple[Mapping[str, Any], ...] = (
    {},
    {"purchase": "spot"},
    {"purchase": "reserved", "reservation_id": RESERVATION},
    {
        "machine": "a3-highgpu-8g",
        "purchase": "block",
        "reservation_id": f"{RESERVATION}/reservationBlocks/b1",
    },
    {"purchase": "flex_start", "min_nodes": 1},
    {**A3_ULTRA, "purchase": "queued"},
    {"compact": True},
    A3_ULTRA,
    {**A3_ULTRA, "attachments": attachments(9)},
    {"machine": "a3-megagpu-8g", "rdma": True, "attachments": attachments(8)},
    {**INTERACTIVE, "sharing": {"kind": "time_sharing", "clients": 8}},
    {**INTERACTIVE, "machine": "a2-highgpu-1g", "sharing": {"kind": "mig", "partition": "1g.5gb"}},
)


@pytest.mark.parametrize("changes", EVERY)
def test_nothing_that_a_pool_can_be_breaks_a_rule_of_gke(changes: Mapping[str, Any]) -> None:
    made = dict(pool(**changes))
    assert [(rule.id, found.message) for rule, found in BOOK.broken_alone(POOL, made)] == []


@pytest.mark.parametrize("changes", EVERY)
def test_every_pool_is_hardened(changes: Mapping[str, Any]) -> None:
    made = pool(**changes)
    nodes = made["nodeConfig"]
    assert made["networkConfig"]["enablePrivateNodes"] is True
    assert nodes["shieldedInstanceConfig"] == {"enableSecureBoot": True, "enableIntegrityMonitoring": True}
    assert nodes["workloadMetadataConfig"] == {"mode": "GKE_METADATA"}
    assert nodes["bootDiskKmsKey"].endswith("cryptoKeys/disks")
    assert nodes["serviceAccount"].startswith("nodes@")
    assert nodes["imageType"] == "COS_CONTAINERD"
    assert nodes["kubeletConfig"]["insecureKubeletReadonlyPortEnabled"] == "FALSE"
    assert {"key": "nvidia.com/gpu", "value": "present", "effect": "NO_SCHEDULE"} in nodes["taints"]


def test_gpus_come_with_a_driver_and_images_are_streamed() -> None:
    nodes = pool(driver="latest")["nodeConfig"]
    assert nodes["guestAccelerators"] == [
        {"type": "nvidia-l4", "count": 4, "gpuDriverInstallationConfig": {"gpuDriverVersion": "LATEST"}}
    ]
    assert nodes["gcfsConfig"] == {"enabled": True} and nodes["gvnic"] == {"enabled": True}


def test_labels_are_those_of_the_other_cloud_and_cost_labels_reach_machines() -> None:
    made = deployed()
    assert made.outputs["labels"] == {
        "team": "vision",
        "trainstack.dev/pool": "train",
        "trainstack.dev/purpose": "training",
        "trainstack.dev/accelerator": "nvidia-l4",
        "trainstack.dev/capacity": "on-demand",
        "trainstack.dev/fabric": "tcp",
    }
    nodes = made.find("NodePool")["nodeConfig"]
    assert nodes["labels"] == made.outputs["labels"]
    assert nodes["resourceLabels"] == {"trainstack-stack": "dev-gcp"}


def test_the_program_never_counts_nodes() -> None:
    graph = deployed(max_nodes=9)
    made = graph.find("NodePool")
    assert not {"nodeCount", "initialNodeCount", "version"} & made.keys()
    assert made["autoscaling"] == {"totalMinNodeCount": 0, "totalMaxNodeCount": 9, "locationPolicy": "ANY"}
    assert "initialNodeCount" in graph.ignored["NodePool:dev-gcp-train-nodes"]
    # A third at a time, and no machine more than the pool has.
    assert made["upgradeSettings"] == {"strategy": "SURGE", "maxSurge": 0, "maxUnavailable": 2}


def test_when_nodes_are_upgraded_only_the_cluster_says() -> None:
    """A channel wants every pool upgraded; the cluster's maintenance policy holds them all."""
    made = pool()
    assert made["management"] == {"autoRepair": True, "autoUpgrade": True}
    assert "maintenancePolicies" not in made


def test_a_reservation_is_named_in_full_and_its_machines_are_in_one_pool_at_a_time() -> None:
    graph = deployed(purchase="reserved", reservation_id=RESERVATION)
    assert graph.find("NodePool")["nodeConfig"]["reservationAffinity"] == {
        "consumeReservationType": "SPECIFIC_RESERVATION",
        "key": "compute.googleapis.com/reservation-name",
        "values": [RESERVATION],
    }
    assert graph.delete_before_replace["NodePool:dev-gcp-train-nodes"] is True
    assert deployed().delete_before_replace["NodePool:dev-gcp-train-nodes"] is False


def test_spot_and_dynamic_nodes_use_no_reservation() -> None:
    for capacity in ("spot", "flex_start", "queued"):
        nodes = pool(purchase=capacity)["nodeConfig"]
        assert nodes["reservationAffinity"] == {"consumeReservationType": "NO_RESERVATION"}
    assert pool(purchase="spot")["nodeConfig"]["spot"] is True
    assert "reservationAffinity" not in pool()["nodeConfig"]


def test_dynamic_nodes_are_neither_repaired_nor_given_an_upgrade_strategy() -> None:
    flex, queued = pool(purchase="flex_start"), pool(purchase="queued")
    assert flex["management"] == {"autoRepair": False, "autoUpgrade": True}
    assert queued["management"] == {"autoRepair": False, "autoUpgrade": False}
    assert "upgradeSettings" not in flex and "upgradeSettings" not in queued
    assert flex["nodeConfig"]["flexStart"] is True and "queuedProvisioning" not in flex
    assert queued["queuedProvisioning"] == {"enabled": True}


def test_queued_nodes_are_recognized_by_their_label_and_keep_others_away() -> None:
    made = deployed(purchase="queued")
    assert made.outputs["labels"]["cloud.google.com/gke-queued"] == "true"
    assert made.outputs["taints"]["cloud.google.com/gke-queued"] == "true:NoSchedule"


def test_gke_makes_networks_for_rdma_and_pods_claim_them() -> None:
    made = deployed(**A3_ULTRA)
    nodes = made.find("NodePool")
    assert nodes["networkConfig"]["acceleratorNetworkProfile"] == "auto"
    assert "additionalNodeNetworkConfigs" not in nodes["networkConfig"]
    assert made.outputs["labels"]["cloud.google.com/gke-networking-dra-driver"] == "true"
    assert made.outputs["labels"]["trainstack.dev/fabric"] == "rdma"
    assert nodes["nodeConfig"]["gpudirectStrategy"] == "RDMA"
    assert nodes["nodeConfig"]["ephemeralStorageLocalSsdConfig"] == {"localSsdCount": 32}


def test_networks_of_the_stack_exclude_those_of_gke() -> None:
    made = deployed(machine="a3-megagpu-8g", rdma=True, attachments=attachments(8))
    network = made.find("NodePool")["networkConfig"]
    assert [one["subnetwork"] for one in network["additionalNodeNetworkConfigs"]] == [
        f"sub-{index}" for index in range(8)
    ]
    assert "acceleratorNetworkProfile" not in network
    assert "cloud.google.com/gke-networking-dra-driver" not in made.outputs["labels"]
    assert made.outputs["labels"]["trainstack.dev/fabric"] == "tcpxo"


def test_shared_gpus_are_configured_in_gke() -> None:
    turns = pool(**INTERACTIVE, sharing={"kind": "time_sharing", "clients": 8})
    (gpu,) = turns["nodeConfig"]["guestAccelerators"]
    assert gpu["gpuSharingConfig"] == {"gpuSharingStrategy": "TIME_SHARING", "maxSharedClientsPerGpu": 8}
    parts = pool(**INTERACTIVE, machine="a2-highgpu-1g", sharing={"kind": "mig", "partition": "3g.20gb"})
    (gpu,) = parts["nodeConfig"]["guestAccelerators"]
    assert gpu["gpuPartitionSize"] == "3g.20gb" and "gpuSharingConfig" not in gpu


def test_cached_images_are_on_a_second_disk_and_need_streaming() -> None:
    nodes = pool(image_cache="projects/acme-ml/global/images/torch")["nodeConfig"]
    assert nodes["secondaryBootDisks"] == [
        {"diskImage": "projects/acme-ml/global/images/torch", "mode": "CONTAINER_IMAGE_CACHE"}
    ]
    assert nodes["gcfsConfig"] == {"enabled": True}


def test_g4_gives_whole_processors() -> None:
    kubelet = pool(machine="g4-standard-48")["nodeConfig"]["kubeletConfig"]
    assert kubelet["cpuManagerPolicy"] == "static"
    assert kubelet["topologyManager"] == {"policy": "restricted"}
    assert kubelet["insecureKubeletReadonlyPortEnabled"] == "FALSE"


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"purchase": "lease"}, "unknown way to buy nodes"),
        ({"purchase": "reserved"}, "must be the full name of a reservation"),
        ({"purchase": "reserved", "reservation_id": "h100"}, "must be the full name of a reservation"),
        (
            {"purchase": "block", "reservation_id": RESERVATION, "zones": ["us-central1-a", "us-central1-b"]},
            "a reservation is in one zone",
        ),
        ({"reservation_id": RESERVATION}, "reservation-not-used"),
        ({"purchase": "queued", "min_nodes": 1}, "queued-minimum-not-zero"),
        ({"purchase": "queued", "compact": True}, "compact-with-dynamic-nodes"),
        ({"purchase": "flex_start", "compact": True}, "compact-with-dynamic-nodes"),
        (
            {"compact": True, "zones": ["us-central1-a", "us-central1-b"]},
            "a compact placement is in one zone",
        ),
        ({**A3_ULTRA, "compact": True}, "compact-with-rdma"),
        ({"rdma": True}, "machine-without-gpu-network"),
        ({**A3_ULTRA, "zones": ["us-central1-a", "us-central1-b"]}, "RDMA does not cross zones"),
        ({**A3_ULTRA, "attachments": attachments(8)}, "takes 9 networks"),
        ({"machine": "a3-megagpu-8g", "rdma": True}, "networks-missing"),
        ({"attachments": attachments(8)}, "without rdma nodes have none"),
        ({"sharing": {"kind": "time_sharing", "clients": 4}}, "sharing-not-interactive"),
        ({**INTERACTIVE, "sharing": {"kind": "time_sharing", "clients": 49}}, "must be 2 to 48 pods"),
        ({**INTERACTIVE, "sharing": {"kind": "mig", "partition": "1g.5gb"}}, "gpu-without-partitions"),
        ({**INTERACTIVE, "sharing": {"kind": "mps"}}, "unknown way to share"),
        ({"machine": "a3-highgpu-8g", "local_ssds": 4}, "local-ssd-count"),
        ({"image_cache": "torch"}, "full name of a disk image"),
        ({"labels": {"trainstack.dev/pool": "x"}}, "is reserved for pools"),
        ({"min_nodes": 5}, "minimum-above-maximum"),
        ({"pods_per_node": 300}, "8 to 256 pods"),
        ({"disk_gib": 10}, "50 to 65536 GiB"),
        ({"zones": []}, "pool-without-zones"),
        ({"driver": "R570"}, "unknown-gpu-driver"),
        ({"machine": "a4x-highgpu-4g", "rdma": True}, "machine-not-supported"),
        ({**A3_ULTRA, "purchase": "on_demand"}, "purchase-not-offered"),
        ({**A3_ULTRA, "purchase": "flex_start"}, "flex-start-not-for-gangs"),
    ],
)
def test_what_cannot_run_is_refused_with_the_way_out(changes: Mapping[str, Any], said: str) -> None:
    assert said in problems(**changes)


def test_all_problems_come_at_once() -> None:
    found = problems(purchase="reserved", disk_gib=10, image_cache="torch")
    assert len(found.splitlines()) == 3


def test_an_unknown_machine_is_named_with_its_neighbours() -> None:
    with pytest.raises(UnknownFactError, match="a3-megagpu-8g"):
        deployed(machine="a3-megagpu-4g")


def test_at_most_four_pools_change_at_a_time() -> None:
    made = [cast(pulumi.Resource, object()) for _ in range(6)]
    assert [waits_for(made[:count]) for count in range(7)] == [
        [], [], [], [], [made[0]], [made[1]], [made[2]],
    ]  # fmt: skip
