"""Networks beside GPUs: as many as each machine's fabric needs, private, and known to Kubernetes."""

import ipaddress
from collections.abc import Mapping
from typing import Any, cast

import pulumi
import pytest

from components.gcp.network.accelerators import GcpAcceleratorNetworks, GcpAcceleratorNetworksArgs
from components.gcp.network.interfaces import interfaces
from components.gcp.network.objects import GcpNetworkObjects
from components.gcp.network.ranges import plan_ranges
from infra.catalog.gcp.fabrics import making, primary_mtu
from infra.errors import UserError
from tests.components.gcp.computed import PROJECT
from tests.components.graph import Graph, deploy_graph

PLAN = plan_ranges("10.0.0.0/16", pods_per_node=32)
WITH_RDMA = ["a3-ultragpu-8g", "a4-highgpu-8g"]
WITHOUT = {"a3-highgpu-8g": 4, "a3-megagpu-8g": 8}


class Consumer(pulumi.CustomResource):
    def __init__(self, name: str, **inputs: pulumi.Input[Any]) -> None:
        super().__init__("test:index:Consumer", name, inputs)


def networks(machine: str, **changes: Any) -> Graph:
    args: GcpAcceleratorNetworksArgs = {
        "project": PROJECT,
        "region": "us-central1",
        "zone": "us-central1-b",
        "machines": [machine],
        "gvnic": PLAN.rdma[0].gvnic,
        "accelerators": PLAN.rdma[0].adapters if machine in WITH_RDMA else PLAN.accelerators,
    }

    def program() -> Mapping[str, pulumi.Input[Any]]:
        made = GcpAcceleratorNetworks("dev-h100-net", cast(GcpAcceleratorNetworksArgs, {**args, **changes}))
        Consumer("pool", networks=made.attachments)
        objects = GcpNetworkObjects("dev-h100-objects", {"networks": made.objects})
        return {"attachments": pulumi.Output.all(*made.attachments), "objects": objects.names}

    return deploy_graph(program)


def ranges(made: Graph) -> list[ipaddress.IPv4Network]:
    return [ipaddress.IPv4Network(one["ipCidrRange"]) for one in made.all("Subnetwork").values()]


@pytest.mark.parametrize(("machine", "count"), WITHOUT.items())
def test_tcpx_and_tcpxo_have_a_network_for_each_nic(machine: str, count: int) -> None:
    made = networks(machine)
    vpcs = made.all("compute/network:Network")

    assert len(vpcs) == len(made.all("Subnetwork")) == len(made.outputs["attachments"]) == count
    assert {vpc["mtu"] for vpc in vpcs.values()} == {8244}
    assert all("networkProfile" not in vpc for vpc in vpcs.values())
    # Every NIC is in a network of its own.
    assert len({one["network"] for one in made.outputs["attachments"]}) == count


@pytest.mark.parametrize("machine", WITH_RDMA)
def test_rdma_has_one_network_of_eight_subnetworks_and_gvnic_another(machine: str) -> None:
    made = networks(machine)
    vpcs = made.all("compute/network:Network")
    (rdma,) = [name for name, vpc in vpcs.items() if "networkProfile" in vpc]
    attached = made.outputs["attachments"]

    assert len(vpcs) == 2
    assert {vpc["mtu"] for vpc in vpcs.values()} == {8896}
    assert vpcs[rdma]["networkProfile"] == f"projects/{PROJECT}/global/networkProfiles/us-central1-b-vpc-roce"
    assert vpcs[rdma]["autoCreateSubnetworks"] is False
    # The gVNIC comes first: pods find it at eth1, RDMA from eth2 on.
    assert [one["network"] == rdma for one in attached] == [False] + 8 * [True]
    assert len({one["subnetwork"] for one in attached}) == 9


@pytest.mark.parametrize("machine", WITH_RDMA)
def test_the_rdma_network_has_nothing_that_it_would_refuse(machine: str) -> None:
    made = networks(machine)
    (rule,) = made.all("Firewall").values()

    assert rule["network"] == "dev-h100-net-gvnic-1-id"
    for subnetwork in made.all("Subnetwork").values():
        if subnetwork["network"] == "dev-h100-net-rdma-id":
            assert not {"logConfig", "privateIpGoogleAccess", "secondaryIpRanges"} & set(subnetwork)


@pytest.mark.parametrize("machine", [*WITHOUT, *WITH_RDMA])
def test_ranges_are_private_disjoint_and_apart_from_the_clusters(machine: str) -> None:
    found = ranges(networks(machine))

    assert all(one.is_private for one in found)
    assert not any(a.overlaps(b) for index, a in enumerate(found) for b in found[:index])
    for own in (PLAN.nodes, PLAN.pods, PLAN.services, PLAN.services_access):
        assert not any(one.overlaps(ipaddress.IPv4Network(own)) for one in found)


@pytest.mark.parametrize("machine", [*WITHOUT, *WITH_RDMA])
def test_only_nodes_of_the_same_network_are_let_in_and_their_flows_are_logged(machine: str) -> None:
    made = networks(machine)
    by_network = {one["network"]: one for one in made.all("Subnetwork").values() if "logConfig" in one}

    assert made.all("Firewall")
    for rule in made.all("Firewall").values():
        assert rule["direction"] == "INGRESS"
        assert rule["sourceRanges"] == [by_network[rule["network"]]["ipCidrRange"]]


@pytest.mark.parametrize("machine", [*WITHOUT, *WITH_RDMA])
def test_nodes_start_when_they_can_talk(machine: str) -> None:
    made = networks(machine)
    before = made.waits_for("Consumer:pool")

    assert {f"Firewall:{name}" for name in made.all("Firewall")} <= before
    assert {f"Subnetwork:{name}" for name in made.all("Subnetwork")} <= before


def test_nothing_gets_a_public_address_or_a_way_to_the_internet() -> None:
    types = {kind.split("/")[0] for kind in networks("a4-highgpu-8g").cloud.types() if kind.startswith("gcp")}

    assert types == {"gcp:compute"}
    assert {name.split(":")[0] for name in networks("a4-highgpu-8g").edges if "gcp" not in name} <= {
        "Network",
        "Subnetwork",
        "Firewall",
        "GKENetworkParamSet",
        "GcpAcceleratorNetworks",
        "GcpNetworkObjects",
        "Consumer",
    }


@pytest.mark.parametrize("machine", [*WITHOUT, *WITH_RDMA])
def test_kubernetes_knows_each_interface_by_its_network(machine: str) -> None:
    made = networks(machine)
    sets = made.all("GKENetworkParamSet")
    named = {one["metadata"]["name"]: one["spec"] for one in sets.values()}
    known = {one.network: one.device_mode for one in interfaces(machine)}

    assert made.outputs["objects"] == list(known)
    assert {name: spec["deviceMode"] for name, spec in named.items()} == known
    # As the pool has them, in its order: a pod's interface would be another NIC otherwise.
    assert [
        {"network": named[name]["vpc"], "subnetwork": named[name]["vpcSubnet"]} for name in known
    ] == made.outputs["attachments"]
    objects = made.all("networking.gke.io/v1:Network")
    assert {one["metadata"]["name"] for one in objects.values()} == set(known)
    for one in objects.values():
        assert one["spec"]["type"] == "Device"
        assert one["spec"]["parametersRef"] == {
            "group": "networking.gke.io",
            "kind": "GKENetworkParamSet",
            "name": one["metadata"]["name"],
        }


def test_interfaces_are_called_as_pods_see_them() -> None:
    mega = {one.name: one.network for one in interfaces("a3-megagpu-8g")}
    ultra = {one.name: one.network for one in interfaces("a3-ultragpu-8g")}
    elsewhere = {one.name: one.network for one in interfaces("a3-ultragpu-8g", "c-")}

    assert mega == {f"eth{number}": f"vpc{number}" for number in range(1, 9)}
    assert ultra["eth1"] == "gvnic-1"
    assert {f"eth{number + 2}": f"rdma-{number}" for number in range(8)}.items() <= ultra.items()
    assert not {*ultra.values()} & {*elsewhere.values()}


def test_machines_with_fewer_nics_use_the_first_networks_of_the_others() -> None:
    for few, many in (("a3-highgpu-8g", "a3-megagpu-8g"), ("a4x-highgpu-4g", "a4-highgpu-8g")):
        short, long = interfaces(few), interfaces(many)
        assert long[: len(short)] == short
        made = networks(few, machines=[few, many], accelerators=PLAN.accelerators)
        assert made.outputs["objects"] == [one.network for one in long]


@pytest.mark.parametrize(
    ("machine", "wanted", "made"),
    [
        # Google's drivers for TCPX and TCPXO are no part of DRANET.
        ("a3-highgpu-8g", "managed", "classic"),
        ("a3-megagpu-8g", "managed", "classic"),
        ("a3-ultragpu-8g", "managed", "managed"),
        ("a3-ultragpu-8g", "classic", "classic"),
        ("a4-highgpu-8g", "managed", "managed"),
        ("a4x-highgpu-4g", "managed", "managed"),
        # No source lays these out by hand.
        ("a4x-maxgpu-4g-metal", "classic", "managed"),
        ("g2-standard-12", "managed", None),
        ("a2-ultragpu-8g", "classic", None),
    ],
)
def test_gke_makes_the_networks_that_it_can_when_asked(machine: str, wanted: Any, made: str | None) -> None:
    assert making(machine, wanted) == made


def test_the_packet_size_of_the_cluster_is_one_that_machines_with_tcpx_have_too() -> None:
    assert primary_mtu() == 8244


@pytest.mark.parametrize(
    ("changes", "paths"),
    [
        ({"machine": "g2-standard-12"}, ["machine"]),
        ({"machine": "a2-ultragpu-8g"}, ["machine"]),
        ({"machines": ["a3-megagpu-8g", "a4-highgpu-8g"]}, ["machines"]),
        ({"machine": "a3-megagpu-8g", "accelerators": PLAN.accelerators[:7]}, ["accelerators"]),
        ({"machine": "a4-highgpu-8g", "accelerators": [], "zone": "us-east1-b"}, ["accelerators", "zone"]),
        ({"zone": "us-central1"}, ["zone"]),
    ],
)
def test_what_cannot_be_is_refused_with_every_problem(changes: dict[str, Any], paths: list[str]) -> None:
    with pytest.raises(UserError) as refused:
        networks(changes.pop("machine", "a3-megagpu-8g"), **changes)

    assert [problem.path for problem in refused.value.problems] == paths
