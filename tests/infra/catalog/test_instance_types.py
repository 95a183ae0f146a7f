"""Machine types, checked type by type against sources that the rows were not written from.

What is independent of what: the rows' own facts (GPU, memory, vCPU, network, EFA count) are those of
Karpenter's generated table. moto bundles its own copy of the EC2 API's answers, pulled by another project at
another time, so comparing with it finds every slip of ours and every change between the two pulls (it cannot
find an error of the EC2 API itself). Cards, placement and Capacity Blocks come from moto, so moto proves
nothing there: they are held against the EFA count of Karpenter and against lists read elsewhere, below.
"""

from typing import Any

import pytest
from moto.ec2.models.instance_types import INSTANCE_TYPES

from infra.catalog.aws import facts
from infra.catalog.aws.model import EfaInterface, InstanceType
from infra.catalog.errors import UnknownFactError

FAMILIES = ("g4dn", "g5", "g6", "g6e", "p3", "p3dn", "p4d", "p4de", "p5", "p5e", "p5en", "p6-b200", "p6-b300")
MOTO: dict[str, dict[str, Any]] = INSTANCE_TYPES
TYPES = facts.instance_types
NAMES = tuple(TYPES)


def test_holds_every_size_of_the_gpu_families() -> None:
    bundled = {name for name in MOTO if name.split(".", maxsplit=1)[0] in FAMILIES}
    assert bundled == set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_agrees_with_the_ec2_api_as_moto_bundles_it(name: str) -> None:
    row, api = TYPES[name], MOTO[name]
    gpus = api["GpuInfo"]["Gpus"]
    assert len(gpus) == 1
    assert row.accelerator_count == gpus[0]["Count"]
    assert row.accelerator_memory_mib == gpus[0]["MemoryInfo"]["SizeInMiB"]
    assert row.accelerator.split("-")[0] == gpus[0]["Name"].lower()
    assert row.vcpu == api["VCpuInfo"]["DefaultVCpus"]
    assert row.memory_mib == api["MemoryInfo"]["SizeInMiB"]
    assert [row.architecture] == api["ProcessorInfo"]["SupportedArchitectures"]
    assert row.local_nvme_gb == api["InstanceStorageInfo"]["TotalSizeInGB"]
    assert row.efa_interfaces == api["NetworkInfo"].get("EfaInfo", {}).get("MaximumEfaInterfaces", 0)


@pytest.mark.parametrize("name", NAMES)
def test_network_rate_is_that_of_the_cards_or_says_that_sources_disagree(name: str) -> None:
    row = TYPES[name]
    total = sum(card["BaselineBandwidthInGbps"] for card in MOTO[name]["NetworkInfo"]["NetworkCards"])
    if row.network_gbps != total:
        assert any(f"{total:g} Gb/s" in text for text in row.disagreements), (row.network_gbps, total)


@pytest.mark.parametrize("name", NAMES)
def test_interfaces_are_ones_the_cards_accept(name: str) -> None:
    row, cards = TYPES[name], MOTO[name]["NetworkInfo"]["NetworkCards"]
    assert row.network_cards == len(cards)
    for interface in row.efa:
        card = cards[interface.network_card_index]
        assert interface.interface_type in card["InterfaceTypes"]
        assert interface.device_index < card["MaximumNetworkInterfaces"]
    with_efa = {index for index, card in enumerate(cards) if "efa" in card["InterfaceTypes"]}
    used = [i.network_card_index for i in row.efa if i.interface_type != "interface"]
    assert sorted(used) == sorted(with_efa)


@pytest.mark.parametrize("name", NAMES)
def test_cards_fit_the_efa_count(name: str) -> None:
    """Cards are moto's, EFA devices Karpenter's: one EFA device per card, and b300's first card has none."""
    row = TYPES[name]
    plain_cards = 1 if name.startswith("p6-b300.") or not row.efa else 0
    assert row.network_cards == row.efa_interfaces + plain_cards


def test_p5_puts_efa_on_the_primary_and_efa_only_at_device_one_elsewhere() -> None:
    layout = TYPES["p5.48xlarge"].efa
    assert len(layout) == 32
    assert layout[0] == EfaInterface(network_card_index=0, device_index=0, interface_type="efa")
    assert layout[1:] == tuple(
        EfaInterface(network_card_index=card, device_index=1, interface_type="efa-only")
        for card in range(1, 32)
    )


def test_p6_b300_keeps_its_first_card_plain() -> None:
    """As in awslabs/awsome-distributed-ai architectures/aws-pcs/assets/add-cng-p6-b300.yaml."""
    row = TYPES["p6-b300.48xlarge"]
    assert row.efa[0] == EfaInterface(network_card_index=0, device_index=0, interface_type="interface")
    assert [(i.network_card_index, i.device_index) for i in row.efa[1:]] == [(n, 0) for n in range(1, 17)]
    assert {i.interface_type for i in row.efa[1:]} == {"efa-only"}
    assert (row.efa_interfaces, row.network_cards) == (16, 17)


def test_small_types_have_no_efa() -> None:
    assert TYPES["g5.4xlarge"].efa == ()
    assert TYPES["g5.4xlarge"].efa_interfaces == 0
    assert TYPES["g5.8xlarge"].efa_interfaces == 1


@pytest.mark.parametrize("name", [name for name in NAMES if TYPES[name].efa])
def test_types_with_efa_can_be_placed_in_a_cluster(name: str) -> None:
    assert TYPES[name].supports_cluster_placement


def test_capacity_blocks_exist_for_what_the_ec2_user_guide_lists() -> None:
    """An older copy of the guide (ec2-capacity-blocks) lists these; newer types only join the list."""
    offered = {name for name in NAMES if TYPES[name].capacity_block}
    assert {"p4d.24xlarge", "p5.48xlarge", "p5e.48xlarge", "p5en.48xlarge"} <= offered
    assert not any(name.startswith("g") for name in offered)


def test_nvlink_joins_the_gpus_of_p_types_only() -> None:
    for row in TYPES.values():
        expected = None if row.accelerator_count == 1 else row.name.startswith("p")
        assert row.nvlink is expected, row.name


def test_accelerators_are_those_of_the_types() -> None:
    accelerators = facts.accelerators
    assert set(accelerators) == {row.accelerator for row in TYPES.values()}
    for row in TYPES.values():
        assert accelerators[row.accelerator].memory_gib == row.accelerator_memory_mib // 1024


def test_unknown_type_names_the_nearest() -> None:
    with pytest.raises(UnknownFactError, match=r"p5\.48xlarge") as caught:
        facts.instance_type("p5.48xlrge")
    assert isinstance(caught.value, LookupError)


def test_rows_cannot_be_changed() -> None:
    row: InstanceType = facts.instance_type("p4d.24xlarge")
    with pytest.raises(ValueError, match="frozen"):
        InstanceType.__setattr__(row, "vcpu", 1)
