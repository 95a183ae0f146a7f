"""Nodes for jobs that ask for no GPU: nothing keeps them off, and nothing of a GPU node is there."""

from collections.abc import Mapping
from typing import Any, cast

import pulumi
import pytest

from components.aws.pools.cpu_pool import AwsCpuPool, AwsCpuPoolArgs
from components.aws.pools.offers import cpu_offer
from components.aws.pools.zone_groups import group_of_zone
from infra.catalog.aws import facts
from infra.errors import UserError
from tests.components.aws.computed import COMPUTED
from tests.components.graph import Graph, deploy_graph

ARGS = {
    "pool": "cpu",
    "purpose": "data",
    "cluster_name": "dev",
    "kubernetes_version": "1.35",
    "node_role_arn": "arn:role",
    "machine": "m6i.4xlarge",
    "subnets": {"us-east-1a": "subnet-a"},
    "purchase": "on_demand",
    "min_nodes": 0,
    "max_nodes": 4,
    "disk_gib": 300,
    "disk_key_arn": "arn:aws:kms:us-east-1:111122223333:alias/aws/ebs",
    "tags": {"trainstack:stack": "dev"},
    "launch_tags": {"owner": "ml"},
}


def pool(**changes: Any) -> Graph:
    def program() -> Mapping[str, pulumi.Input[Any]]:
        return {"names": AwsCpuPool("dev-cpu", cast(AwsCpuPoolArgs, ARGS | changes)).node_group_names}

    return deploy_graph(program, COMPUTED)


def test_nothing_keeps_jobs_without_gpus_off_the_nodes() -> None:
    group = pool().find("NodeGroup")
    assert [taint["effect"] for taint in group["taints"]] == ["PREFER_NO_SCHEDULE"]
    assert group["amiType"] == "AL2023_x86_64_STANDARD"
    assert group["labels"]["trainstack.dev/pool"] == "cpu"
    assert "k8s.amazonaws.com/accelerator" not in group["labels"]
    assert group["scalingConfig"] == {"minSize": 0, "maxSize": 4, "desiredSize": 0}


def test_a_node_ends_only_when_no_job_is_left_on_it() -> None:
    tags = {tag["tag"]["key"]: tag["tag"]["value"] for tag in pool().all("autoscaling/tag:Tag").values()}
    options = {key.rsplit("/", 1)[-1]: value for key, value in tags.items() if "/autoscaling-options/" in key}
    assert options == {"scaledownutilizationthreshold": "0", "ignoredaemonsetsutilization": "true"}


def test_each_zone_has_a_group_of_its_own() -> None:
    """Auto Scaling balances a group over several zones, and ends nodes with jobs for it (AZRebalance)."""
    zones = {f"us-east-1{zone}": f"subnet-{zone}" for zone in "abc"}
    made = pool(subnets=zones, min_nodes=4, max_nodes=8)
    groups = made.all("NodeGroup")
    assert {name: group["subnetIds"] for name, group in groups.items()} == {
        f"dev-cpu-nodes-{zone}": [subnet] for zone, subnet in zones.items()
    }
    sizes = [group["scalingConfig"] for group in groups.values()]
    assert sum(size["minSize"] for size in sizes) == 4
    assert all(size["maxSize"] == 8 for size in sizes), "another zone may have no machines"
    assert len({str(group["labels"]) for group in groups.values()}) == 1, "one flavor of Kueue"
    assert len(made.all("LaunchTemplate")) == 1
    tags = made.all("autoscaling/tag:Tag")
    assert len({*tags}) == len(zones) * 3, "each group has its tags"


def test_names_of_groups_fit_for_the_longest_zone() -> None:
    name = "a-stack-with-a-rather-long-name-notebooks"
    found = group_of_zone(name, "ap-southeast-1a"), group_of_zone(name, "ap-southeast-1b")
    # The provider adds a dash and seven characters; EKS takes 63.
    assert all(len(one.name) + 8 <= 63 for one in found) and found[0].name != found[1].name


def test_disks_are_encrypted_and_pods_do_not_take_the_nodes_role() -> None:
    template = pool().find("LaunchTemplate")
    assert template["instanceType"] == "m6i.4xlarge"
    (disk,) = template["blockDeviceMappings"]
    assert disk["ebs"]["encrypted"] == "true"
    assert template["metadataOptions"]["httpPutResponseHopLimit"] == 1


def test_arm_nodes_get_their_image_and_spot_is_spot() -> None:
    group = pool(machine="m7g.4xlarge", purchase="spot").find("NodeGroup")
    assert (group["amiType"], group["capacityType"]) == ("AL2023_ARM_64_STANDARD", "SPOT")


def test_everything_that_cannot_run_is_refused_at_once() -> None:
    with pytest.raises(UserError) as refused:
        pool(machine="m6i.large", purchase="reserved", min_nodes=5)
    assert {problem.path for problem in refused.value.problems} == {
        "cpu.machine", "cpu.purchase", "cpu.min_nodes",
    }  # fmt: skip


def test_every_type_that_a_pool_may_have_leaves_something_for_jobs() -> None:
    for name in facts.cpu_types:
        machine = facts.cpu_type(name)
        if machine is not None and machine.vcpu >= 4:
            offer = cpu_offer(machine)
            assert offer["cpu"] >= 1 and offer["memory_gib"] >= 1, name
