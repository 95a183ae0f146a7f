"""Nodes without machines look like those of the catalog."""

import pytest

from rehearsal.controlplane.nodes import EFA, FAKE, GPU, KwokPool, pool_nodes


def test_a_node_offers_what_its_machine_has() -> None:
    (node,) = pool_nodes(KwokPool("a100", "p4d.24xlarge", 1, labels={"pool": "a100"}))
    assert node["status"]["allocatable"] == {
        "cpu": "96", "memory": f"{1152 * 1024}Mi", "pods": "110", GPU: "8", EFA: "4",
        "hugepages-2Mi": "10256Mi",
    }  # fmt: skip
    assert node["metadata"]["annotations"] == FAKE
    labels = node["metadata"]["labels"]
    assert (labels["node.kubernetes.io/instance-type"], labels["pool"]) == ("p4d.24xlarge", "a100")
    assert labels["topology.kubernetes.io/region"] == "us-east-1"


def test_a_node_on_google_cloud_has_its_gpus_and_no_adapters_of_its_own() -> None:
    (node,) = pool_nodes(KwokPool("h100", "a3-megagpu-8g", 1, zone="us-central1-a"))
    amounts = {"cpu": "208", "memory": f"{1872 * 1024}Mi", "pods": "110", GPU: "8"}
    assert node["status"]["allocatable"] == amounts
    labels = node["metadata"]["labels"]
    assert labels["topology.kubernetes.io/region"] == "us-central1"
    assert labels["topology.kubernetes.io/zone"] == "us-central1-a"


def test_blocks_of_the_network_are_labels() -> None:
    nodes = pool_nodes(KwokPool("h100", "p5.48xlarge", 6, block=2))
    layer = "topology.k8s.aws/network-node-layer-{}"
    assert [node["metadata"]["labels"][layer.format(3)] for node in nodes] == [
        f"h100-block-{index}" for index in (0, 0, 1, 1, 2, 2)
    ]
    assert len({node["metadata"]["labels"][layer.format(1)] for node in nodes}) == 1


def test_an_unknown_machine_is_refused() -> None:
    with pytest.raises(KeyError):
        pool_nodes(KwokPool("x", "p9.huge", 1))
