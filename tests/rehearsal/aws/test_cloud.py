"""The emulated AWS refuses what AWS refuses. Spoken to as the provider does, without an engine."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from infra.catalog.aws import facts
from rehearsal.aws.cloud import AwsCloud
from rehearsal.core.model import UNKNOWN, RefusalError
from rehearsal.core.schema import Schemas
from rehearsal.core.state import State
from tests.rehearsal import driver
from tests.rehearsal.driver import CACHE

EKS_VERSIONS = list(facts.eks.versions)
EKS_TRUST = json.dumps(
    {
        "Version": "2012-10-17",
        "Statement": [
            {"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"Service": "eks.amazonaws.com"}}
        ],
    }
)


class Driver(driver.Driver):
    """An account of its own."""

    def __init__(self, folder: Path, schemas: Schemas) -> None:
        state = State(folder / "state.sqlite")
        super().__init__("aws", state, AwsCloud(state, schemas, folder), {"region": "us-east-1"})

    def network(self) -> tuple[str, list[str]]:
        vpc = self.create("ec2/vpc:Vpc", "vpc", cidrBlock="10.0.0.0/16")["id"]
        subnets = [
            self.create(
                "ec2/subnet:Subnet",
                f"subnet-{zone}",
                vpcId=vpc,
                cidrBlock=f"10.0.{index}.0/24",
                availabilityZone=f"us-east-1{zone}",
            )["id"]
            for index, zone in enumerate("ab")
        ]
        return vpc, subnets

    def cluster(self, **more: Any) -> dict[str, Any]:
        _, subnets = self.network()
        role = self.create("iam/role:Role", "role", assumeRolePolicy=EKS_TRUST)
        return self.create(
            "eks/cluster:Cluster",
            "cluster",
            name="dev",
            roleArn=role["arn"],
            vpcConfig={"subnetIds": subnets},
            **{"accessConfig": {"authenticationMode": "API"}, **more},
        )


@pytest.fixture(scope="module")
def schemas() -> Iterator[Schemas]:
    schemas = Schemas("aws", CACHE)
    yield schemas
    schemas.close()


@pytest.fixture
def aws(tmp_path: Path, schemas: Schemas) -> Iterator[Driver]:
    aws = Driver(tmp_path, schemas)
    yield aws
    aws.state.close()


def test_ids_and_arns_have_the_clouds_form(aws: Driver) -> None:
    vpc = aws.create("ec2/vpc:Vpc", cidrBlock="10.0.0.0/16")
    assert vpc["id"].startswith("vpc-") and len(vpc["id"]) == len("vpc-") + 17
    assert vpc["arn"] == f"arn:aws:ec2:us-east-1:123456789012:vpc/{vpc['id']}"
    key = aws.create("kms/key:Key", "key")
    assert key["arn"].endswith(f":key/{key['id']}")
    topic = aws.create("sns/topic:Topic", "alerts")
    assert topic["id"] == topic["arn"] == f"arn:aws:sns:us-east-1:123456789012:{topic['name']}"


def test_a_name_is_made_from_the_logical_name_and_kept(aws: Driver) -> None:
    bucket = aws.create("s3/bucket:Bucket", "Check_Points")
    assert bucket["bucket"].startswith("check-points-")
    assert aws.diff("Check_Points").changed == ()


def test_a_preview_leaves_nothing_and_knows_only_what_was_given(aws: Driver) -> None:
    vpc = aws.create("ec2/vpc:Vpc", preview=True, cidrBlock="10.0.0.0/16")
    assert vpc["id"] == "" and vpc["arn"] is UNKNOWN and vpc["cidrBlock"] == "10.0.0.0/16"
    assert aws.state.count() == 0


def test_a_reference_to_nothing_is_refused_with_the_services_code_and_the_path(aws: Driver) -> None:
    with pytest.raises(RefusalError, match=r"InvalidVpcID\.NotFound.*property vpcId"):
        aws.create("ec2/subnet:Subnet", vpcId="vpc-0123456789abcdef0", cidrBlock="10.0.0.0/24")
    aws.network()
    with pytest.raises(RefusalError, match=r"NoSuchEntity.*property roleArn"):
        aws.create(
            "eks/cluster:Cluster",
            roleArn="arn:aws:iam::123456789012:role/nobody",
            vpcConfig={"subnetIds": [aws.made["subnet-a"][1], aws.made["subnet-b"][1]]},
        )
    with pytest.raises(RefusalError, match=r"InvalidSubnetID\.NotFound.*vpcConfig\.subnetIds\[1\]"):
        aws.create(
            "eks/cluster:Cluster",
            roleArn="arn:aws:iam::999999999999:role/theirs",
            vpcConfig={"subnetIds": [aws.made["subnet-a"][1], "subnet-0123456789abcdef0"]},
        )


def test_a_reference_into_another_region_is_refused(aws: Driver) -> None:
    vpc = aws.create("ec2/vpc:Vpc", cidrBlock="10.0.0.0/16", region="eu-west-1")["id"]
    with pytest.raises(RefusalError, match="exists in 123456789012/eu-west-1"):
        aws.create("ec2/subnet:Subnet", vpcId=vpc, cidrBlock="10.0.0.0/24")


def test_policies_of_aws_and_of_other_accounts_are_not_looked_up(aws: Driver) -> None:
    role = aws.create("iam/role:Role", "role", assumeRolePolicy=EKS_TRUST)
    aws.create(
        "iam/rolePolicyAttachment:RolePolicyAttachment",
        role=role["name"],
        policyArn="arn:aws:iam::aws:policy/AmazonEKSClusterPolicy",
    )
    with pytest.raises(RefusalError, match="NoSuchEntity"):
        aws.create(
            "iam/rolePolicyAttachment:RolePolicyAttachment",
            "other",
            role=role["name"],
            policyArn="arn:aws:iam::123456789012:policy/mine",
        )


def test_what_is_still_used_cannot_be_deleted(aws: Driver) -> None:
    aws.cluster()
    with pytest.raises(RefusalError, match=r"DependencyViolation.*subnet-a"):
        aws.delete("vpc")
    with pytest.raises(RefusalError, match=r"DependencyViolation.*cluster"):
        aws.delete("subnet-a")
    aws.delete("cluster")
    aws.delete("subnet-a")
    aws.delete("subnet-b")
    aws.delete("vpc")
    aws.delete("role")
    assert aws.state.count() == 0


def test_a_role_with_policies_cannot_be_deleted(aws: Driver) -> None:
    role = aws.create("iam/role:Role", "role", assumeRolePolicy=EKS_TRUST)
    policy = "arn:aws:iam::aws:policy/AmazonEKSClusterPolicy"
    aws.create(
        "iam/rolePolicyAttachment:RolePolicyAttachment", "attached", role=role["name"], policyArn=policy
    )
    with pytest.raises(RefusalError, match="DeleteConflict"):
        aws.delete("role")
    aws.delete("attached")
    aws.delete("role")


def test_names_are_unique(aws: Driver) -> None:
    aws.create("s3/bucket:Bucket", "one", bucket="the-bucket")
    with pytest.raises(RefusalError, match="BucketAlreadyOwnedByYou"):
        aws.create("s3/bucket:Bucket", "two", bucket="the-bucket", region="eu-west-1")
    aws.create("iam/role:Role", "first", name="same", assumeRolePolicy=EKS_TRUST)
    with pytest.raises(RefusalError, match="EntityAlreadyExists"):
        aws.create("iam/role:Role", "second", name="same", assumeRolePolicy=EKS_TRUST)


def test_subnets_lie_in_their_vpc_apart_and_in_a_zone_that_exists(aws: Driver) -> None:
    vpc, _ = aws.network()
    with pytest.raises(RefusalError, match=r"InvalidSubnet\.Range"):
        aws.create("ec2/subnet:Subnet", "s", vpcId=vpc, cidrBlock="10.1.0.0/24")
    with pytest.raises(RefusalError, match=r"InvalidSubnet\.Conflict.*subnet-a"):
        aws.create("ec2/subnet:Subnet", "s", vpcId=vpc, cidrBlock="10.0.0.128/25")
    with pytest.raises(RefusalError, match="us-east-1a, us-east-1b"):
        aws.create(
            "ec2/subnet:Subnet", "s", vpcId=vpc, cidrBlock="10.0.9.0/24", availabilityZone="us-east-1z"
        )
    assert "cidrBlock" in aws.check("ec2/subnet:Subnet", vpcId=vpc, cidrBlock="10.0.0.1/24")
    assert "cidrBlock" in aws.check("ec2/vpc:Vpc", cidrBlock="10.0.0.0/8")


def test_replace_only_properties_replace_and_others_do_not(aws: Driver) -> None:
    vpc, _ = aws.network()
    diff = aws.diff("subnet-a", vpcId=vpc, cidrBlock="10.0.7.0/24", availabilityZone="us-east-1a")
    assert diff.replaces == ("cidrBlock",)
    diff = aws.diff("vpc", cidrBlock="10.0.0.0/16", enableDnsHostnames=True)
    assert diff.changed == ("enableDnsHostnames",) and diff.replaces == ()


def test_a_fixed_name_is_deleted_before_it_is_replaced(aws: Driver) -> None:
    aws.create("iam/role:Role", "fixed", name="fixed-name", assumeRolePolicy=EKS_TRUST, path="/a/")
    assert aws.diff("fixed", name="fixed-name", assumeRolePolicy=EKS_TRUST, path="/b/").delete_before_replace
    aws.create("iam/role:Role", "automatic", assumeRolePolicy=EKS_TRUST, path="/a/")
    diff = aws.diff("automatic", assumeRolePolicy=EKS_TRUST, path="/b/")
    assert diff.replaces == ("path",) and not diff.delete_before_replace


def test_default_tags_are_merged_and_their_change_is_a_change(aws: Driver) -> None:
    aws.config["defaultTags"] = json.dumps({"tags": {"owner": "a", "team": "x"}})
    vpc = aws.create("ec2/vpc:Vpc", "v", cidrBlock="10.0.0.0/16", tags={"owner": "b"})
    assert vpc["tagsAll"] == {"owner": "b", "team": "x"}
    assert aws.diff("v", cidrBlock="10.0.0.0/16", tags={"owner": "b"}).changed == ()
    aws.config["defaultTags"] = json.dumps({"tags": {"team": "y"}})
    assert aws.diff("v", cidrBlock="10.0.0.0/16", tags={"owner": "b"}).changed == ("tagsAll",)


def test_a_cluster_has_what_programs_use(aws: Driver) -> None:
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
    with pytest.raises(RefusalError, match="AWS-EKS-002"):
        aws.update("cluster", **{**inputs, "version": old})


def test_access_entries_need_the_api_mode_and_policies_need_an_entry(aws: Driver) -> None:
    cluster = aws.cluster(accessConfig={"authenticationMode": "CONFIG_MAP"})
    entry = {"clusterName": "dev", "principalArn": cluster["roleArn"]}
    with pytest.raises(RefusalError, match="authentication mode"):
        aws.create("eks/accessEntry:AccessEntry", "entry", **entry)
    aws.update(
        "cluster", **{**aws.made["cluster"][2], "accessConfig": {"authenticationMode": "API_AND_CONFIG_MAP"}}
    )
    policy = "arn:aws:eks::aws:cluster-access-policy/AmazonEKSClusterAdminPolicy"
    association = {**entry, "policyArn": policy, "accessScope": {"type": "cluster"}}
    token = "eks/accessPolicyAssociation:AccessPolicyAssociation"
    with pytest.raises(RefusalError, match="has no access entry"):
        aws.create(token, "association", **association)
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
    assert "does not support EFA" in found["networkInterfaces[0].interfaceType"]


def test_a_launch_template_gets_a_new_version_by_each_change(aws: Driver) -> None:
    assert (
        aws.create("ec2/launchTemplate:LaunchTemplate", "lt", instanceType="p5.48xlarge")["latestVersion"]
        == 1
    )
    changed = aws.update("lt", instanceType="p4d.24xlarge")
    assert (changed["latestVersion"], changed["defaultVersion"]) == (2, 1)


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
    with pytest.raises(RefusalError, match="nodegroups attached"):
        aws.delete("cluster")


def test_lustre_sizes_come_from_the_table(aws: Driver) -> None:
    token = "fsx/lustreFileSystem:LustreFileSystem"
    common = {"subnetIds": "subnet-1", "deploymentType": "PERSISTENT_2", "perUnitStorageThroughput": 250}
    assert aws.check(token, **common, storageCapacity=4800) == {}
    assert "storageCapacity" in aws.check(token, **common, storageCapacity=1300)
    assert "perUnitStorageThroughput" in aws.check(
        token, subnetIds="s", deploymentType="PERSISTENT_2", storageCapacity=1200
    )


def test_a_file_system_has_one_mount_target_per_zone(aws: Driver) -> None:
    _, subnets = aws.network()
    system = aws.create("efs/fileSystem:FileSystem", "homes")["id"]
    aws.create("efs/mountTarget:MountTarget", "one", fileSystemId=system, subnetId=subnets[0])
    with pytest.raises(RefusalError, match="MountTargetConflict"):
        aws.create("efs/mountTarget:MountTarget", "two", fileSystemId=system, subnetId=subnets[0])
    with pytest.raises(RefusalError, match="FileSystemInUse"):
        aws.delete("homes")


def test_a_managed_password_lies_in_a_secret_that_goes_with_the_cluster(aws: Driver) -> None:
    _, subnets = aws.network()
    group = aws.create("rds/subnetGroup:SubnetGroup", "group", subnetIds=subnets)
    database = aws.create(
        "rds/cluster:Cluster",
        "db",
        engine="aurora-postgresql",
        masterUsername="mlflow",
        manageMasterUserPassword=True,
        skipFinalSnapshot=True,
        dbSubnetGroupName=group["name"],
    )
    arn = database["masterUserSecrets"][0]["secretArn"]
    value = aws.state.document("secret", arn)
    assert value["username"] == "mlflow" and len(value["password"]) == 28
    with pytest.raises(RefusalError, match="InvalidDBSubnetGroupStateFault"):
        aws.delete("group")
    aws.delete("db")
    assert aws.state.document("secret", arn) is None and aws.state.issued(arn) == []


def test_a_cluster_without_a_final_snapshot_is_created_but_not_deleted(aws: Driver) -> None:
    aws.create(
        "rds/cluster:Cluster",
        "db",
        engine="aurora-postgresql",
        masterUsername="mlflow",
        manageMasterUserPassword=True,
    )
    with pytest.raises(RefusalError, match="final_snapshot_identifier is required"):
        aws.delete("db")


def test_the_value_of_a_secret_is_kept(aws: Driver) -> None:
    secret = aws.create("secretsmanager/secret:Secret", "s")
    aws.create(
        "secretsmanager/secretVersion:SecretVersion", "v", secretId=secret["id"], secretString='{"a": 1}'
    )
    assert aws.state.document("secret", secret["arn"]) == {"a": 1}


@pytest.mark.parametrize(
    ("policy", "complaint"),
    [
        ("{", "not JSON"),
        ({"Statement": []}, "no Statement"),
        ({"Statement": [{"Effect": "allow", "Action": "s3:*", "Principal": "*"}]}, "Effect must be"),
        ({"Statement": [{"Effect": "Allow", "Action": "GetObject", "Principal": "*"}]}, "no action"),
        ({"Statement": [{"Effect": "Allow", "Action": "s3:*", "Resource": "*"}]}, "no Principal"),
        (
            {"Statement": [{"Effect": "Allow", "Action": "s3:*", "Principal": {"AWS": "me"}}]},
            "invalid principal",
        ),
        (
            {"Statement": [{"Effect": "Deny", "Action": "s3:*", "Principal": "*", "Resource": "mine"}]},
            "no ARN",
        ),
    ],
)
def test_policies_keep_to_the_grammar(aws: Driver, policy: Any, complaint: str) -> None:
    text = policy if isinstance(policy, str) else json.dumps(policy)
    assert complaint in aws.check("s3/bucketPolicy:BucketPolicy", bucket="b", policy=text)["policy"]


def test_a_policy_names_only_roles_that_exist(aws: Driver) -> None:
    bucket = aws.create("s3/bucket:Bucket", "b", bucket="my-bucket")["id"]
    statement = {
        "Effect": "Allow",
        "Action": "s3:GetObject",
        "Principal": {"AWS": "arn:aws:iam::123456789012:role/nobody"},
        "Resource": "arn:aws:s3:::my-bucket/*",
    }
    with pytest.raises(RefusalError, match="Invalid principal"):
        aws.create(
            "s3/bucketPolicy:BucketPolicy", "p", bucket=bucket, policy=json.dumps({"Statement": [statement]})
        )


def test_a_type_without_a_row_is_kept_generically(aws: Driver) -> None:
    pool = aws.create("cognito/userPool:UserPool", "users")
    assert pool["id"] and pool["arn"].startswith("arn:aws:cognito:us-east-1:123456789012:")
    aws.delete("users")
    assert aws.state.count() == 0


def test_functions(aws: Driver) -> None:
    zones = aws.invoke("index/getAvailabilityZones:getAvailabilityZones")
    assert "us-east-1a" in zones["names"] and len(zones["zoneIds"]) == len(zones["names"])
    assert aws.invoke("index/getCallerIdentity:getCallerIdentity")["accountId"] == "123456789012"
    parameter = "/aws/service/eks/optimized-ami/1.33/amazon-linux-2023/x86_64/nvidia/recommended/image_id"
    assert aws.invoke("ssm/getParameter:getParameter", name=parameter)["value"].startswith("ami-")
    document = aws.invoke(
        "iam/getPolicyDocument:getPolicyDocument",
        statements=[{"actions": ["s3:GetObject"], "resources": ["arn:aws:s3:::b/*"]}],
    )
    assert json.loads(document["json"])["Statement"] == [
        {"Effect": "Allow", "Action": "s3:GetObject", "Resource": "arn:aws:s3:::b/*"}
    ]
    aws.cluster()
    assert aws.invoke("eks/getClusterAuth:getClusterAuth", name="dev")["token"].startswith("k8s-aws-v1.")
    with pytest.raises(RefusalError, match="No cluster found"):
        aws.invoke("eks/getCluster:getCluster", name="other")
    with pytest.raises(RefusalError, match=r"functions\.py"):
        aws.invoke("ec2/getSpotPrice:getSpotPrice")


def test_maps_that_a_service_fills_hold_the_keys_that_it_gives(aws: Driver) -> None:
    api = aws.create("appsync/graphQLApi:GraphQLApi", "api", name="api", authenticationType="API_KEY")
    assert api["arn"].endswith(f":apis/{api['id']}")
    host = api["uris"]["GRAPHQL"].removeprefix("https://").partition(".")[0]
    assert api["uris"] == {
        "GRAPHQL": f"https://{host}.appsync-api.us-east-1.amazonaws.com/graphql",
        "REALTIME": f"wss://{host}.appsync-realtime-api.us-east-1.amazonaws.com/graphql",
    }
