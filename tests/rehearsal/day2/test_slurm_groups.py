"""Compute node groups of AWS PCS that are replaced while a queue uses them."""

import json
from collections.abc import Callable
from typing import Literal

import pulumi_aws as aws
import pytest
from pulumi import automation

from components.aws.slurm.cluster import AwsSlurmCluster
from components.aws.slurm.nodes import AwsSlurmNodes, AwsSlurmQueue
from components.aws.slurm.role import AwsSlurmRole
from tests.rehearsal.runs.updates import changes, refused

Size = Literal["SMALL", "MEDIUM"]
Select = Callable[[Callable[[], None]], automation.Stack]


def program(machine: str, size: Size = "SMALL", most: int = 2) -> Callable[[], None]:
    def run() -> None:
        vpc = aws.ec2.Vpc("vpc", cidr_block="10.0.0.0/16")
        subnet = aws.ec2.Subnet("subnet", vpc_id=vpc.id, cidr_block="10.0.0.0/24")
        closed = aws.ec2.SecurityGroup("nodes", vpc_id=vpc.id)
        cluster = AwsSlurmCluster(
            "system",
            {
                "region": "us-east-1",
                "name": "large",
                "version": "25.11",
                "size": size,
                "subnet_id": subnet.id,
                "security_group_id": closed.id,
                "settings": {},
                "idle_seconds": 600,
                "log_retention_days": 30,
                "tags": {},
            },
        ).cluster_id
        nodes = AwsSlurmNodes(
            "gpus",
            {
                "cluster_id": cluster,
                "name": "gpus",
                "machine": machine,
                "image_id": "ami-00000000000000000",
                "purchase": "on_demand",
                "subnet_ids": [subnet.id],
                "security_group_id": closed.id,
                "profile_arn": AwsSlurmRole("role").profile_arn,
                "rdma": False,
                "min_nodes": 0,
                "max_nodes": most,
                "disk_gib": 100,
                "user_data": "",
                "settings": {},
                "tags": {},
            },
        )
        AwsSlurmQueue(
            "queue", {"cluster_id": cluster, "name": "gpus", "groups": [nodes], "settings": {}, "tags": {}}
        )

    return run


@pytest.fixture
def deployed(stack: Select) -> automation.Stack:
    found = stack(program("g6.2xlarge"))
    found.set_config("aws:region", automation.ConfigValue("us-east-1"))
    found.up()
    return found


@pytest.mark.usefixtures("deployed")
def test_another_machine_type_replaces_group_and_queue(stack: Select) -> None:
    assert changes(stack(program("g6.4xlarge")).up())["replace"] == 2


def test_another_size_is_refused_before_anything_is_deleted(
    deployed: automation.Stack, stack: Select
) -> None:
    def deployed_ids() -> set[str]:
        found = json.loads(json.dumps(deployed.export_stack().deployment))["resources"]
        return {one["id"] for one in found if one["type"] == "aws:cloudcontrol/resource:Resource"}

    before = deployed_ids()
    assert "already exists" in refused(stack(program("g6.2xlarge", "MEDIUM")))
    assert deployed_ids() == before and len(before) == 3


@pytest.mark.usefixtures("deployed")
def test_a_larger_pool_replaces_nothing(stack: Select) -> None:
    found = changes(stack(program("g6.2xlarge", most=4)).up())
    assert found["update"] == 1 and "replace" not in found
