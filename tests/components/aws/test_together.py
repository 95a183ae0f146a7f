"""Network, cluster and GPU pool wired to each other by their outputs alone, without any `depends_on`."""

from collections.abc import Mapping
from typing import Any

import pulumi
import pulumi_aws as aws
import pytest

from components.aws.cluster.eks import AwsCluster
from components.aws.network.vpc import AwsNetwork
from components.aws.pools.gpu_pool import AwsGpuPool
from tests.components.aws.computed import COMPUTED
from tests.components.graph import Graph, deploy_graph


def program() -> Mapping[str, pulumi.Input[Any]]:
    provider = aws.Provider("cloud", region="us-east-1")
    opts = pulumi.ResourceOptions(providers=[provider])
    network = AwsNetwork(
        "dev-aws",
        {
            "region": "us-east-1",
            "cidr": "10.0.0.0/16",
            "zones": ["us-east-1a", "us-east-1b"],
            "nat_per_zone": False,
            "flow_log_retention_days": 30,
            "interface_endpoints": ["ecr.api", "ecr.dkr", "sts"],
        },
        opts,
    )
    cluster = AwsCluster(
        "dev-aws-eks",
        {
            "region": "us-east-1",
            "name": "dev-aws",
            "kubernetes_version": "1.35",
            "subnet_ids": network.private_subnet_ids,
            "endpoint_public_access_cidrs": [],
            "admin_principal_arns": ["arn:aws:iam::111122223333:role/platform"],
            "log_retention_days": 90,
            "system_pool": {"machine": "m7i.large", "min_nodes": 2, "max_nodes": 3},
            "addons": ["vpc-cni", "kube-proxy", "coredns", "eks-pod-identity-agent"],
        },
        opts,
    )
    pool = AwsGpuPool(
        "dev-aws-train",
        {
            "pool": "train",
            "purpose": "training",
            "cluster_name": cluster.cluster_name,
            "kubernetes_version": cluster.kubernetes_version,
            "node_role_arn": cluster.node_role_arn,
            "cluster_security_group_id": cluster.security_group_id,
            "efa_security_group_id": network.efa_security_group_id,
            "machine": "p4d.24xlarge",
            "subnets": {"us-east-1b": network.private_subnet_id_by_zone["us-east-1b"]},
            "rdma": True,
            "purchase": "on_demand",
            "min_nodes": 0,
            "max_nodes": 4,
            "disk_gib": 200,
            "disk_key_arn": cluster.disk_key_arn,
            "repair": {"at_once": 1, "stop_above": 2, "rules": []},
            "launch_tags": {},
            "labels": {},
            "tags": {},
        },
        opts,
    )
    return {"pool": pool.node_group_names}


@pytest.fixture(scope="module")
def stack() -> Graph:
    return deploy_graph(program, COMPUTED)


def test_gpu_nodes_come_up_with_a_way_out_a_fabric_and_a_cni_and_go_before_them(stack: Graph) -> None:
    before = stack.waits_for("NodeGroup:dev-aws-train-nodes-us-east-1b")

    assert {
        "Route:dev-aws-private-us-east-1b-nat",
        "RouteTableAssociation:dev-aws-private-us-east-1b",
        "NatGateway:dev-aws-nat-us-east-1a",
    } <= before
    assert {
        "SecurityGroupIngressRule:dev-aws-efa-from-self",
        "SecurityGroupEgressRule:dev-aws-efa-to-self",
    } <= before
    assert {
        "Addon:dev-aws-eks-vpc-cni",
        "RolePolicyAttachment:dev-aws-eks-vpc-cni-AmazonEKS_CNI_Policy",
    } <= before
    assert {
        "PlacementGroup:dev-aws-train-close",
        "RolePolicyAttachment:dev-aws-eks-node-AmazonEKSWorkerNodePolicy",
    } <= before


def test_the_control_plane_comes_up_in_subnets_that_have_a_way_out(stack: Graph) -> None:
    assert {"Route:dev-aws-private-us-east-1a-nat", "NatGateway:dev-aws-nat-us-east-1a"} <= stack.waits_for(
        "Cluster:dev-aws-eks-cluster"
    )


def test_every_resource_is_made_through_the_provider_the_components_were_given(stack: Graph) -> None:
    elsewhere = [
        asked.name
        for asked in stack.cloud.asked
        if asked.type.startswith("aws:") and "cloud" not in asked.provider
    ]

    assert elsewhere == []


def test_nothing_waits_for_itself(stack: Graph) -> None:
    assert [name for name in stack.edges if name in stack.waits_for(name)] == []
