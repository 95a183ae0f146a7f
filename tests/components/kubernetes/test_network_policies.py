"""Namespaces of ours, and what their policies let in and out."""

from collections.abc import Mapping
from typing import Any

import pulumi
import pytest

from components.kubernetes.network_policies import (
    PlatformNetwork,
    Ports,
    api_server,
    closed,
    controllers,
    out_to_dns,
    platforms,
)
from tests.components.graph import Graph, deploy_graph

TCP = {"protocol": "TCP"}


def plain(rules: Any) -> list[dict[str, Any]]:
    """Rules without the types of inputs."""
    return list(rules)


def made() -> Graph:
    def program() -> Mapping[str, pulumi.Input[Any]]:
        def child(opts: pulumi.ResourceOptions | None = None) -> pulumi.ResourceOptions:
            return opts or pulumi.ResourceOptions()

        ports = Ports(api_server=(9443, 8082), metrics=(8443,))
        eks = PlatformNetwork("eks", ["10.0.0.0/16", "10.1.0.0/16"])
        controllers("dev-kueue", "kueue-system", ports, eks, child)
        for platform in platforms():
            controllers(f"dev-{platform}", platform, ports, PlatformNetwork(platform, ["10.2.0.0/16"]), child)
        controllers("dev-keeper", "keeper", Ports(api_server=(), metrics=(8080,)), None, child)
        closed("dev-in", "one", "closed", child())
        closed("dev-both", "two", "closed", child(), out=False)
        return {}

    return deploy_graph(program)


def test_a_controller_is_reached_by_the_api_server_and_by_readers_of_metrics() -> None:
    spec = made().find("NetworkPolicy", "dev-kueue-policy")["spec"]
    ranges = [{"ipBlock": {"cidr": cidr}} for cidr in ("10.0.0.0/16", "10.1.0.0/16")]
    readers = {"namespaceSelector": {"matchLabels": {"trainstack.dev/metrics": "allowed"}}}
    assert spec["ingress"] == [
        {"from": ranges, "ports": [{"port": 9443, **TCP}, {"port": 8082, **TCP}]},
        {"from": [readers], "ports": [{"port": 8443, **TCP}]},
    ]
    assert spec["podSelector"] == {}


def test_a_program_without_webhooks_is_reached_by_readers_of_metrics_alone() -> None:
    spec = made().find("NetworkPolicy", "dev-keeper-policy")["spec"]
    readers = {"namespaceSelector": {"matchLabels": {"trainstack.dev/metrics": "allowed"}}}
    # A rule without peers would admit all.
    assert spec["ingress"] == [{"from": [readers], "ports": [{"port": 8080, **TCP}]}]


def test_its_namespace_takes_restricted_pods_only_and_comes_before_its_policy() -> None:
    graph = made()
    labels = graph.find("Namespace", "dev-kueue-namespace")["metadata"]["labels"]
    assert set(labels.values()) == {"restricted"}
    assert "pod-security.kubernetes.io/enforce" in labels
    assert "Namespace:dev-kueue-namespace" in graph.waits_for("NetworkPolicy:dev-kueue-policy")


def test_a_closed_namespace_admits_no_pod_and_one_without_egress_sends_nothing() -> None:
    graph = made()
    assert graph.find("NetworkPolicy", "dev-in")["spec"] == {"podSelector": {}, "policyTypes": ["Ingress"]}
    sealed = graph.find("NetworkPolicy", "dev-both")["spec"]
    assert sealed == {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}


def test_agents_that_relay_connections_of_the_api_server_are_admitted_by_their_labels() -> None:
    from_api_server, _ = made().find("NetworkPolicy", "dev-gke-policy")["spec"]["ingress"]
    system = {"matchLabels": {"kubernetes.io/metadata.name": "kube-system"}}
    agents = {"matchLabels": {"k8s-app": "konnectivity-agent"}}
    assert from_api_server["from"] == [
        {"namespaceSelector": system, "podSelector": agents},
        {"ipBlock": {"cidr": "10.2.0.0/16"}},
    ]


def test_pods_of_a_host_network_match_beside_an_empty_selector_of_pods() -> None:
    from_api_server, _ = made().find("NetworkPolicy", "dev-openshift-policy")["spec"]["ingress"]
    labels = {"matchLabels": {"policy-group.network.openshift.io/host-network": ""}}
    assert from_api_server["from"] == [{"namespaceSelector": labels, "podSelector": {}}]


def test_egress_reaches_the_api_server_at_its_own_port_where_policies_see_it() -> None:
    def asked(platform: str) -> set[int]:
        egress = made().find("NetworkPolicy", f"dev-{platform}-policy")["spec"]["egress"]
        return {port["port"] for rule in egress if "to" not in rule for port in rule["ports"]}

    assert asked("eks") == asked("gke") == {443}
    assert asked("kubeadm") == asked("openshift") == {443, 6443}


def test_dns_of_a_node_is_an_address_and_that_of_openshift_has_its_own_namespace_and_port() -> None:
    *pods, node = plain(out_to_dns("gke"))
    assert {"ip_block": {"cidr": "169.254.20.10/32"}} in node["to"]
    (openshift,) = plain(out_to_dns("openshift"))
    assert {port["port"] for port in openshift["ports"]} == {5353}
    (peer,) = openshift["to"]
    assert peer["namespace_selector"]["match_labels"] == {"kubernetes.io/metadata.name": "openshift-dns"}
    # A program's policy is the same on both clouds: it has the peers of both.
    assert plain(out_to_dns()) == [*pods, node]


@pytest.mark.parametrize("platform", platforms())
def test_every_platform_admits_its_api_server_and_has_a_dated_source(platform: str) -> None:
    row = platforms()[platform]
    assert api_server(PlatformNetwork(platform, ["10.0.0.0/16"]))
    assert row.source and row.date.year >= 2026 and 443 in row.api_ports and row.dns
