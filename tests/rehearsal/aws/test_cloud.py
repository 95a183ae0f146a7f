"""The emulated AWS: names, references, deletion, replacement and functions, without an engine."""

import json
from typing import Any

import pytest

from rehearsal.core.model import UNKNOWN, RefusalError
from tests.rehearsal.aws.harness import EKS_TRUST, Driver
from tests.rehearsal.driver import refused


def test_ids_and_arns_have_the_format_of_aws(aws: Driver) -> None:
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


def test_a_name_that_gets_too_long_is_refused_and_not_shortened(aws: Driver) -> None:
    longest = "a" * (64 - len("-1234567"))
    assert len(aws.create("iam/role:Role", longest, assumeRolePolicy=EKS_TRUST)["name"]) == 64
    found = aws.check("iam/role:Role", f"{longest}b", assumeRolePolicy=EKS_TRUST)
    assert found["name"].startswith("could not make instance of 'aws:iam/role:Role': ")
    assert "plus 7 random chars is longer than maximum length 64" in found["name"]
    # A name of the program gets no suffix.
    assert not aws.check("iam/role:Role", f"{longest}b", name="platform", assumeRolePolicy=EKS_TRUST)


def test_a_preview_creates_nothing_and_knows_only_inputs(aws: Driver) -> None:
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
            roleArn="arn:aws:iam::123456789012:role/absent",
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


def test_resources_in_use_cannot_be_deleted(aws: Driver) -> None:
    aws.cluster()
    refused(r"DependencyViolation.*subnet-a", aws.delete, "vpc")
    refused(r"DependencyViolation.*cluster", aws.delete, "subnet-a")
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
    refused("DeleteConflict", aws.delete, "role")
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
    refused(r"InvalidSubnet\.Range", aws.create, "ec2/subnet:Subnet", "s", vpcId=vpc, cidrBlock="10.1.0.0/24")
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


@pytest.mark.parametrize(
    ("policy", "complaint"),
    [
        ("{", "not JSON"),
        ({"Statement": []}, "no Statement"),
        ({"Statement": [{"Effect": "allow", "Action": "s3:*", "Principal": "*"}]}, "Effect must be"),
        ({"Statement": [{"Effect": "Allow", "Action": "GetObject", "Principal": "*"}]}, "not an action"),
        ({"Statement": [{"Effect": "Allow", "Action": "s3:*", "Resource": "*"}]}, "no Principal"),
        (
            {"Statement": [{"Effect": "Allow", "Action": "s3:*", "Principal": {"AWS": "me"}}]},
            "invalid principal",
        ),
        (
            {"Statement": [{"Effect": "Deny", "Action": "s3:*", "Principal": "*", "Resource": "mine"}]},
            "not an ARN",
        ),
    ],
)
def test_policies_keep_to_the_grammar(aws: Driver, policy: Any, complaint: str) -> None:
    text = policy if isinstance(policy, str) else json.dumps(policy)
    assert complaint in aws.check("s3/bucketPolicy:BucketPolicy", bucket="b", policy=text)["policy"]


def test_a_policy_names_the_identity_by_which_cloudfront_reads_a_bucket(aws: Driver) -> None:
    identity = aws.create("cloudfront/originAccessIdentity:OriginAccessIdentity", comment="of a website")
    bucket = aws.create("s3/bucket:Bucket", "b", bucket="pages")["id"]
    reads = {"Effect": "Allow", "Action": "s3:GetObject", "Principal": {"AWS": identity["iamArn"]}}
    policy = json.dumps({"Statement": [{**reads, "Resource": "arn:aws:s3:::pages/*"}]})
    aws.create("s3/bucketPolicy:BucketPolicy", "p", bucket=bucket, policy=policy)


def test_a_policy_names_only_roles_that_exist(aws: Driver) -> None:
    bucket = aws.create("s3/bucket:Bucket", "b", bucket="my-bucket")["id"]
    statement = {
        "Effect": "Allow",
        "Action": "s3:GetObject",
        "Principal": {"AWS": "arn:aws:iam::123456789012:role/absent"},
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


def test_the_account_is_the_one_that_the_provider_demands(aws: Driver) -> None:
    aws.config["allowedAccountIds"] = json.dumps(["210987654321"])
    assert aws.invoke("index/getCallerIdentity:getCallerIdentity")["accountId"] == "210987654321"


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
    refused("No cluster found", aws.invoke, "eks/getCluster:getCluster", name="other")
    refused(r"functions\.py", aws.invoke, "ec2/getSpotPrice:getSpotPrice")


def test_computed_maps_have_their_keys(aws: Driver) -> None:
    api = aws.create("appsync/graphQLApi:GraphQLApi", "api", name="api", authenticationType="API_KEY")
    assert api["arn"].endswith(f":apis/{api['id']}")
    host = api["uris"]["GRAPHQL"].removeprefix("https://").partition(".")[0]
    assert api["uris"] == {
        "GRAPHQL": f"https://{host}.appsync-api.us-east-1.amazonaws.com/graphql",
        "REALTIME": f"wss://{host}.appsync-realtime-api.us-east-1.amazonaws.com/graphql",
    }


@pytest.mark.parametrize(
    ("given", "differs"),
    [
        ({"kmsKeyArn": "arn:aws:kms:us-east-1:1:key/k"}, {"kmsKeyArn"}),
        (
            {"kmsKeyArn": "arn:aws:kms:us-east-1:1:key/k", "environment": {"variables": {}}},
            {"kmsKeyArn", "environment"},
        ),
        ({"kmsKeyArn": "arn:aws:kms:us-east-1:1:key/k", "environment": {"variables": {"A": "1"}}}, set()),
        ({}, set()),
    ],
)
def test_a_key_for_no_variables_differs_in_each_preview(
    aws: Driver, given: dict[str, Any], differs: set[str]
) -> None:
    """Lambda does not keep it: hashicorp/terraform-provider-aws issue 6366."""
    role = aws.create("iam/role:Role", "role", assumeRolePolicy=EKS_TRUST.replace("eks.", "lambda."))
    function = {"role": role["arn"], "runtime": "python3.13", "handler": "main.run", **given}
    aws.create("lambda/function:Function", "clean", **function)
    assert set(aws.diff("clean", **function).changed) == differs


def test_a_name_beside_its_prefix_is_refused_on_preview(aws: Driver) -> None:
    assert aws.check("sns/topic:Topic", name="a", namePrefix="b") == {"name": "conflicts with namePrefix"}
    assert aws.check("sns/topic:Topic", namePrefix="b") == {}
    assert "identifier" in aws.check("rds/instance:Instance", identifier="a", identifierPrefix="b")


def test_an_id_of_the_emulation_has_its_own_form(aws: Driver) -> None:
    # Facts of types without a table are about the ids of the service: svc-0123456789abcdef0.
    token = "vpclattice/serviceNetworkServiceAssociation:ServiceNetworkServiceAssociation"
    service = aws.create("vpclattice/service:Service", "svc", name="models")
    network = aws.create("vpclattice/serviceNetwork:ServiceNetwork", "sn", name="models")
    given = {"serviceIdentifier": service["id"], "serviceNetworkIdentifier": network["id"]}
    assert aws.check(token, **given) == {}
    assert list(aws.check(token, **{**given, "serviceIdentifier": "svc-1"})) == ["serviceIdentifier"]
