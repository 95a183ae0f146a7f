"""Bounds of a pool change while the autoscaler has added nodes outside of the state."""

import dataclasses
import json
from collections.abc import Callable
from typing import Any, cast

import pulumi
import pulumi_aws as aws
import pytest
from pulumi import automation

from components.aws import iam
from components.aws.pools import gpu_pool
from components.aws.pools.gpu_pool import AwsGpuPool
from components.aws.pools.live_size import live_sizes
from components.aws.pools.zone_groups import ZoneGroup, group_of_zone, zone_groups
from infra.engine.plan import PlannedStep, PreviewPlan
from rehearsal.aws.services.scaling import ScalingGroup
from rehearsal.client import Rehearsal
from tests.rehearsal.runs.updates import changes, refused
from trainstack.plans.drains import drains

Select = Callable[[Callable[[], None]], automation.Stack]
NODES = "aws:eks/nodeGroup:NodeGroup"
GROUP = group_of_zone("dev-train", "us-east-1a")


def program(least: int, most: int, zones: str = "a", *, look: bool = True) -> Callable[[], None]:
    def run() -> None:
        vpc = aws.ec2.Vpc("vpc", cidr_block="10.0.0.0/16")
        subnets = {
            f"us-east-1{zone}": aws.ec2.Subnet(
                f"subnet-{zone}",
                vpc_id=vpc.id,
                cidr_block=f"10.0.{index}.0/24",
                availability_zone=f"us-east-1{zone}",
            )
            for index, zone in enumerate("abc")
        }
        role = aws.iam.Role("role", assume_role_policy=iam.trust("eks.amazonaws.com"))
        nodes = aws.iam.Role("nodes", assume_role_policy=iam.trust("ec2.amazonaws.com"))
        cluster = aws.eks.Cluster(
            "cluster",
            name="dev",
            role_arn=role.arn,
            version="1.35",
            access_config=aws.eks.ClusterAccessConfigArgs(authentication_mode="API"),
            vpc_config=aws.eks.ClusterVpcConfigArgs(subnet_ids=[subnet.id for subnet in subnets.values()]),
        )
        args: Any = {
            "pool": "train",
            "purpose": "training",
            "cluster_name": cluster.name,
            "kubernetes_version": cluster.version,
            "node_role_arn": nodes.arn,
            "cluster_security_group_id": cluster.vpc_config.cluster_security_group_id,
            "machine": "g6.2xlarge",
            "subnets": {f"us-east-1{zone}": subnets[f"us-east-1{zone}"].id for zone in zones},
            "rdma": False,
            "purchase": "on_demand",
            "min_nodes": least,
            "max_nodes": most,
            "disk_gib": 100,
            "disk_key_arn": "arn:aws:kms:us-east-1:111122223333:alias/aws/ebs",
            "repair": {"at_once": 1, "stop_above": 2, "rules": []},
            "labels": {},
            "tags": {},
            "launch_tags": {"owner": "ml"},
        }
        if look:
            live = live_sizes("dev", [GROUP], pulumi.InvokeOptions())
            args["live"] = {"us-east-1a": live[GROUP.name]} if live else {}
        AwsGpuPool("dev-train", args)

    return run


def sizes(stack: automation.Stack) -> dict[str, int]:
    """Sizes of the node group in the emulated AWS, as a refresh reads them."""
    stack.refresh()
    resources = json.loads(json.dumps(stack.export_stack().deployment))["resources"]
    (group,) = (one for one in resources if one["type"] == NODES)
    return {key: int(value) for key, value in group["outputs"]["scalingConfig"].items()}


def grown_by_the_autoscaler(rehearsal: Rehearsal, nodes: int) -> None:
    kind = "trainstack:index:AwsGpuPool$aws:eks/nodeGroup:NodeGroup"
    rehearsal.drift(f"urn:pulumi:dev::rehearsed::{kind}::{GROUP.name}", {"scalingConfig.desiredSize": nodes})


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


def resources(stack: automation.Stack, kind: str) -> list[dict[str, Any]]:
    found = json.loads(json.dumps(stack.export_stack().deployment))["resources"]
    return [one for one in found if one["type"] == kind]


def test_auto_scaling_ends_no_node_with_a_job(stack: Select) -> None:
    """The autoscaler removes idle nodes, and with them the balance between zones."""
    deployed = stack(program(0, 6, "abc"))
    deployed.up()
    zones = {
        one["id"]: one["inputs"]["availabilityZone"] for one in resources(deployed, "aws:ec2/subnet:Subnet")
    }
    groups = [
        ScalingGroup(one["id"], [zones[subnet] for subnet in one["inputs"]["subnetIds"]])
        for one in resources(deployed, NODES)
    ]
    running = {groups[index % len(groups)].start(): groups[index % len(groups)] for index in range(6)}
    busy = {name for name, group in running.items() if group.instances[name] == "us-east-1a"}
    ended = [victim for name in running.keys() - busy for victim in running[name].terminate(name)]
    assert len(busy) == 2 and not busy & set(ended)


def test_zones_of_a_pool_change_without_an_end_of_other_nodes(stack: Select) -> None:
    stack(program(0, 4, "a")).up()
    added, reordered, left = (planned(stack(program(0, 4, zones))) for zones in ("ab", "ba", "b"))
    assert [*drains(added)] == [*drains(reordered)] == []
    stack(program(0, 4, "ba")).up()
    (line,) = drains(planned(stack(program(0, 4, "b"))))
    assert line.startswith(GROUP.name)
    assert [*drains(left)], "before there is a group in the other zone"


def test_the_group_of_an_earlier_version_keeps_its_nodes_under_its_new_name(
    rehearsal: Rehearsal, stack: Select, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Names had no zone; a deleted tag of the group would be one that was just made."""

    def unzoned(*args: Any) -> list[ZoneGroup]:
        return [
            dataclasses.replace(one, name="dev-train-nodes", prefix="dev-train", former=None)
            for one in zone_groups(*args)
        ]

    with monkeypatch.context() as earlier:
        earlier.setattr(gpu_pool, "zone_groups", unzoned)
        stack(program(0, 4, look=False)).up()
    kind = "trainstack:index:AwsGpuPool$aws:eks/nodeGroup:NodeGroup"
    rehearsal.drift(f"urn:pulumi:dev::rehearsed::{kind}::dev-train-nodes", {"scalingConfig.desiredSize": 3})
    (before,) = resources(stack(program(0, 6)), NODES)
    (step,) = planned(stack(program(0, 6)))
    assert step.operation == "update" and not [*drains([step])]
    stack(program(0, 6)).up()
    assert sizes(stack(program(0, 6))) == {"minSize": 0, "maxSize": 6, "desiredSize": 3}
    (after,) = resources(stack(program(0, 6)), NODES)
    assert after["id"] == before["id"] and after["urn"].endswith(GROUP.name)


def planned(stack: automation.Stack) -> list[PlannedStep]:
    """Steps of an `up` that change something."""
    plan = PreviewPlan()
    cast(Any, plan.listening(lambda on_event: cast(Any, stack.preview(on_event=on_event))))(lambda _: None)
    return [step for step in plan.steps if step.operation != "same"]
