from collections.abc import Sequence
from typing import Any

import pulumi
import pytest

from components.aws.pools.efa import network_interfaces
from infra.catalog.aws import facts
from infra.catalog.aws.model import InstanceType

WITH_EFA = sorted(name for name, machine in facts.instance_types.items() if machine.efa)
GROUPS: Sequence[pulumi.Input[str]] = ["sg-cluster", "sg-efa"]


def interfaces(machine: InstanceType) -> list[dict[str, Any]]:
    keys = (
        "network_card_index",
        "device_index",
        "interface_type",
        "security_groups",
        "delete_on_termination",
    )
    return [{key: getattr(made, key) for key in keys} for made in network_interfaces(machine, GROUPS)]


@pytest.mark.parametrize(
    ("name", "interface_count", "efa_count"),
    [
        ("g5.48xlarge", 1, 1),
        ("p4d.24xlarge", 4, 4),
        ("p5.48xlarge", 32, 32),
        ("p5en.48xlarge", 16, 16),
        ("p6-b200.48xlarge", 8, 8),
        ("p6-b300.48xlarge", 17, 16),
    ],
)
def test_the_number_of_interfaces_is_that_of_the_type(
    name: str, interface_count: int, efa_count: int
) -> None:
    made = interfaces(facts.instance_type(name))

    assert len(made) == interface_count
    assert sum(i["interface_type"].startswith("efa") for i in made) == efa_count


def test_a_p5_has_one_interface_on_each_of_32_cards_and_one_of_them_has_addresses() -> None:
    made = interfaces(facts.instance_type("p5.48xlarge"))

    assert [i["network_card_index"] for i in made] == list(range(32))
    assert [i["interface_type"] for i in made] == ["efa"] + ["efa-only"] * 31
    assert [i["device_index"] for i in made] == [0] + [1] * 31


def test_the_first_card_of_a_p6_b300_carries_no_efa() -> None:
    made = interfaces(facts.instance_type("p6-b300.48xlarge"))

    assert made[0]["interface_type"] == "interface"
    assert {i["network_card_index"] for i in made[1:]} == set(range(1, 17))
    assert {i["device_index"] for i in made[1:]} == {0}


@pytest.mark.parametrize("name", WITH_EFA)
def test_every_layout_has_one_primary_and_the_groups_on_each_interface(name: str) -> None:
    made = interfaces(facts.instance_type(name))
    places = [(i["network_card_index"], i["device_index"]) for i in made]

    assert places.count((0, 0)) == 1
    assert places[0] == (0, 0)
    assert made[0]["interface_type"] != "efa-only"
    assert len(set(places)) == len(places)
    assert all(i["security_groups"] == GROUPS for i in made)
    assert all(i["delete_on_termination"] == "true" for i in made)


def test_a_type_without_efa_lists_no_interface() -> None:
    assert network_interfaces(facts.instance_type("g4dn.xlarge"), GROUPS) == []
