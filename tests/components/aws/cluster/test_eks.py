import json
from collections.abc import Mapping
from typing import Any, cast

import pulumi
import pytest
from pulumi.runtime import MockResourceArgs

from components.aws.cluster.addons import BEFORE_NODES
from components.aws.cluster.cluster_args import AwsClusterArgs
from components.aws.cluster.eks import AwsCluster
from infra.errors import UserError
from tests.components.graph import Graph, deploy_graph

DEPLOYER = "arn:aws:iam::111122223333:role/ci/deployer"
HUMAN = "arn:aws:iam::111122223333:role/platform"
ADDONS = [
    "coredns",
    "aws-ebs-csi-driver",
    "vpc-cni",
    "kube-proxy",
    "eks-pod-identity-agent",
    "aws-efs-csi-driver",
    "aws-fsx-csi-driver",
    "eks-node-monitoring-agent",
]


def arguments(**changes: Any) -> AwsClusterArgs:
    args: AwsClusterArgs = {
        "region": "us-east-1",
        "name": "dev-aws",
        "kubernetes_version": "1.35",
        "subnet_ids": ["subnet-a", "subnet-b"],
        "endpoint_public_access_cidrs": ["203.0.113.0/24"],
        "admin_principal_arns": [DEPLOYER, HUMAN],
        "log_retention_days": 90,
        "system_pool": {"machine": "m7i.xlarge", "min_nodes": 2, "max_nodes": 4},
        "addons": ADDONS,
        "tags": {"owner": "ml"},
    }
    return cast(AwsClusterArgs, {**args, **changes})


def cloud_cluster(args: MockResourceArgs) -> Mapping[str, object]:
    return {
        "endpoint": "https://k8s.example",
        "certificateAuthority": {"data": "Q0E="},
        "vpcConfig": {**args.inputs["vpcConfig"], "clusterSecurityGroupId": "sg-cluster"},
        "arn": "arn:aws:eks:us-east-1:111122223333:cluster/dev-aws",
    }


COMPUTED = {
    "aws:eks/cluster:Cluster": cloud_cluster,
    "aws:ec2/launchTemplate:LaunchTemplate": lambda _: {"latestVersion": 3},
}


class Consumer(pulumi.CustomResource):
    def __init__(self, name: str, **inputs: pulumi.Input[Any]) -> None:
        super().__init__("test:index:Consumer", name, inputs)


def cluster(**changes: Any) -> Graph:
    def program() -> Mapping[str, pulumi.Input[Any]]:
        made = AwsCluster("dev-aws", arguments(**changes))
        Consumer("kubernetes-provider", endpoint=made.endpoint)
        Consumer("certificate", ca=made.certificate_authority)
        Consumer("gpu-nodes", role=made.node_role_arn)
        return {
            "name": made.cluster_name,
            "endpoint": made.endpoint,
            "ca": made.certificate_authority,
            "group": made.security_group_id,
            "role": made.node_role_arn,
            "addons": pulumi.Output.all(*(addon.addon_name for addon in made.addons)),
            "system": made.system_node_group.labels,
        }

    return deploy_graph(program, COMPUTED)


@pytest.fixture(scope="module")
def made() -> Graph:
    return cluster()


def test_access_is_by_entries_and_only_for_those_named(made: Graph) -> None:
    access = made.find("Cluster")["accessConfig"]
    entries = {entry["principalArn"] for entry in made.all("AccessEntry").values()}
    policies = made.all("AccessPolicyAssociation").values()

    assert access == {"authenticationMode": "API", "bootstrapClusterCreatorAdminPermissions": False}
    assert entries == {DEPLOYER, HUMAN}
    assert {policy["principalArn"] for policy in policies} == {DEPLOYER, HUMAN}
    assert {policy["policyArn"] for policy in policies} == {
        "arn:aws:eks::aws:cluster-access-policy/AmazonEKSClusterAdminPolicy"
    }
    assert all(policy["accessScope"] == {"type": "cluster"} for policy in policies)


def test_reordering_admins_renames_none(made: Graph) -> None:
    other = cluster(admin_principal_arns=[HUMAN, DEPLOYER])

    assert set(other.all("AccessEntry")) == set(made.all("AccessEntry"))


def test_secrets_and_logs_are_encrypted_under_a_rotating_key_of_our_own(made: Graph) -> None:
    encryption, logs, key = made.find("Cluster")["encryptionConfig"], made.find("LogGroup"), made.find("Key")

    assert encryption["resources"] == ["secrets"]
    assert encryption["provider"]["keyArn"] == logs["kmsKeyId"]
    assert key["enableKeyRotation"] is True
    assert logs["name"] == "/aws/eks/dev-aws/cluster"
    assert logs["retentionInDays"] == 90


def test_every_control_plane_log_is_on_and_its_group_is_there_first(made: Graph) -> None:
    assert set(made.find("Cluster")["enabledClusterLogTypes"]) == {
        "api",
        "audit",
        "authenticator",
        "controllerManager",
        "scheduler",
    }
    assert "LogGroup:dev-aws-logs" in made.waits_for("Cluster:dev-aws-cluster")


def test_the_api_is_private_and_open_only_to_named_blocks(made: Graph) -> None:
    vpc = made.find("Cluster")["vpcConfig"]
    assert vpc["endpointPrivateAccess"] is True
    assert vpc["endpointPublicAccess"] is True
    assert vpc["publicAccessCidrs"] == ["203.0.113.0/24"]

    closed = cluster(endpoint_public_access_cidrs=[]).find("Cluster")["vpcConfig"]
    assert closed["endpointPrivateAccess"] is True
    assert closed["endpointPublicAccess"] is False
    assert "publicAccessCidrs" not in closed


def test_pods_with_gpus_are_packed_so_that_whole_nodes_stay_free(made: Graph) -> None:
    scoring = made.find("Cluster")["kubeSchedulerConfig"]["nodeResourcesFit"]
    weights = {row["name"]: row["weight"] for row in scoring["scoringStrategy"]["resources"]}
    assert scoring["scoringStrategy"]["type"] == "MostAllocated"
    # What is not named is not scored, so processors still count where no GPU is asked for.
    assert weights["nvidia.com/gpu"] > weights["cpu"] == weights["memory"] == 1


def test_support_is_standard_and_protection_is_a_choice(made: Graph) -> None:
    assert made.find("Cluster")["upgradePolicy"] == {"supportType": "STANDARD"}
    assert made.find("Cluster")["bootstrapSelfManagedAddons"] is False
    assert made.find("Cluster")["deletionProtection"] is False
    assert cluster(deletion_protection=True).find("Cluster")["deletionProtection"] is True


def test_the_cluster_role_serves_this_cluster_of_this_account_only(made: Graph) -> None:
    trust = json.loads(made.find("Role", "cluster-role")["assumeRolePolicy"])["Statement"][0]

    assert trust["Principal"] == {"Service": "eks.amazonaws.com"}
    assert trust["Condition"] == {
        "StringEquals": {"aws:SourceAccount": "111122223333"},
        "ArnLike": {"aws:SourceArn": "arn:aws:eks:us-east-1:111122223333:cluster/dev-aws"},
    }


def test_nodes_get_no_permission_that_pods_should_have_instead(made: Graph) -> None:
    attached = {
        a["policyArn"].rsplit("/", 1)[1]
        for name, a in made.all("RolePolicyAttachment").items()
        if name.startswith("dev-aws-node-")
    }

    assert attached == {"AmazonEKSWorkerNodePolicy", "AmazonEC2ContainerRegistryPullOnly"}


def test_addons_that_talk_to_aws_have_a_role_for_their_service_account_alone(made: Graph) -> None:
    addon = made.find("Addon", "vpc-cni")
    trust = json.loads(made.find("Role", "vpc-cni-role")["assumeRolePolicy"])["Statement"][0]

    assert [i["serviceAccount"] for i in addon["podIdentityAssociations"]] == ["aws-node"]
    assert trust["Principal"] == {"Service": "pods.eks.amazonaws.com"}
    assert trust["Action"] == ["sts:AssumeRole", "sts:TagSession"]
    assert trust["Condition"]["StringEquals"] == {
        "aws:RequestTag/eks-cluster-arn": "arn:aws:eks:us-east-1:111122223333:cluster/dev-aws",
        "aws:RequestTag/kubernetes-namespace": "kube-system",
        "aws:RequestTag/kubernetes-service-account": "aws-node",
    }
    assert made.find("RolePolicyAttachment", "AmazonEKS_CNI_Policy")["policyArn"].endswith(
        ":iam::aws:policy/AmazonEKS_CNI_Policy"
    )
    assert "podIdentityAssociations" not in made.find("Addon", "coredns")


def test_pods_get_their_addresses_by_prefix(made: Graph) -> None:
    settings = json.loads(made.find("Addon", "vpc-cni")["configurationValues"])

    assert settings["env"]["ENABLE_PREFIX_DELEGATION"] == "true"
    assert settings["enableNetworkPolicy"] == "true"


def test_the_cni_is_there_before_any_node_and_the_rest_after(made: Graph) -> None:
    for pool in ("NodeGroup:dev-aws-system", "Consumer:gpu-nodes"):
        before = made.waits_for(pool)
        assert {f"Addon:dev-aws-{name}" for name in BEFORE_NODES} <= before
        assert {
            "RolePolicyAttachment:dev-aws-node-AmazonEKSWorkerNodePolicy",
            "RolePolicyAttachment:dev-aws-vpc-cni-AmazonEKS_CNI_Policy",
        } <= before
        assert "Addon:dev-aws-coredns" not in before
    for addon in ("coredns", "aws-ebs-csi-driver", "aws-fsx-csi-driver"):
        assert "NodeGroup:dev-aws-system" in made.waits_for(f"Addon:dev-aws-{addon}")


def test_what_runs_on_the_cluster_goes_before_access_nodes_and_drivers_and_the_role_goes_last(
    made: Graph,
) -> None:
    for consumer in ("kubernetes-provider", "certificate"):
        before = made.waits_for(f"Consumer:{consumer}")
        assert {f"AccessPolicyAssociation:{name}" for name in made.all("AccessPolicyAssociation")} <= before
        assert {f"AccessEntry:{name}" for name in made.all("AccessEntry")} <= before
        assert {f"Addon:dev-aws-{name}" for name in ADDONS} <= before
        assert "NodeGroup:dev-aws-system" in before
    assert "RolePolicyAttachment:dev-aws-cluster-AmazonEKSClusterPolicy" in made.waits_for(
        "Cluster:dev-aws-cluster"
    )


def test_a_pinned_addon_has_its_version_and_the_others_eks_default() -> None:
    made = cluster(addon_versions={"coredns": "v1.14.2-eksbuild.4"})
    assert made.find("Addon", "coredns")["addonVersion"] == "v1.14.2-eksbuild.4"
    assert "addonVersion" not in made.find("Addon", "vpc-cni")


def test_drivers_of_file_systems_may_look_and_mount_and_no_more(made: Graph) -> None:
    def rights(ending: str) -> dict[str, Any]:
        (statement,) = json.loads(made.find("RolePolicy", ending)["policy"])["Statement"]
        return cast(dict[str, Any], statement)

    assert rights("aws-fsx-csi-driver-rights")["Action"] == ["fsx:DescribeFileSystems"]
    looking = rights("aws-efs-csi-driver-rights")["Action"]
    assert all(action.split(":")[1].startswith("Describe") for action in looking)
    # What it may mount, the file system says.
    assert not [name for name in made.all("RolePolicy") if "efs-csi-driver-node" in name]
    association = made.find("PodIdentityAssociation", "aws-efs-csi-driver-node-identity")
    assert association["serviceAccount"] == "efs-csi-node-sa"
    assert "PodIdentityAssociation:dev-aws-aws-efs-csi-driver-node-identity" in made.waits_for(
        "Addon:dev-aws-aws-efs-csi-driver"
    )


def test_the_gpu_monitor_runs_on_tainted_nodes(made: Graph) -> None:
    settings = json.loads(made.find("Addon", "eks-node-monitoring-agent")["configurationValues"])
    assert settings == {"dcgmAgent": {"tolerations": [{"operator": "Exists"}]}}


def test_the_driver_uses_keys_of_the_customer_through_ec2_also_the_one_before_a_change() -> None:
    keys = "arn:aws:kms:us-east-1:111122223333:key/"
    key = f"{keys}22222222-3333-4444-5555-666666666666"
    graph = cluster(disk_key_arn=key)
    assert graph.find("LaunchTemplate")["blockDeviceMappings"][0]["ebs"]["kmsKeyId"] == key
    rights = {name: json.loads(one["policy"]) for name, one in graph.all("RolePolicy").items()}
    (driver,) = [name for name, document in rights.items() if keys in str(document)]
    used, granted = rights[driver]["Statement"]
    assert "aws-ebs-csi-driver" in driver and used["Resource"] == granted["Resource"] == [f"{keys}*"]
    assert granted["Action"] == ["kms:CreateGrant"] and "kms:CreateGrant" not in used["Action"]
    through = {"kms:ViaService": "ec2.us-east-1.amazonaws.com"}
    assert used["Condition"]["StringEquals"] == granted["Condition"]["StringEquals"] == through
    assert granted["Condition"]["Bool"] == {"kms:GrantIsForAWSResource": "true"}


def test_all_wanted_addons_are_installed_and_given_out_to_wait_for(made: Graph) -> None:
    assert sorted(made.outputs["addons"]) == sorted(ADDONS)
    assert {a["resolveConflictsOnCreate"] for a in made.all("Addon").values()} == {"OVERWRITE"}


def test_system_nodes_are_hardened_and_sized_by_the_autoscaler_after_creation(made: Graph) -> None:
    group, template = made.find("NodeGroup"), made.find("LaunchTemplate")
    disk = template["blockDeviceMappings"][0]["ebs"]

    assert template["metadataOptions"] == {
        "httpEndpoint": "enabled",
        "httpTokens": "required",
        "httpPutResponseHopLimit": 1,
    }
    assert (disk["volumeType"], disk["encrypted"]) == ("gp3", "true")
    # That of the request for the alias, not the alias: the driver of volumes clones under equal keys alone.
    assert disk["kmsKeyId"].endswith(":key/alias/aws/ebs"), "answer of the recorder"
    assert {s["resourceType"] for s in template["tagSpecifications"]} == {
        "instance",
        "volume",
        "network-interface",
    }
    assert all(s["tags"]["owner"] == "ml" for s in template["tagSpecifications"])
    assert "vpcSecurityGroupIds" not in template
    assert group["launchTemplate"]["version"] == "3"
    assert group["scalingConfig"] == {"minSize": 2, "maxSize": 4, "desiredSize": 2}
    assert group["nodeRepairConfig"]["enabled"] is True
    assert made.ignored["NodeGroup:dev-aws-system"] == ["scalingConfig.desiredSize"]


@pytest.mark.parametrize(
    ("machine", "ami"), [("m7i.xlarge", "AL2023_x86_64_STANDARD"), ("c7gn.large", "AL2023_ARM_64_STANDARD")]
)
def test_the_image_fits_the_processor(machine: str, ami: str) -> None:
    pool = {"machine": machine, "min_nodes": 1, "max_nodes": 1}

    assert cluster(system_pool=pool).find("NodeGroup")["amiType"] == ami


def test_outputs_are_what_consumers_need(made: Graph) -> None:
    assert made.outputs["name"] == "dev-aws"
    assert made.outputs["endpoint"] == "https://k8s.example"
    assert made.outputs["ca"] == "Q0E="
    assert made.outputs["group"] == "sg-cluster"
    assert made.outputs["system"] == {"trainstack.dev/pool": "system"}


POOL = {"machine": "m7i.large", "min_nodes": 1, "max_nodes": 1}


@pytest.mark.parametrize(
    ("changes", "paths"),
    [
        ({"endpoint_public_access_cidrs": ["0.0.0.0/0"]}, ["endpoint_public_access_cidrs[0]"]),
        ({"endpoint_public_access_cidrs": ["10.0.0.0/8", "::/0"]}, ["endpoint_public_access_cidrs[1]"]),
        ({"endpoint_public_access_cidrs": ["office"]}, ["endpoint_public_access_cidrs[0]"]),
        ({"admin_principal_arns": []}, ["admin_principal_arns"]),
        ({"admin_principal_arns": [HUMAN, HUMAN]}, ["admin_principal_arns"]),
        (
            {"admin_principal_arns": ["arn:aws:sts::111122223333:assumed-role/platform/me", HUMAN]},
            ["admin_principal_arns[0]"],
        ),
        ({"admin_principal_arns": ["arn:aws:iam::111122223333:group/ml"]}, ["admin_principal_arns[0]"]),
        ({"addons": [*ADDONS, "no-such-addon"]}, ["addons[8]"]),
        ({"addons": [*ADDONS, "coredns"]}, ["addons"]),
        ({"addons": ["coredns"]}, ["addons"]),
        ({"addons": [*ADDONS, "aws-mountpoint-s3-csi-driver"]}, ["addons[8]"]),
        ({"name": "-dev"}, ["name"]),
        ({"system_pool": {**POOL, "min_nodes": 0, "max_nodes": 0}}, ["system_pool.max_nodes"]),
        ({"name": "", "admin_principal_arns": []}, ["name", "admin_principal_arns"]),
    ],
)
def test_what_aws_or_a_security_review_would_refuse_is_refused(
    changes: dict[str, Any], paths: list[str]
) -> None:
    with pytest.raises(UserError) as refused:
        cluster(**changes)

    assert [problem.path for problem in refused.value.problems] == paths
