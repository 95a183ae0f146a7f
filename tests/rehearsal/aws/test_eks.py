"""EKS clusters, access, node groups and their launch templates."""

import json
import threading
from typing import Any

import pytest

from infra.catalog.aws import facts
from rehearsal.core.model import InitFailedError, RefusalError
from tests.rehearsal.aws.harness import EKS_TRUST, Driver
from tests.rehearsal.driver import refused

EKS_VERSIONS = list(facts.eks.versions)


def test_outputs_of_a_cluster(aws: Driver) -> None:
    cluster = aws.cluster()
    assert cluster["endpoint"].startswith("https://") and cluster["endpoint"].endswith(
        ".us-east-1.eks.amazonaws.com"
    )
    group = cluster["vpcConfig"]["clusterSecurityGroupId"]
    aws.create(
        "vpc/securityGroupIngressRule:SecurityGroupIngressRule",
        securityGroupId=group,
        ipProtocol="tcp",
        fromPort=443,
        toPort=443,
        cidrIpv4="10.0.0.0/8",
    )
    assert cluster["identities"][0]["oidcs"][0]["issuer"].startswith("https://oidc.eks.")
    with pytest.raises(RefusalError, match="ResourceInUseException"):
        aws.create(
            "eks/cluster:Cluster",
            "again",
            name="dev",
            roleArn=cluster["roleArn"],
            vpcConfig=aws.made["cluster"][2]["vpcConfig"],
        )


def test_a_cluster_goes_up_one_version_at_a_time_and_keeps_the_one_it_has(aws: Driver) -> None:
    old, new, newest = EKS_VERSIONS[-3:]
    aws.cluster(version=old)
    inputs = aws.made["cluster"][2]
    with pytest.raises(RefusalError, match=rf"AWS-EKS-002.*update from {old} to {newest}.*property version"):
        aws.update("cluster", **{**inputs, "version": newest})
    assert aws.update("cluster", **{**inputs, "version": new})["version"] == new
    unsaid = {name: value for name, value in inputs.items() if name != "version"}
    assert aws.update("cluster", **unsaid)["version"] == new
    refused("AWS-EKS-002", aws.update, "cluster", **{**inputs, "version": old})


def test_access_entries_need_the_api_mode_and_policies_need_an_entry(aws: Driver) -> None:
    cluster = aws.cluster(accessConfig={"authenticationMode": "CONFIG_MAP"})
    entry = {"clusterName": "dev", "principalArn": cluster["roleArn"]}
    refused("authentication mode", aws.create, "eks/accessEntry:AccessEntry", "entry", **entry)
    aws.update(
        "cluster", **{**aws.made["cluster"][2], "accessConfig": {"authenticationMode": "API_AND_CONFIG_MAP"}}
    )
    policy = "arn:aws:eks::aws:cluster-access-policy/AmazonEKSClusterAdminPolicy"
    association = {**entry, "policyArn": policy, "accessScope": {"type": "cluster"}}
    token = "eks/accessPolicyAssociation:AccessPolicyAssociation"
    refused("has no access entry", aws.create, token, "association", **association)
    aws.create("eks/accessEntry:AccessEntry", "entry", **entry)
    aws.create(token, "association", **association)


def test_efa_interfaces_are_counted_against_the_machine_type(aws: Driver) -> None:
    def interfaces(count: int) -> list[dict[str, Any]]:
        return [
            {"networkCardIndex": n, "deviceIndex": 1 if n else 0, "interfaceType": "efa"}
            for n in range(count)
        ]

    token = "ec2/launchTemplate:LaunchTemplate"
    assert aws.check(token, instanceType="p5.48xlarge", networkInterfaces=interfaces(32)) == {}
    assert "networkInterfaces" in aws.check(
        token, instanceType="p4d.24xlarge", networkInterfaces=interfaces(5)
    )
    found = aws.check(token, instanceType="g5.xlarge", networkInterfaces=interfaces(1))
    assert "AWS-EC2-006" in found["networkInterfaces[0].interfaceType"]


def test_a_launch_template_gets_a_new_version_by_each_change(aws: Driver) -> None:
    assert (
        aws.create("ec2/launchTemplate:LaunchTemplate", "lt", instanceType="p5.48xlarge")["latestVersion"]
        == 1
    )
    changed = aws.update("lt", instanceType="p4d.24xlarge")
    assert (changed["latestVersion"], changed["defaultVersion"]) == (2, 1)


def test_tags_make_no_new_version_of_a_launch_template(aws: Driver) -> None:
    content: dict[str, Any] = {"name": "nodes", "instanceType": "g6.2xlarge"}
    aws.create("ec2/launchTemplate:LaunchTemplate", "template", **content)
    tagged = aws.update("template", **content, tags={"owner": "ml"})
    assert tagged["latestVersion"] == 1
    assert aws.update("template", **content, tags={"owner": "ml"}, userData="YQ==")["latestVersion"] == 2


def test_the_group_behind_a_node_group_is_found_by_its_tags(aws: Driver) -> None:
    cluster = aws.cluster()
    role = aws.create("iam/role:Role", "nodes", assumeRolePolicy=EKS_TRUST.replace("eks.", "ec2."))
    subnets = cluster["vpcConfig"]["subnetIds"]
    made = aws.create(
        "eks/nodeGroup:NodeGroup",
        "group",
        clusterName="dev",
        nodeGroupName="train-1234567",
        nodeRoleArn=role["arn"],
        subnetIds=subnets[:1],
        scalingConfig={"minSize": 0, "maxSize": 4, "desiredSize": 2},
    )
    name = made["resources"][0]["autoscalingGroups"][0]["name"]
    mine = [{"name": "tag:eks:cluster-name", "values": ["dev"]}]
    assert aws.invoke("autoscaling/getAmiIds:getAmiIds", filters=mine)["names"] == [name]
    other = [{"name": "tag:eks:cluster-name", "values": ["other"]}]
    assert aws.invoke("autoscaling/getAmiIds:getAmiIds", filters=other)["names"] == []
    found = aws.invoke("autoscaling/getGroup:getGroup", name=name)
    assert (found["minSize"], found["maxSize"], found["desiredCapacity"]) == (0, 4, 2)
    refused("absent", aws.invoke, "autoscaling/getGroup:getGroup", name="absent")


def test_disks_without_a_key_get_that_of_the_account(aws: Driver) -> None:
    """No node starts where the default key does not trust Auto Scaling; the key of AWS for EBS does."""
    aws.cluster()
    root = [{"Effect": "Allow", "Principal": {"AWS": "arn:aws:iam::123456789012:root"}, "Action": "kms:*"}]
    document = {"Version": "2012-10-17", "Statement": [{**one, "Resource": "*"} for one in root]}
    key = aws.create("kms/key:Key", "own", policy=json.dumps(document))
    aws.create("ebs/defaultKmsKey:DefaultKmsKey", "default", keyArn=key["arn"])

    def nodes(name: str, **disk: str) -> None:
        template = aws.create(
            "ec2/launchTemplate:LaunchTemplate",
            f"{name}-template",
            instanceType="m6i.large",
            blockDeviceMappings=[{"deviceName": "/dev/xvda", "ebs": {"encrypted": "true", **disk}}],
        )
        launch = {"id": template["id"], "version": "1"}
        _nodes(aws, name, launchTemplate=launch)

    refused("AWS-EKS-039", nodes, "unnamed")
    nodes("named", kmsKeyId="arn:aws:kms:us-east-1:123456789012:alias/aws/ebs")


def test_node_groups_need_the_right_image_and_capacity(aws: Driver) -> None:
    aws.cluster()
    subnets = aws.made["cluster"][2]["vpcConfig"]["subnetIds"]
    nodes = aws.create("iam/role:Role", "nodes", assumeRolePolicy=EKS_TRUST.replace("eks.", "ec2."))
    common = {
        "clusterName": "dev",
        "nodeRoleArn": nodes["arn"],
        "scalingConfig": {"minSize": 0, "maxSize": 2, "desiredSize": 0},
    }
    token = "eks/nodeGroup:NodeGroup"
    plain = {**common, "subnetIds": subnets, "instanceTypes": ["p5.48xlarge"]}
    assert "instanceTypes[0]" in aws.check(token, **plain, amiType="AL2023_ARM_64_NVIDIA")
    assert "launchTemplate" in aws.check(token, **plain, capacityType="CAPACITY_BLOCK")
    assert "scalingConfig" in aws.check(
        token, **{**plain, "scalingConfig": {"minSize": 3, "maxSize": 2, "desiredSize": 2}}
    )
    template = aws.create(
        "ec2/launchTemplate:LaunchTemplate",
        "lt",
        instanceType="p4d.24xlarge",
        networkInterfaces=[{"networkCardIndex": 0, "deviceIndex": 0, "interfaceType": "efa"}],
    )
    launch = {"id": template["id"], "version": "1"}
    group = aws.create(
        token, "n", **common, subnetIds=subnets, amiType="AL2023_x86_64_NVIDIA", launchTemplate=launch
    )
    assert group["resources"][0]["autoscalingGroups"][0]["name"].startswith("eks-")
    refused("nodegroups attached", aws.delete, "cluster")


ADDON, GROUP = "eks/addon:Addon", "eks/nodeGroup:NodeGroup"


def _nodes(aws: Driver, name: str, **more: Any) -> None:
    if "nodes" not in aws.made:
        aws.create("iam/role:Role", "nodes", assumeRolePolicy=EKS_TRUST.replace("eks.", "ec2."))
    aws.create(
        GROUP,
        name,
        clusterName="dev",
        nodeGroupName=name,
        nodeRoleArn=aws.made["nodes"][3]["arn"],
        subnetIds=aws.made["cluster"][2]["vpcConfig"]["subnetIds"],
        **{"scalingConfig": {"minSize": 0, "maxSize": 2, "desiredSize": 1}, **more},
    )


@pytest.fixture
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rehearsal.core.emulation.cloud._PATIENCE_S", 0.2)


GPU_TAINT = {"key": "nvidia.com/gpu", "value": "present", "effect": "NO_SCHEDULE"}


@pytest.mark.usefixtures("hurried")
@pytest.mark.parametrize("name", ["coredns", "aws-ebs-csi-driver"])
def test_an_addon_that_finds_no_node_is_there_and_degraded(aws: Driver, name: str) -> None:
    aws.cluster()
    wanted: dict[str, Any] = {"clusterName": "dev", "addonName": name}
    state = rf"\(dev:{name}\).*'ACTIVE' \(last state: 'DEGRADED', timeout: 20m0s\).*the cluster has no node"
    with pytest.raises(InitFailedError, match=state) as failed:
        aws.create(ADDON, "addon", **wanted)
    assert failed.value.id == f"dev:{name}"
    assert len(aws.state.find(type=f"aws:{ADDON}")) == 1, "the real provider leaves it, too"
    aws.cloud.delete(aws.call(f"aws:{ADDON}", "addon"), f"dev:{name}", {})
    _nodes(aws, "asleep", scalingConfig={"minSize": 0, "maxSize": 2, "desiredSize": 0})
    _nodes(aws, "gpus", taints=[GPU_TAINT])
    with pytest.raises(InitFailedError, match=rf"{name} .*\(nvidia\.com/gpu\)"):
        aws.create(ADDON, "addon", **wanted)
    _nodes(aws, "system", taints=[{**GPU_TAINT, "effect": "PREFER_NO_SCHEDULE"}])
    aws.cloud.delete(aws.call(f"aws:{ADDON}", "addon"), f"dev:{name}", {})
    aws.create(ADDON, "addon", **wanted)


@pytest.mark.usefixtures("hurried")
def test_an_addon_is_ready_where_it_may_run(aws: Driver) -> None:
    aws.cluster()
    for name in ("vpc-cni", "kube-proxy", "eks-pod-identity-agent"):
        aws.create(ADDON, name, clusterName="dev", addonName=name)
    _nodes(aws, "gpus", taints=[GPU_TAINT])
    tolerant = [{"key": "nvidia.com/gpu", "operator": "Exists"}]
    settings = {
        "coredns": {"tolerations": tolerant},
        "aws-ebs-csi-driver": {"controller": {"tolerations": tolerant}},
    }
    for name, values in settings.items():
        aws.create(ADDON, name, clusterName="dev", addonName=name, configurationValues=json.dumps(values))


@pytest.mark.usefixtures("hurried")
@pytest.mark.parametrize(
    "machines",
    [
        ("eks/fargateProfile:FargateProfile", {"clusterName": "dev", "fargateProfileName": "f"}),
        ("autoscaling/group:Group", {"minSize": 1, "maxSize": 2}),
    ],
)
def test_an_addon_may_run_on_machines_that_are_no_node_group(
    aws: Driver, machines: tuple[str, dict[str, Any]]
) -> None:
    role = aws.cluster()["roleArn"]
    token, inputs = machines
    more = {"podExecutionRoleArn": role, "selectors": [{"namespace": "x"}]} if "argate" in token else {}
    aws.create(token, "machines", **inputs, **more)
    aws.create(ADDON, "addon", clusterName="dev", addonName="coredns")


def test_an_addon_waits_for_the_nodes_that_come_beside_it(aws: Driver) -> None:
    aws.cluster()
    made: list[str] = []
    thread = threading.Thread(
        target=lambda: made.append(aws.create(ADDON, "addon", clusterName="dev", addonName="coredns")["id"])
    )
    thread.start()
    _nodes(aws, "system")
    thread.join(10)
    assert made == ["dev:coredns"]


def test_the_role_of_an_addon_must_trust_its_service_accounts(aws: Driver) -> None:
    issuer = aws.cluster()["identities"][0]["oidcs"][0]["issuer"].removeprefix("https://")
    federated = f"arn:aws:iam::123456789012:oidc-provider/{issuer}"
    for name, account in (("good", "aws-node"), ("bad", "ebs-csi-controller-sa")):
        subject = {"StringEquals": {f"{issuer}:sub": f"system:serviceaccount:kube-system:{account}"}}
        allow = {"Effect": "Allow", "Action": "sts:AssumeRoleWithWebIdentity", "Condition": subject}
        trust = json.dumps({"Statement": [{**allow, "Principal": {"Federated": federated}}]})
        role = aws.create("iam/role:Role", f"{name}-role", name=name, assumeRolePolicy=trust)["arn"]
        more = {"resolveConflictsOnCreate": "OVERWRITE", "serviceAccountRoleArn": role}
        aws.create(ADDON, name, **{"clusterName": "dev", "addonName": "vpc-cni", **more})
        aws.delete(name)
    (warning,) = aws.said
    assert all(fact in warning for fact in ("kube-system/aws-node", "AccessDenied", "(role bad)"))
