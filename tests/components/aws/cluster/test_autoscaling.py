"""Cluster Autoscaler may resize the node groups of its own cluster and of no other."""

import json

from components.aws.cluster.autoscaling import autoscaler_rights


def test_it_changes_only_groups_that_eks_tagged_for_this_cluster() -> None:
    looking, resizing = json.loads(autoscaler_rights("dev"))["Statement"]
    assert all(action.split(":")[1].startswith(("Describe", "Get")) for action in looking["Action"]), (
        "looking must not change anything"
    )
    assert resizing["Condition"] == {
        "StringEquals": {"aws:ResourceTag/k8s.io/cluster-autoscaler/dev": "owned"}
    }
