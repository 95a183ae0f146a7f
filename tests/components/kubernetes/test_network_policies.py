"""Namespaces of ours, and what their policies let in and out."""

from collections.abc import Mapping
from typing import Any

import pulumi

from components.kubernetes.network_policies import Ports, closed, controllers
from tests.components.graph import Graph, deploy_graph

TCP = {"protocol": "TCP"}


def made() -> Graph:
    def program() -> Mapping[str, pulumi.Input[Any]]:
        def child(opts: pulumi.ResourceOptions | None = None) -> pulumi.ResourceOptions:
            return opts or pulumi.ResourceOptions()

        ports = Ports(api_server=(9443, 8082), metrics=(8443,))
        controllers("dev-kueue", "kueue-system", ports, ["10.0.0.0/16", "10.1.0.0/16"], child)
        controllers("dev-keeper", "keeper", Ports(api_server=(), metrics=(8080,)), [], child)
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
