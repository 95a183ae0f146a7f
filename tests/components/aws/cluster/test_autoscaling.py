"""Cluster Autoscaler may resize the node groups of its own cluster and of no other."""

import json

from components.aws.cluster.autoscaling import AwsAutoscaling, autoscaler_rights
from tests.components.graph import deploy_graph


def test_it_changes_only_groups_that_eks_tagged_for_this_cluster() -> None:
    looking, resizing = json.loads(autoscaler_rights("dev"))["Statement"]
    assert all(action.split(":")[1].startswith(("Describe", "Get")) for action in looking["Action"]), (
        "looking must not change anything"
    )
    assert resizing["Condition"] == {
        "StringEquals": {"aws:ResourceTag/k8s.io/cluster-autoscaler/dev": "owned"}
    }


def test_a_node_goes_only_when_no_job_uses_its_gpus() -> None:
    made = deploy_graph(
        lambda: {
            "release": AwsAutoscaling(
                "dev-autoscaling",
                {"region": "us-east-1", "cluster_name": "dev", "cluster_arn": "arn", "idle_minutes": 30},
            ).release_name
        }
    )
    flags = made.find("Release")["values"]["extraArgs"]
    assert flags["scale-down-gpu-utilization-threshold"] == 0
    assert flags["scale-down-unneeded-time"] == "30m"


def test_groups_of_two_zones_are_similar_whatever_their_place_in_the_network() -> None:
    """A flag is repeated by keys that differ after "_": the chart cuts them there."""
    made = deploy_graph(
        lambda: {
            "release": AwsAutoscaling(
                "dev-autoscaling",
                {"region": "us-east-1", "cluster_name": "dev", "cluster_arn": "arn", "idle_minutes": 30},
            ).release_name
        }
    )
    flags = made.find("Release")["values"]["extraArgs"]
    ignored = {str(label) for key, label in flags.items() if key.startswith("balancing-ignore-label_")}
    assert ignored == {
        "topology.ebs.csi.aws.com/zone",
        "topology.k8s.aws/zone-id",
        *(f"topology.k8s.aws/network-node-layer-{layer}" for layer in (1, 2, 3)),
    }
