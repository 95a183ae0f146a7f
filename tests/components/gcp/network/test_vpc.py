"""The network of nodes: private, watched, with one way out and a peering that can be undone."""

from collections.abc import Mapping
from typing import Any, cast

import pulumi
import pytest

from components.gcp.network.vpc import GcpNetwork, GcpNetworkArgs
from infra.errors import UserError
from tests.components.gcp.computed import COMPUTED, PROJECT
from tests.components.graph import Graph, deploy_graph


class Consumer(pulumi.CustomResource):
    def __init__(self, name: str, **inputs: pulumi.Input[Any]) -> None:
        super().__init__("test:index:Consumer", name, inputs)


def network(**changes: Any) -> Graph:
    args: GcpNetworkArgs = {
        "project": PROJECT,
        "region": "us-central1",
        "cidr": "10.0.0.0/16",
        "pods_per_node": 32,
        "flow_log_retention_days": 90,
    }

    def program() -> Mapping[str, pulumi.Input[Any]]:
        made = GcpNetwork("dev-network", cast(GcpNetworkArgs, {**args, **changes}))
        Consumer("cluster", subnetwork=made.subnetwork_id)
        Consumer("link", subnetwork=made.subnetwork_self_link)
        Consumer("database", network=made.services_network)
        return {
            "network": made.network_id,
            "name": made.network_name,
            "subnetwork": made.subnetwork_id,
            "services": made.services_network,
            "pods": made.pod_range_name,
            "service_range": made.service_range_name,
        }

    return deploy_graph(program, COMPUTED)


@pytest.fixture(scope="module")
def made() -> Graph:
    return network()


def test_there_is_one_network_of_ours_alone_with_jumbo_packets(made: Graph) -> None:
    vpc = made.find("compute/network:Network")

    assert vpc["autoCreateSubnetworks"] is False
    assert vpc["mtu"] == 8896
    assert network(mtu=8244).find("compute/network:Network")["mtu"] == 8244


def test_nodes_pods_and_services_have_ranges_and_reach_google_privately(made: Graph) -> None:
    nodes = made.find("Subnetwork")

    assert nodes["ipCidrRange"] == "10.0.128.0/20"
    assert {one["rangeName"]: one["ipCidrRange"] for one in nodes["secondaryIpRanges"]} == {
        "pods": "10.0.0.0/17",
        "services": "10.0.144.0/20",
    }
    assert nodes["privateIpGoogleAccess"] is True
    assert made.outputs["pods"] == "pods"
    assert made.outputs["service_range"] == "services"


def test_flows_are_logged_and_kept_for_as_long_as_asked(made: Graph) -> None:
    log = made.find("Subnetwork")["logConfig"]
    bucket, sink = made.find("ProjectBucketConfig"), made.find("ProjectSink")

    assert log["metadata"] == "INCLUDE_ALL_METADATA"
    assert 0 < log["flowSampling"] <= 1
    assert bucket["retentionDays"] == 90
    assert bucket["location"] == "us-central1"
    # A deleted bucket's name is taken for a week: it has to differ when a stack is made again.
    assert bucket["bucketId"] == made.outputs["name"]
    assert sink["destination"] == "logging.googleapis.com/dev-network-logs-id"
    assert "vpc_flows" in sink["filter"]
    assert 'subnetwork_name=("dev-network-nodes")' in sink["filter"]
    assert 'gateway_name="dev-network-nat"' in sink["filter"]


def test_nothing_has_a_public_address_but_nat_whose_ports_grow(made: Graph) -> None:
    gateway = made.find("RouterNat")

    assert not made.all("compute/address:Address")
    assert gateway["natIpAllocateOption"] == "AUTO_ONLY"
    assert gateway["enableDynamicPortAllocation"] is True
    # The service refuses both together.
    assert gateway["enableEndpointIndependentMapping"] is False
    for ports in (gateway["minPortsPerVm"], gateway["maxPortsPerVm"]):
        assert ports >= 32
        assert int(ports).bit_count() == 1, "a power of two"
    assert gateway["minPortsPerVm"] < gateway["maxPortsPerVm"]
    assert gateway["logConfig"] == {"enable": True, "filter": "ERRORS_ONLY"}


def test_nat_serves_nodes_and_pods_of_this_subnetwork_alone(made: Graph) -> None:
    gateway = made.find("RouterNat")

    assert gateway["sourceSubnetworkIpRangesToNat"] == "LIST_OF_SUBNETWORKS"
    (served,) = gateway["subnetworks"]
    assert served["name"] == "dev-network-nodes-id"
    assert set(served["sourceIpRangesToNats"]) == {"PRIMARY_IP_RANGE", "LIST_OF_SECONDARY_IP_RANGES"}
    assert served["secondaryIpRangeNames"] == ["pods"]


def test_nothing_is_let_in_by_us(made: Graph) -> None:
    assert {rule["direction"] for rule in made.all("Firewall").values()} == {"EGRESS"}


def test_servers_of_lustre_are_let_in_before_there_is_an_instance() -> None:
    made = network(lustre=True)
    ((name, rule),) = (one for one in made.all("Firewall").items() if one[1]["direction"] == "INGRESS")

    assert rule["allows"] == [{"protocol": "tcp", "ports": ["988"]}]
    reserved = made.find("GlobalAddress")
    assert rule["sourceRanges"] == [f"{reserved['address']}/{reserved['prefixLength']:g}"]
    assert f"Firewall:{name}" in made.waits_for("Consumer:database")


def test_nodes_reach_each_other_managed_services_and_https_and_the_rest_is_logged(made: Graph) -> None:
    rules = made.all("Firewall")
    allowed = {
        (one["destinationRanges"][0], entry["protocol"], tuple(entry.get("ports", ())))
        for one in rules.values()
        for entry in one.get("allows", ())
    }
    (rest,) = [one for one in rules.values() if one.get("denies")]

    assert allowed == {("10.0.0.0/16", "all", ()), ("0.0.0.0/0", "tcp", ("443",))}
    assert rest["denies"] == [{"protocol": "all"}]
    assert "logConfig" in rest
    # The allowed go first, and before GKE's own rules nothing is denied.
    assert all(one["priority"] < rest["priority"] for one in rules.values() if one.get("allows"))
    assert 1000 < rest["priority"] < 65535


def test_the_denial_comes_after_what_is_allowed_and_goes_before_it(made: Graph) -> None:
    before = made.waits_for("Firewall:dev-network-out-rest")

    assert {"Firewall:dev-network-out-inside", "Firewall:dev-network-out-https"} <= before


def test_managed_services_get_the_range_that_was_kept_for_them(made: Graph) -> None:
    reserved, peering = made.find("GlobalAddress"), made.find("Connection")

    assert reserved["purpose"] == "VPC_PEERING"
    assert reserved["addressType"] == "INTERNAL"
    assert (reserved["address"], reserved["prefixLength"]) == ("10.0.160.0", 20)
    assert peering["service"] == "servicenetworking.googleapis.com"
    assert peering["reservedPeeringRanges"] == ["dev-network-services"]
    # Cloud SQL holds the connection for days after its last instance.
    assert peering["deletionPolicy"] == "REMOVE_PEERING"


def test_what_is_placed_in_the_network_comes_after_its_ways_out_and_goes_before_them(made: Graph) -> None:
    for consumer in ("cluster", "link"):
        before = made.waits_for(f"Consumer:{consumer}")
        assert {"RouterNat:dev-network-nat", "Firewall:dev-network-out-rest"} <= before
    assert "Connection:dev-network-services" in made.waits_for("Consumer:database")
    assert "Connection:dev-network-services" not in made.waits_for("Consumer:cluster")


def test_more_nodes_than_have_room_are_refused_with_the_arithmetic() -> None:
    network(nodes={"32": 500, "64": 6})
    with pytest.raises(UserError) as refused:
        network(nodes={"32": 500, "64": 7})

    (problem,) = refused.value.problems
    assert "nodes x 64" in problem.rule
    assert "nodes x 128" in problem.rule
