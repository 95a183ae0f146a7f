"""Bounds of a pool change while the autoscaler has added nodes outside of the state."""

import json
from collections.abc import Callable
from typing import Any

import pulumi
import pulumi_aws as aws
from pulumi import automation

from components.aws import iam
from components.aws.pools.gpu_pool import AwsGpuPool
from components.aws.pools.live_size import live_sizes
from rehearsal.client import Rehearsal
from tests.rehearsal.runs.updates import changes, refused

Select = Callable[[Callable[[], None]], automation.Stack]
GROUP = "dev-train-nodes"


def program(least: int, most: int, *, look: bool = True) -> Callable[[], None]:
    def run() -> None:
        vpc = aws.ec2.Vpc("vpc", cidr_block="10.0.0.0/16")
        subnets = [
            aws.ec2.Subnet(
                f"subnet-{zone}",
                vpc_id=vpc.id,
                cidr_block=f"10.0.{index}.0/24",
                availability_zone=f"us-east-1{zone}",
            )
            for index, zone in enumerate("ab")
        ]
        role = aws.iam.Role("role", assume_role_policy=iam.trust("eks.amazonaws.com"))
        nodes = aws.iam.Role("nodes", assume_role_policy=iam.trust("ec2.amazonaws.com"))
        cluster = aws.eks.Cluster(
            "cluster",
            name="dev",
            role_arn=role.arn,
            version="1.35",
            access_config=aws.eks.ClusterAccessConfigArgs(authentication_mode="API"),
            vpc_config=aws.eks.ClusterVpcConfigArgs(subnet_ids=[subnet.id for subnet in subnets]),
        )
        args: Any = {
            "pool": "train",
            "purpose": "training",
            "cluster_name": cluster.name,
            "kubernetes_version": cluster.version,
            "node_role_arn": nodes.arn,
            "cluster_security_group_id": cluster.vpc_config.cluster_security_group_id,
            "machine": "g6.2xlarge",
            "subnet_ids": [subnets[0].id],
            "rdma": False,
            "purchase": "on_demand",
            "min_nodes": least,
            "max_nodes": most,
            "disk_gib": 100,
            "repair": {"at_once": 1, "stop_above": 2, "rules": []},
            "labels": {},
            "tags": {},
            "launch_tags": {},
        }
        live = live_sizes("dev", [GROUP], pulumi.InvokeOptions()).get(GROUP) if look else None
        if live:
            args["live"] = live
        AwsGpuPool("dev-train", args)

    return run


def sizes(stack: automation.Stack) -> dict[str, int]:
    """Sizes of the node group in the emulated AWS, as a refresh reads them."""
    stack.refresh()
    resources = json.loads(json.dumps(stack.export_stack().deployment))["resources"]
    (group,) = (one for one in resources if one["type"] == "aws:eks/nodeGroup:NodeGroup")
    return {key: int(value) for key, value in group["outputs"]["scalingConfig"].items()}


def grown_by_the_autoscaler(rehearsal: Rehearsal, nodes: int) -> None:
    kind = "trainstack:index:AwsGpuPool$aws:eks/nodeGroup:NodeGroup"
    rehearsal.drift(f"urn:pulumi:dev::rehearsed::{kind}::{GROUP}", {"scalingConfig.desiredSize": nodes})


def test_bounds_change_around_the_nodes_that_run(rehearsal: Rehearsal, stack: Select) -> None:
    stack(program(0, 4)).up()
    grown_by_the_autoscaler(rehearsal, 3)
    assert changes(stack(program(0, 4)).up()).get("update", 0) == 0, "the size is the autoscaler's"
    assert changes(stack(program(0, 6)).up())["update"] == 1
    grown_by_the_autoscaler(rehearsal, 5)
    output = refused(stack(program(0, 4)))
    assert "train.max_nodes" in output and "5 nodes" in output
    assert sizes(stack(program(0, 6))) == {"minSize": 0, "maxSize": 6, "desiredSize": 5}


def test_the_state_alone_would_end_every_node(rehearsal: Rehearsal, stack: Select) -> None:
    """Reason to read the live size: `ignore_changes` sends the size at the group's creation."""
    stack(program(0, 4, look=False)).up()
    grown_by_the_autoscaler(rehearsal, 3)
    assert changes(stack(program(0, 6, look=False)).up())["update"] == 1
    assert sizes(stack(program(0, 6, look=False))) == {"minSize": 0, "maxSize": 6, "desiredSize": 0}
