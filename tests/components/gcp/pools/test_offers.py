"""Resources of a node for jobs, compared with GKE's page and Google's examples."""

import json

import pytest

from components.gcp.pools.offers import (
    cores_for_jobs,
    cpu_offer,
    disk_for_jobs_gib,
    link_rates,
    memory_for_jobs_gib,
    node_offer,
    peak_tflops,
)
from components.kubernetes.offers import claimed, devices
from infra.catalog.gcp import facts
from smoke_training.expected.tables import shipped
from smoke_training.fabric import Fabric

# The page's example: `kubectl get node` of 4 cores and 16 GiB with a disk of 100 GiB.
PAGE_CPU, PAGE_MEMORY_GIB, PAGE_DISK_GIB = 3.920, 13498416 / 2**20, 47060071478 / 2**30
AGENTS_CPU, AGENTS_GIB = 1.0, 3.0
NETWORKS = [f"gpu-{index}" for index in range(8)]


def offered(machine: str, **changes: object) -> dict[str, object]:
    asked = {"pods_per_node": 32, "disk_gib": 300, "rdma": False, **changes}
    return dict(node_offer(facts.machine_type(machine), **asked))  # type: ignore[arg-type]


def test_nothing_is_offered_that_the_page_s_example_does_not_have() -> None:
    assert cores_for_jobs(4, 32) == int(PAGE_CPU - AGENTS_CPU)
    assert memory_for_jobs_gib(16) == int(PAGE_MEMORY_GIB - AGENTS_GIB)
    assert disk_for_jobs_gib(0, 100) == int(PAGE_DISK_GIB)


def test_many_pods_cost_a_part_of_a_core() -> None:
    assert cores_for_jobs(224, 256) == cores_for_jobs(224, 110) - 1


def test_local_ssds_hold_what_pods_write() -> None:
    # 16 of 375 GiB, less a tenth and 100 GiB.
    assert disk_for_jobs_gib(16, 300) == 5300
    assert offered("a3-megagpu-8g")["ephemeral_gib"] == 5300


def test_shared_gpus_count_as_often_as_pods_get_one() -> None:
    assert offered("g2-standard-12")["gpus"] == 1
    assert offered("g2-standard-24", clients=4)["gpus"] == 8
    assert offered("a2-highgpu-2g", partition="1g.5gb")["gpus"] == 14


def test_a_pod_takes_one_turn_and_no_run_takes_a_shared_node() -> None:
    whole, turns, parts = (
        offered("a2-highgpu-2g", **how) for how in ({}, {"clients": 3}, {"partition": "3g.20gb"})
    )
    assert [offer.get("shared", False) for offer in (whole, turns, parts)] == [False, True, True]
    # GKE's device plugin refuses a second turn; of parts a pod may have several.
    assert [offer.get("gpus_per_pod") for offer in (whole, turns, parts)] == [None, 1, None]


def test_a_pod_of_tcpxo_has_nine_interfaces_and_a_daemon_that_its_node_pays_for() -> None:
    with_fabric = node_offer(
        facts.machine_type("a3-megagpu-8g"), pods_per_node=32, disk_gib=300, rdma=True, networks=NETWORKS
    )
    plain = node_offer(facts.machine_type("a3-megagpu-8g"), pods_per_node=32, disk_gib=300, rdma=False)
    needs = with_fabric["pod"]
    named = json.loads(needs["annotations"]["networking.gke.io/interfaces"])
    assert [one["interfaceName"] for one in named] == [f"eth{index}" for index in range(9)]
    assert [one["network"] for one in named] == ["default", *NETWORKS]
    assert needs["sidecar"]["cpu"] == plain["cpu"] - with_fabric["cpu"]
    assert needs["sidecar"]["memory_gib"] == plain["memory_gib"] - with_fabric["memory_gib"]
    assert devices(with_fabric["fabric"]) == {f"networking.gke.io.networks/{name}": "1" for name in NETWORKS}


def test_rdma_adapters_are_claimed_where_gke_makes_their_networks() -> None:
    offer = node_offer(facts.machine_type("a3-ultragpu-8g"), pods_per_node=32, disk_gib=300, rdma=True)
    fabric = offer["fabric"]
    assert fabric["kind"] is Fabric.RDMA and claimed(fabric)
    assert (fabric["device_class"], fabric["count"]) == ("mrdma.google.com", 8)
    assert offer["pod"]["annotations"] == {} and devices(fabric) == {}


def test_rdma_interfaces_begin_at_the_third() -> None:
    offer = node_offer(
        facts.machine_type("a3-ultragpu-8g"), pods_per_node=32, disk_gib=300, rdma=True, networks=NETWORKS
    )
    named = json.loads(offer["pod"]["annotations"]["networking.gke.io/interfaces"])
    assert [one["interfaceName"] for one in named] == ["eth0", *(f"eth{index}" for index in range(2, 10))]
    assert not claimed(offer["fabric"])


def test_pods_find_the_driver_on_every_gpu_node() -> None:
    for machine in ("g2-standard-12", "a2-highgpu-8g"):
        needs = node_offer(facts.machine_type(machine), pods_per_node=32, disk_gib=300, rdma=False)["pod"]
        assert needs["env"]["LD_LIBRARY_PATH"] == "/usr/local/nvidia/lib64"
        assert not needs["host_folders"] and "sidecar" not in needs


def test_nodes_without_gpus_offer_processors_and_memory() -> None:
    assert cpu_offer(8, 32, pods_per_node=32, disk_gib=100) == {
        "cpu": 6,
        "memory_gib": 24,
        "gpus": 0,
        "ephemeral_gib": 43,
    }


@pytest.mark.parametrize("machine", sorted(facts.machine_types))
def test_every_machine_leaves_something_to_jobs(machine: str) -> None:
    offer = node_offer(facts.machine_type(machine), pods_per_node=32, disk_gib=300, rdma=False)
    assert offer["cpu"] >= 1 and offer["memory_gib"] >= 1 and offer["gpus"] >= 1
    assert (
        offer["cpu"] < facts.machine_type(machine).vcpu
        and offer["memory_gib"] < facts.machine_type(machine).memory_gib
    )


def test_rates_are_those_that_the_expectations_are_measured_against() -> None:
    """Two tables state them, one that ships into the cluster and one that does not."""
    checked = 0
    for machine in shipped().machines:
        row = facts.machine_types.get(machine.instance_type)
        if row is None or row.fabric is None or Fabric(row.fabric) not in machine.fabrics:
            continue
        rates = link_rates(row, rdma=True)
        assert rates["network_gbit_s"] == machine.network_gbit_s, machine.instance_type
        assert row.nics == machine.nics
        checked += 1
    assert checked == 5


def test_a_peak_is_only_stated_with_its_source() -> None:
    known = peak_tflops(facts.machine_type("a3-megagpu-8g"))
    assert known is not None and known["value"] == 989.0 and "stas00" in known["source"]
    assert peak_tflops(facts.machine_type("g4-standard-48")) is None


def test_the_rate_of_a_machine_without_a_fabric_is_all_that_it_has() -> None:
    assert link_rates(facts.machine_type("a2-highgpu-8g"), rdma=False) == {"network_gbit_s": 100.0}
    # Most of what the page names is that of adapters which this pool has not.
    assert link_rates(facts.machine_type("a3-megagpu-8g"), rdma=False) == {"network_gbit_s": None}
