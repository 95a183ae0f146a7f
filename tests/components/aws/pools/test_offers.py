"""The resources of a node for jobs are below the node's own, on every type of the catalog."""

import pytest

from components.aws.pools.offers import (
    EFA_HUGE_PAGES_GIB,
    cores_for_jobs,
    efa_charts,
    link_rates,
    memory_for_jobs_gib,
    node_offer,
    peak_tflops,
)
from infra.catalog.aws import facts
from infra.errors import UserError
from smoke_training.fabric import Fabric


@pytest.mark.parametrize("name", sorted(facts.instance_types))
def test_a_job_never_gets_the_whole_node(name: str) -> None:
    machine = facts.instance_type(name)
    assert 1 <= cores_for_jobs(machine) < machine.vcpu
    assert 1 <= memory_for_jobs_gib(machine, efa=False) < machine.memory_mib / 1024


def test_huge_pages_are_taken_from_memory() -> None:
    machine = facts.instance_type("p4d.24xlarge")
    whole = memory_for_jobs_gib(machine, efa=False)
    assert memory_for_jobs_gib(machine, efa=True) == whole - EFA_HUGE_PAGES_GIB


def test_a_large_node_keeps_what_eks_documents_and_our_agents_take() -> None:
    # 96 cores: 0.06 + 0.01 + 0.005 + 0.005 + 92 * 0.0025 = 0.31 reserved, 1 for agents.
    assert cores_for_jobs(facts.instance_type("p4d.24xlarge")) == 94


def test_a_node_without_efa_offers_no_fabric_and_one_with_it_all_its_devices() -> None:
    machine = facts.instance_type("p4d.24xlarge")
    assert "fabric" not in node_offer(machine, None)
    fabric = node_offer(machine, "device_plugin")["fabric"]
    assert (fabric["kind"], fabric["resource"], fabric["count"]) == (Fabric.EFA, "vpc.amazonaws.com/efa", 4)
    assert fabric["pod_resources"] == {"hugepages-2Mi": "5120Mi"}
    assert "device_class" not in fabric
    assert node_offer(machine, "dra")["fabric"]["device_class"] == "efa.networking.k8s.aws"


def test_rails_of_every_machine_with_efa_add_up_to_its_network() -> None:
    for machine in facts.instance_types.values():
        if machine.efa_interfaces:
            rates = link_rates(machine, efa=True)
            assert rates["rail_gbit_s"] is not None
            assert rates["rail_gbit_s"] * machine.efa_interfaces == pytest.approx(rates["network_gbit_s"])


def test_over_tcp_several_cards_are_not_one_link() -> None:
    assert link_rates(facts.instance_type("p4d.24xlarge"), efa=False) == {"network_gbit_s": None}
    assert link_rates(facts.instance_type("g6.2xlarge"), efa=False) == {"network_gbit_s": pytest.approx(5.0)}


@pytest.mark.parametrize(
    ("driver", "version", "chart"),
    [("device_plugin", "1.34", "aws-efa-k8s-device-plugin"), ("dra", "1.35", "aws-dranet")],
)
def test_one_driver_on_the_pools_with_efa(driver: str, version: str, chart: str) -> None:
    tolerations = [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}]
    supported = {"keys": ["trainstack.dev/pool"], "values": ["a100"]}
    assert efa_charts(driver, ["a100"], version) == {
        chart: {"supportedInstanceLabels": supported, "tolerations": tolerations}
    }


def test_no_driver_without_pools_that_need_one() -> None:
    assert efa_charts("dra", [], "1.34") == {}


def test_a_driver_that_the_cluster_is_too_old_for_is_refused() -> None:
    with pytest.raises(UserError) as caught:
        efa_charts("dra", ["a100"], "1.34")
    assert [problem.path for problem in caught.value.problems] == ["efa_driver"]


def test_a_peak_that_no_source_gives_is_left_out() -> None:
    known = peak_tflops(facts.instance_type("p4d.24xlarge"))
    assert known is not None
    assert (known["value"], known["dtype"]) == (312.0, "bfloat16")
    without = [
        machine
        for machine in facts.instance_types.values()
        if facts.accelerators[machine.accelerator].dense_bf16_tflops is None
    ]
    assert without, "some old accelerator has no bf16"
    assert [peak_tflops(machine) for machine in without] == [None] * len(without)


def test_the_monitors_engine_runs_on_every_type_of_the_catalog() -> None:
    # A type with another processor needs an exporter with an engine of its own.
    assert {machine.architecture for machine in facts.instance_types.values()} == {"x86_64"}
