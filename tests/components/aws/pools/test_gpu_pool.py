import base64
from collections.abc import Mapping
from typing import Any, cast

import pulumi
import pytest

from components.aws.pools.gpu_pool import AwsGpuPool
from components.aws.pools.gpu_pool_args import AwsGpuPoolArgs
from infra.catalog.errors import UnknownFactError
from infra.errors import UserError
from tests.components.graph import Computed, Graph, deploy_graph

COMPUTED: Computed = {
    "aws:ec2/launchTemplate:LaunchTemplate": lambda _: {"latestVersion": 7},
    "aws:eks/nodeGroup:NodeGroup": lambda args: {
        "nodeGroupName": f"{args.name}-1234567",
        "resources": [{"autoscalingGroups": [{"name": "eks-asg-1"}]}],
    },
}
TWO_ZONES = {"us-east-1a": "subnet-a", "us-east-1b": "subnet-b"}
BLOCK = {"purchase": "block", "reservation_id": "cr-0123456789abcdef0"}
CUT = {"kind": "mig", "partition": "1g.10gb"}
RESERVED = {"purchase": "reserved", "reservation_id": "cr-0123456789abcdef0"}


def arguments(**changes: Any) -> AwsGpuPoolArgs:
    args: AwsGpuPoolArgs = {
        "pool": "train",
        "purpose": "training",
        "cluster_name": "dev-aws",
        "kubernetes_version": "1.35",
        "node_role_arn": "arn:aws:iam::111122223333:role/nodes",
        "cluster_security_group_id": "sg-cluster",
        "efa_security_group_id": "sg-efa",
        "machine": "p5.48xlarge",
        "subnets": {"us-east-1a": "subnet-a"},
        "rdma": True,
        "purchase": "on_demand",
        "min_nodes": 0,
        "max_nodes": 4,
        "disk_gib": 200,
        "disk_key_arn": "arn:aws:kms:us-east-1:111122223333:alias/aws/ebs",
        "repair": {"at_once": 1, "stop_above": 2, "rules": []},
        "labels": {"team": "vision"},
        "tags": {"stack": "dev"},
        "launch_tags": {"owner": "ml"},
    }
    return cast(AwsGpuPoolArgs, {**args, **changes})


def pool(**changes: Any) -> Graph:
    def program() -> Mapping[str, pulumi.Input[Any]]:
        made = AwsGpuPool("dev-aws-train", arguments(**changes))
        return {"group": made.node_group_names, "labels": made.labels, "taints": made.taints}

    return deploy_graph(program, COMPUTED)


@pytest.fixture(scope="module")
def made() -> Graph:
    return pool()


def test_an_efa_pool_of_p5_has_all_32_interfaces_with_both_groups_and_one_primary(made: Graph) -> None:
    interfaces = made.find("LaunchTemplate")["networkInterfaces"]

    assert [i["networkCardIndex"] for i in interfaces] == list(range(32))
    assert sum((i["networkCardIndex"], i["deviceIndex"]) == (0, 0) for i in interfaces) == 1
    assert all(i["securityGroups"] == ["sg-cluster", "sg-efa"] for i in interfaces)
    assert "vpcSecurityGroupIds" not in made.find("LaunchTemplate")


def test_efa_nodes_lie_close_together(made: Graph) -> None:
    group = made.find("PlacementGroup")

    assert group["strategy"] == "cluster"
    assert made.find("LaunchTemplate")["placement"] == {"groupName": "dev-aws-train-close"}


def test_a_pool_without_efa_leaves_interfaces_and_placement_to_eks() -> None:
    plain = pool(rdma=False, subnets=TWO_ZONES, machine="g6.xlarge")
    template = plain.find("LaunchTemplate")

    assert "networkInterfaces" not in template
    assert "placement" not in template
    assert plain.all("PlacementGroup") == {}
    assert not [tag for tag in plain.all("Tag").values() if "node-template" in tag["tag"]["key"]]
    assert [group["subnetIds"] for group in plain.all("NodeGroup").values()] == [["subnet-a"], ["subnet-b"]]
    assert plain.outputs["labels"]["trainstack.dev/fabric"] == "tcp"


@pytest.mark.parametrize(
    ("changes", "capacity_type"),
    [
        ({"purchase": "on_demand"}, "ON_DEMAND"),
        ({"purchase": "spot"}, "SPOT"),
        (BLOCK, "CAPACITY_BLOCK"),
        (RESERVED, "ON_DEMAND"),
    ],
)
def test_capacity_is_what_eks_calls_it(changes: dict[str, str], capacity_type: str) -> None:
    assert pool(**changes).find("NodeGroup")["capacityType"] == capacity_type


def test_a_capacity_block_is_named_in_the_template_and_placed_by_aws() -> None:
    block = pool(**BLOCK)
    template = block.find("LaunchTemplate")

    assert template["instanceMarketOptions"] == {"marketType": "capacity-block"}
    assert template["instanceType"] == "p5.48xlarge"
    assert template["capacityReservationSpecification"] == {
        "capacityReservationTarget": {"capacityReservationId": "cr-0123456789abcdef0"}
    }
    assert "placement" not in template
    assert block.all("PlacementGroup") == {}


def test_a_reservation_never_falls_back_to_on_demand() -> None:
    template = pool(**RESERVED).find("LaunchTemplate")

    assert template["capacityReservationSpecification"] == {
        "capacityReservationPreference": "capacity-reservations-only",
        "capacityReservationTarget": {"capacityReservationId": "cr-0123456789abcdef0"},
    }
    assert "instanceMarketOptions" not in template
    assert "placement" not in template


def test_a_reservation_made_in_a_placement_group_is_reached_through_it() -> None:
    reserved = pool(**RESERVED, placement_group_name="bought-together")

    assert reserved.find("LaunchTemplate")["placement"] == {"groupName": "bought-together"}
    assert reserved.all("PlacementGroup") == {}


@pytest.mark.parametrize("changes", [{"purchase": "on_demand"}, {"purchase": "spot"}])
def test_other_pools_name_neither_market_nor_reservation(changes: dict[str, str]) -> None:
    template = pool(**changes).find("LaunchTemplate")

    assert "instanceMarketOptions" not in template
    assert "capacityReservationSpecification" not in template


@pytest.mark.parametrize(("changes", "delete_first"), [({}, False), (BLOCK, True)])
def test_nodes_end_before_their_successors_start(changes: dict[str, str], delete_first: bool) -> None:
    updated = pool(**changes)

    assert updated.find("NodeGroup")["updateConfig"]["updateStrategy"] == "MINIMAL"
    assert updated.delete_before_replace["NodeGroup:dev-aws-train-nodes-us-east-1a"] is delete_first


def test_faults_are_repaired_as_the_spec_says() -> None:
    rule = {
        "condition": "AcceleratedHardwareReady",
        "reason": "NvidiaXID79Error",
        "after_minutes": 30,
        "action": "Reboot",
    }
    made = pool(repair={"at_once": 2, "stop_above": 3, "rules": [rule]})
    assert made.find("NodeGroup")["nodeRepairConfig"] == {
        "enabled": True,
        "maxParallelNodesRepairedCount": 2,
        "maxUnhealthyNodeThresholdCount": 3,
        "nodeRepairConfigOverrides": [
            {
                "nodeMonitoringCondition": "AcceleratedHardwareReady",
                "nodeUnhealthyReason": "NvidiaXID79Error",
                "minRepairWaitTimeMins": 30,
                "repairAction": "Reboot",
            }
        ],
    }


def test_nodes_say_what_they_are_and_keep_others_off(made: Graph) -> None:
    group = made.find("NodeGroup")

    assert (
        group["labels"]
        == made.outputs["labels"]
        == {
            "team": "vision",
            "trainstack.dev/pool": "train",
            "trainstack.dev/purpose": "training",
            "trainstack.dev/accelerator": "h100",
            "trainstack.dev/capacity": "on-demand",
            "trainstack.dev/fabric": "efa",
            "k8s.amazonaws.com/accelerator": "h100",
        }
    )
    assert group["taints"] == [{"key": "nvidia.com/gpu", "value": "present", "effect": "NO_SCHEDULE"}]
    assert made.outputs["taints"] == {"nvidia.com/gpu": "present:NoSchedule"}


def test_the_pool_scales_to_zero_and_its_size_belongs_to_the_autoscaler(made: Graph) -> None:
    assert made.find("NodeGroup")["scalingConfig"] == {"minSize": 0, "maxSize": 4, "desiredSize": 0}
    assert made.ignored["NodeGroup:dev-aws-train-nodes-us-east-1a"] == ["scalingConfig.desiredSize"]


def test_the_autoscaler_learns_what_an_empty_efa_pool_would_offer(made: Graph) -> None:
    made_tags = [tag for tag in made.all("Tag").values() if "node-template" in tag["tag"]["key"]]
    tags = {tag["tag"]["key"].rsplit("resources/", 1)[1]: tag for tag in made_tags}

    assert tags["vpc.amazonaws.com/efa"]["tag"]["value"] == "32"
    assert tags["hugepages-2Mi"]["tag"]["value"] == "10256Mi"
    assert {tag["autoscalingGroupName"] for tag in tags.values()} == {"eks-asg-1"}
    assert all(tag["tag"]["propagateAtLaunch"] is False for tag in tags.values())


def test_nodes_with_shared_gpus_name_their_configuration_and_offer_all_shares() -> None:
    shared = {"machine": "g6.12xlarge", "purpose": "interactive", "rdma": False}
    shared["sharing"] = {"kind": "time_sharing", "clients": 3}
    made = pool(**shared)

    assert made.find("NodeGroup")["labels"]["nvidia.com/device-plugin.config"] == "turns-3"
    script = base64.b64decode(made.find("LaunchTemplate")["userData"]).decode()
    assert "envvar-when-unprivileged=false" in script  # else a pod names the GPUs of others
    tags = {tag["tag"]["key"]: tag["tag"]["value"] for tag in made.all("Tag").values()}
    assert tags["k8s.io/cluster-autoscaler/node-template/resources/nvidia.com/gpu"] == "12"
    with pytest.raises(UserError, match="sharing-not-interactive"):
        pool(**{**shared, "purpose": "training"})


def test_nodes_with_cut_gpus_cut_them_at_boot_and_offer_all_parts() -> None:
    made = pool(purpose="interactive", rdma=False, sharing={"kind": "mig", "partition": "2g.20gb"})

    assert made.find("NodeGroup")["labels"]["nvidia.com/device-plugin.config"] == "partitions"
    script = base64.b64decode(made.find("LaunchTemplate")["userData"]).decode()
    assert "-cgi 2g.20gb,2g.20gb,2g.20gb -C" in script and "envvar-when-unprivileged=false" in script
    tags = {tag["tag"]["key"]: tag["tag"]["value"] for tag in made.all("Tag").values()}
    assert tags["k8s.io/cluster-autoscaler/node-template/resources/nvidia.com/gpu"] == "24"


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"sharing": {"kind": "mig", "partition": "1g.10gb+me"}}, "unknown-partition"),
        (
            {"machine": "g6.xlarge", "sharing": {"kind": "mig", "partition": "1g.5gb"}},
            "gpu-without-partitions",
        ),
        ({"sharing": {"kind": "mig", "partition": "1g.5gb"}, "rdma": True}, "sharing-with-rdma"),
        ({"sharing": {"kind": "time_sharing", "clients": 49}}, "value-not-accepted"),
        ({"sharing": {"kind": "time_sharing", "clients": 14}}, "more-shares-than-pods"),
        ({"sharing": {"kind": "mps"}}, "unknown-gpu-sharing"),
    ],
)
def test_impossible_sharing_is_refused(changes: dict[str, Any], code: str) -> None:
    with pytest.raises(UserError, match=code):
        pool(**{"purpose": "interactive", "rdma": False, **changes})


def test_nodes_are_repaired_updated_and_hardened(made: Graph) -> None:
    group, template = made.find("NodeGroup"), made.find("LaunchTemplate")
    disk = template["blockDeviceMappings"][0]["ebs"]

    assert group["nodeRepairConfig"] == {
        "enabled": True,
        "maxParallelNodesRepairedCount": 1,
        "maxUnhealthyNodeThresholdCount": 2,
    }
    assert group["updateConfig"]["maxUnavailablePercentage"] == 33
    assert group["amiType"] == "AL2023_x86_64_NVIDIA"
    assert group["launchTemplate"]["version"] == "7"
    assert template["metadataOptions"]["httpTokens"] == "required"
    assert template["metadataOptions"]["httpPutResponseHopLimit"] == 1
    assert (disk["volumeSize"], disk["volumeType"], disk["encrypted"]) == (200, "gp3", "true")
    assert all(s["tags"]["stack"] == "dev" for s in template["tagSpecifications"])


def test_tags_that_may_change_reach_new_nodes_without_a_new_template(made: Graph) -> None:
    assert all("owner" not in s["tags"] for s in made.find("LaunchTemplate")["tagSpecifications"])
    owner = made.find("Tag", "tag-owner")
    assert owner["autoscalingGroupName"] == "eks-asg-1"
    assert owner["tag"] == {"key": "owner", "value": "ml", "propagateAtLaunch": True}


def test_what_eks_refuses_in_a_template_is_not_in_it(made: Graph) -> None:
    template = made.find("LaunchTemplate")

    assert not {"imageId", "iamInstanceProfile", "instanceInitiatedShutdownBehavior", "keyName"} & set(
        template
    )
    assert all("subnetId" not in i for i in template["networkInterfaces"])
    assert "diskSize" not in made.find("NodeGroup")
    assert "instanceTypes" not in made.find("NodeGroup")


def test_efa_nodes_set_huge_pages_aside_and_stripe_their_local_disks(made: Graph) -> None:
    user_data = base64.b64decode(made.find("LaunchTemplate")["userData"]).decode()
    assert "strategy: RAID0" in user_data
    assert "vm.nr_hugepages = 5128" in user_data

    plain = base64.b64decode(pool(rdma=False).find("LaunchTemplate")["userData"]).decode()
    assert "strategy: RAID0" in plain
    assert "hugepages" not in plain


@pytest.mark.parametrize(
    ("changes", "paths"),
    [
        ({"machine": "g4dn.xlarge"}, ["train.rdma"]),
        ({"subnets": TWO_ZONES}, ["train.subnets"]),
        ({"subnets": {}}, ["train.subnets"]),
        ({"purchase": "lottery"}, ["train.purchase"]),
        ({"purchase": "block"}, ["train.reservation_id"]),
        ({"purchase": "reserved"}, ["train.reservation_id"]),
        ({**RESERVED, "reservation_id": "r-1"}, ["train.reservation_id"]),
        ({"reservation_id": "cr-0123456789abcdef0"}, ["train.reservation_id"]),
        ({**BLOCK, "rdma": False, "subnets": TWO_ZONES}, ["train.subnets"]),
        ({**BLOCK, "machine": "g5.48xlarge"}, ["train.purchase"]),
        ({"placement_group_name": "close"}, ["train.placement_group_name"]),
        ({"min_nodes": 5}, ["train.min_nodes"]),
        ({"max_nodes": 0}, ["train.max_nodes"]),
        ({"labels": {"trainstack.dev/pool": "mine"}}, ["train.labels"]),
        (
            {"machine": "g6.xlarge", "subnets": TWO_ZONES, "purchase": "block"},
            ["train.rdma", *["train.subnets"] * 2, "train.purchase", "train.reservation_id"],
        ),
    ],
)
def test_what_cannot_run_is_refused_with_every_problem_at_once(
    changes: dict[str, Any], paths: list[str]
) -> None:
    with pytest.raises(UserError) as refused:
        pool(**changes)

    assert [problem.path for problem in refused.value.problems] == paths


def test_efa_needs_its_security_group() -> None:
    args = arguments()
    del args["efa_security_group_id"]

    def program() -> Mapping[str, pulumi.Input[Any]]:
        AwsGpuPool("dev-aws-train", args)
        return {}

    with pytest.raises(UserError, match="rdma-without-security-group"):
        deploy_graph(program)


def test_an_unknown_type_is_named_with_similar_ones() -> None:
    with pytest.raises(UnknownFactError, match=r"p5\.48xlarge"):
        pool(machine="p5.49xlarge")
