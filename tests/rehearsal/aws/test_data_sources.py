"""Functions of the AWS provider about interfaces, regions, registries, engines and managed policies."""

import base64
import re
import string
from typing import Any

import pytest

from rehearsal.aws.data_sources.places import of_region
from tests.rehearsal.aws.harness import Driver
from tests.rehearsal.driver import refused


def ask(aws: Driver, token: str, /, **args: object) -> dict[str, object]:
    return aws.invoke(f"{token}:{token.rpartition('/')[2]}", **args)


def test_interfaces_of_programs_and_of_services_are_found_by_filters(aws: Driver) -> None:
    vpc, (one, two) = aws.network()
    own = aws.create("ec2/networkInterface:NetworkInterface", "n", subnetId=one, tags={"Name": "card"})
    balancer = aws.create(
        "lb/loadBalancer:LoadBalancer", "lb", name="front", loadBalancerType="network", internal=True,
        subnets=[one, two],
    )  # fmt: skip
    suffix = balancer["arn"].partition(":loadbalancer/")[2]
    by_text = [{"name": "description", "values": [f"ELB {suffix}"]}]
    found = ask(aws, "ec2/getNetworkInterfaces", filters=by_text)["ids"]
    assert isinstance(found, list) and len(found) == 2 and own["id"] not in found
    inside = [*by_text, {"name": "subnet-id", "values": [one]}]
    card = ask(aws, "ec2/getNetworkInterface", filters=inside)
    assert card["vpcId"] == vpc and str(card["privateIp"]).startswith("10.0.0.") and card["subnetId"] == one
    assert ask(aws, "ec2/getNetworkInterfaces", tags={"Name": "card"})["ids"] == [own["id"]]
    assert (
        ask(aws, "ec2/getNetworkInterfaces", filters=[{"name": "vpc-id", "values": ["vpc-0"]}])["ids"] == []
    )
    assert len(ask(aws, "ec2/getNetworkInterfaces")["ids"]) == 3  # type: ignore[arg-type]
    odd = [{"name": "color", "values": ["red"]}]
    refused("NotEmulated.*color.*vpc-id", ask, aws, "ec2/getNetworkInterfaces", filters=odd)
    refused("NotFound", ask, aws, "ec2/getNetworkInterface", filters=[{"name": "vpc-id", "values": ["v"]}])


def test_addresses_instances_and_keys(aws: Driver) -> None:
    _, (subnet, _) = aws.network()
    eip = aws.create("ec2/eip:Eip", "e", domain="vpc", tags={"Name": "out"})
    assert ask(aws, "ec2/getElasticIp", tags={"Name": "out"})["publicIp"] == eip["publicIp"]
    assert ask(aws, "ec2/getEips")["publicIps"] == [eip["publicIp"]]
    refused("no matching EC2 EIP", ask, aws, "ec2/getElasticIp", publicIp="192.0.2.1")
    nat = aws.create("ec2/natGateway:NatGateway", "n", subnetId=subnet, connectivityType="private")
    assert ask(aws, "ec2/getNatGateways", filters=[{"name": "subnet-id", "values": [subnet]}])["ids"] == [
        nat["id"]
    ]
    made = aws.create(
        "ec2/instance:Instance", "i", ami="ami-0123456789abcdef0", instanceType="t3.micro", subnetId=subnet
    )
    assert ask(aws, "ec2/getInstances")["ids"] == [made["id"]]
    assert ask(aws, "ec2/getInstances", instanceStateNames=["stopped"])["ids"] == []
    aws.create("ec2/keyPair:KeyPair", "k", keyName="ops", publicKey=f"ssh-ed25519 {'A' * 68}")
    assert ask(aws, "ec2/getKeyPair", keyName="ops")["publicKey"] == ""
    assert str(ask(aws, "ec2/getKeyPair", keyName="ops", includePublicKey=True)["publicKey"]).startswith(
        "ssh-"
    )
    refused("InvalidKeyPair.NotFound", ask, aws, "ec2/getKeyPair", keyName="dev")


def test_prefix_lists_and_services_of_aws(aws: Driver) -> None:
    s3 = "com.amazonaws.us-east-1.s3"
    assert re.fullmatch(r"pl-\w{8}", str(ask(aws, "ec2/getPrefixList", name=s3)["prefixListId"]))
    refused("NotFound", ask, aws, "ec2/getManagedPrefixList", name="offices")
    own = aws.create(
        "ec2/managedPrefixList:ManagedPrefixList", "p", name="offices", addressFamily="IPv4", maxEntries=2
    )
    assert ask(aws, "ec2/getManagedPrefixList", name="offices")["id"] == own["id"]
    found = ask(aws, "ec2/getVpcEndpointService", service="s3")
    assert found["serviceName"] == s3 and found["serviceType"] == "Gateway"
    assert ask(aws, "ec2/getVpcEndpointService", service="ecr.api")["serviceType"] == "Interface"


def test_places_and_identities(aws: Driver) -> None:
    found = ask(aws, "index/getArn", arn="arn:aws:iam::123456789012:role/a")
    assert (found["service"], found["account"], found["resource"]) == ("iam", "123456789012", "role/a")
    refused("invalid ARN", ask, aws, "index/getArn", arn="role/a")
    zone = ask(aws, "index/getAvailabilityZone", name="us-east-1a")
    assert zone["nameSuffix"] == "a" and str(zone["zoneId"]).startswith("use1-")
    refused("NotFound", ask, aws, "index/getAvailabilityZone", name="us-east-1q")
    assert ask(aws, "lb/getHostedZoneId")["id"] == ask(aws, "elb/getHostedZoneId")["id"]
    assert ask(aws, "lb/getHostedZoneId", loadBalancerType="network")["id"] == of_region(
        "zones", "network", "us-east-1"
    )
    assert ask(aws, "elb/getServiceAccount")["arn"] == "arn:aws:iam::127311923021:root"
    refused("regions.toml", ask, aws, "elb/getServiceAccount", region="me-central-1")
    role = aws.create("iam/role:Role", "r", name="deploy", assumeRolePolicy=TRUST)
    session = "arn:aws:sts::123456789012:assumed-role/deploy/me"
    issued = ask(aws, "iam/getSessionContext", arn=session)
    assert issued["issuerArn"] == role["arn"] and issued["sessionName"] == "me"
    user = "arn:aws:iam::123456789012:user/a"
    assert ask(aws, "iam/getSessionContext", arn=user)["issuerArn"] == user
    refused("NotFound", ask, aws, "iam/getAccountAlias")
    refused("AWSOrganizationsNotInUse", ask, aws, "organizations/getOrganization")


TRUST = (
    '{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"sts:AssumeRole",'
    '"Principal":{"Service":"ec2.amazonaws.com"}}]}'
)


def test_registries_and_images(aws: Driver) -> None:
    login = ask(aws, "ecr/getAuthorizationToken")
    assert base64.b64decode(str(login["authorizationToken"])).decode() == f"AWS:{login['password']}"
    assert ask(aws, "ecr/getCredentials", registryId="210987654321")["proxyEndpoint"] == (
        "https://210987654321.dkr.ecr.us-east-1.amazonaws.com"
    )
    repository = aws.create("ecr/repository:Repository", "r", name="train")
    image = ask(aws, "ecr/getImage", repositoryName="train", imageTag="v1")
    assert str(image["imageUri"]).startswith(f"{repository['repositoryUrl']}@sha256:")
    refused("InvalidParameter", ask, aws, "ecr/getImage", repositoryName="train")
    refused("NotFound|no Repository", ask, aws, "ecr/getImage", repositoryName="serve", imageTag="v1")
    path = ask(aws, "sagemaker/getPrebuiltEcrImage", repositoryName="pytorch-training", imageTag="2.5")
    assert path["registryPath"] == "763104351884.dkr.ecr.us-east-1.amazonaws.com/pytorch-training:2.5"
    refused("NotEmulated", ask, aws, "sagemaker/getPrebuiltEcrImage", repositoryName="kmeans")


def test_engines_passwords_and_policies_of_cloudfront(aws: Driver) -> None:
    newest = ask(aws, "rds/getEngineVersion", engine="postgres", version="16")
    assert str(newest["version"]).startswith("16.") and "-rds" not in str(newest["version"])
    assert newest["parameterGroupFamily"] == "postgres16"
    refused("NotFound.*Known are", ask, aws, "rds/getEngineVersion", engine="postgres", version="3")
    wanted = ["db.z9.tiny", "db.t4g.medium"]
    offered = ask(aws, "rds/getOrderableDbInstance", engine="postgres", preferredInstanceClasses=wanted)
    assert offered["instanceClass"] == "db.t4g.medium"
    refused(
        "Not offered", ask, aws, "rds/getOrderableDbInstance", engine="postgres", instanceClass="db.z9.tiny"
    )
    drawn = str(
        ask(aws, "secretsmanager/getRandomPassword", passwordLength=40, excludePunctuation=True)[
            "randomPassword"
        ]
    )
    assert len(drawn) == 40 and set(drawn) <= set(string.ascii_letters + string.digits)
    cached = ask(aws, "cloudfront/getCachePolicy", name="Managed-CachingDisabled")
    assert cached["id"] == "4135ea2d-6df8-44a3-9df3-4b5a84be39ad"
    refused("NotFound", ask, aws, "cloudfront/getCachePolicy", name="mine")


def test_types_without_a_table_are_found_by_name_and_the_rest_is_refused_with_a_way_out(aws: Driver) -> None:
    cluster = aws.create("ecs/cluster:Cluster", "c", name="web")
    assert ask(aws, "ecs/getCluster", clusterName="web")["arn"] == cluster["arn"]
    refused("NotEmulated.*rehearse seed", ask, aws, "ecs/getCluster", clusterName="other")
    refused("NotEmulated.*setting", ask, aws, "outposts/getSites")
    given: dict[str, Any] = {
        "family": "web",
        "containerDefinitions": '[{"name":"a","image":"b","memory":128}]',
    }
    task = aws.create("ecs/taskDefinition:TaskDefinition", "t", **given)
    assert ask(aws, "ecs/getTaskDefinition", taskDefinition="web")["arn"] == task["arn"]
    refused("ClientException", ask, aws, "ecs/getTaskDefinition", taskDefinition="mail")


@pytest.mark.parametrize("kind", ["zones", "accounts"])
def test_an_unlisted_region_is_refused_and_says_where_to_add_it(kind: str) -> None:
    refused("NotEmulated", of_region, kind, "network" if kind == "zones" else "balancers", "xx-nowhere-1")


def test_a_zone_is_found_from_every_region(aws: Driver) -> None:
    zone = aws.create("route53/zone:Zone", "z", name="shop.test")
    aws.config["region"] = "us-west-2"
    assert ask(aws, "route53/getZone", name="shop.test")["zoneId"] == zone["zoneId"]
