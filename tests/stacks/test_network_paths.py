"""Network policies of composed stacks admit the control plane and the DNS of their platform."""

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from tests.stacks.composition.composed import composed

# Stacks with a cluster, and where the API server's connections come from.
NETWORK = {"ipBlock": {"cidr": "10.0.0.0/16"}}
AGENTS = {
    "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "kube-system"}},
    "podSelector": {"matchLabels": {"k8s-app": "konnectivity-agent"}},
}
PAIRS = [("medium", "aws"), ("medium", "gcp")]
# Namespaces with webhooks, and their ports.
CALLED = {"kueue-system": {9443, 8082}, "jobset-system": {9443}, "kubeflow-system": {9443}}


def policies(pair: tuple[str, str]) -> Iterator[Mapping[str, Any]]:
    for found in composed(pair).all("NetworkPolicy").values():
        yield {**found["spec"], "namespace": found["metadata"]["namespace"]}


def numbers(rule: Mapping[str, Any]) -> set[int]:
    return {port["port"] for port in rule.get("ports", ())}


@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
def test_whatever_relays_calls_of_the_api_server_reaches_every_webhook(pair: tuple[str, str]) -> None:
    caller = AGENTS if pair[1] == "gcp" else NETWORK
    admitted = {
        policy["namespace"]: numbers(rule)
        for policy in policies(pair)
        for rule in policy.get("ingress", ())
        if caller in rule.get("from", ())
    }
    assert admitted == CALLED


def test_no_range_of_pods_calls_webhooks_on_google_cloud() -> None:
    cluster = composed(("medium", "gcp"))
    (subnet,) = [
        found
        for found in cluster.all("Subnetwork").values()
        if any(each["rangeName"] == "pods" for each in found.get("secondaryIpRanges") or ())
    ]
    pods = {each["ipCidrRange"] for each in subnet["secondaryIpRanges"]}
    ranges = {
        peer["ipBlock"]["cidr"]
        for policy in policies(("medium", "gcp"))
        for rule in policy.get("ingress", ())
        for peer in rule.get("from", ())
        if "ipBlock" in peer
    }
    assert ranges and not ranges & pods


@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
def test_a_pod_that_may_resolve_names_reaches_the_cache_of_its_node(pair: tuple[str, str]) -> None:
    resolving = [
        [peer for rule in policy["egress"] if 53 in numbers(rule) for peer in rule["to"]]
        for policy in policies(pair)
        if any(53 in numbers(rule) for rule in policy.get("egress", ()))
    ]
    assert len(resolving) > 4
    for peers in resolving:
        assert pair[1] != "gcp" or {"ipBlock": {"cidr": "169.254.20.10/32"}} in peers
        assert any("namespaceSelector" in peer for peer in peers)
