"""Nodes for jobs that ask for no GPU: nothing keeps them off, and nothing of a GPU node is there."""

from collections.abc import Mapping
from typing import Any, cast

import pulumi
import pytest

from components.aws.pools.cpu_pool import AwsCpuPool, AwsCpuPoolArgs
from components.aws.pools.offers import cpu_offer
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
    "subnet_ids": ["subnet-a", "subnet-b"],
    "purchase": "on_demand",
    "min_nodes": 0,
    "max_nodes": 4,
    "disk_gib": 300,
    "tags": {"trainstack:stack": "dev"},
    "launch_tags": {"owner": "ml"},
}


def pool(**changes: Any) -> Graph:
    def program() -> Mapping[str, pulumi.Input[Any]]:
        return {"name": AwsCpuPool("dev-cpu", cast(AwsCpuPoolArgs, ARGS | changes)).node_group_name}

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
