"""Logs of pods and nodes are shipped from every node to one encrypted group that ends with its retention."""

import json

import pytest

from components.aws.cluster.pod_logs import AwsPodLogs
from tests.components.aws import computed
from tests.components.graph import Graph, deploy_graph


@pytest.fixture(scope="module")
def made() -> Graph:
    return deploy_graph(
        lambda: {
            "group": AwsPodLogs(
                "dev-pod-logs",
                {"region": "us-east-1", "cluster_name": "dev", "cluster_arn": "arn:c", "retention_days": 90},
            ).log_group_name
        },
        computed.COMPUTED,
    )


def test_the_group_is_encrypted_and_kept_as_long_as_the_stack_says(made: Graph) -> None:
    group = made.find("LogGroup")
    assert (group["name"], group["retentionInDays"]) == ("/trainstack/dev-pod-logs", 90)
    assert group["kmsKeyId"]


def test_its_pods_write_there_and_make_no_group(made: Graph) -> None:
    (statement,) = json.loads(made.find("RolePolicy")["policy"])["Statement"]
    assert "logs:CreateLogGroup" not in statement["Action"]
    assert all(resource != "*" for resource in statement["Resource"])
    values = made.find("Release")["values"]
    assert values["cloudWatchLogs"]["autoCreateGroup"] is False
    assert values["cloudWatchLogs"]["logGroupName"] == made.find("LogGroup")["name"]
    identity = made.find("PodIdentityAssociation")
    assert (identity["namespace"], identity["serviceAccount"]) == (
        "kube-system",
        values["serviceAccount"]["name"],
    )


def test_nodes_with_any_taint_are_covered_and_what_their_kernel_says(made: Graph) -> None:
    values = made.find("Release")["values"]
    assert values["tolerations"] == [{"operator": "Exists"}]
    assert "_TRANSPORT=kernel" in values["additionalInputs"]
