"""Values that are equal to a provider, or that it keeps, are no change; most are from public reports."""

import json
from pathlib import Path
from typing import Any

import pytest

from rehearsal.core.schema import Schemas
from tests.rehearsal.aws import harness as aws
from tests.rehearsal.differences.decided import DECIDED, Case
from tests.rehearsal.driver import CACHE, Driver
from tests.rehearsal.gcp import harness as gcp

READ = {"Action": "s3:GetObject", "Effect": "Allow", "Resource": "arn:aws:s3:::b/*"}
POLICY, LISTED = (
    json.dumps({"Version": "2012-10-17", "Statement": [statement]})
    for statement in (READ, {**READ, "Action": ["s3:GetObject"]})
)
TURNED = json.dumps({"Statement": [dict(reversed(READ.items()))], "Version": "2012-10-17"}, indent=2)
BOX = {"name": "app", "image": "nginx", "memory": 512}
FULL_BOX = {**BOX, "cpu": 0, "essential": True, "mountPoints": [], "portMappings": [], "volumesFrom": []}
LINK = "https://www.googleapis.com/compute/v1/projects/p/global/networks/main"
RULE = {"protocol": "tcp", "fromPort": 22, "toPort": 22, "cidrBlocks": ["10.0.0.0/8"]}
WEB = {**RULE, "fromPort": 443, "toPort": 443}
KEY, OTHER_KEY = "ssh-ed25519 AAAA one", "ssh-ed25519 BBBB two"

CASES: dict[str, Case] = {
    **DECIDED,
    # pulumi/pulumi#3323: the subnet of an instance is left out.
    "kept": (
        "aws:ec2/instance:Instance",
        {"ami": "ami-1", "instanceType": "t3.micro", "subnetId": "subnet-1"},
        {},
        {"ami": "ami-1", "instanceType": "t3.micro"},
        (),
        (),
    ),
    # pulumi/pulumi-aws#2024: a policy whose keys are in another order.
    "order of keys": ("aws:iam/policy:Policy", {"policy": POLICY}, {}, {"policy": TURNED}, (), ()),
    "one value or a list": ("aws:iam/policy:Policy", {"policy": POLICY}, {}, {"policy": LISTED}, (), ()),
    "another policy": (
        "aws:iam/policy:Policy",
        {"policy": POLICY},
        {},
        {"policy": POLICY.replace("GetObject", "PutObject")},
        ("policy",),
        (),
    ),
    # pulumi/pulumi-aws#1985: defaults of a container.
    "defaults of a container": (
        "aws:ecs/taskDefinition:TaskDefinition",
        {"family": "web", "containerDefinitions": json.dumps([BOX])},
        {"containerDefinitions": json.dumps([FULL_BOX])},
        {"family": "web", "containerDefinitions": json.dumps([FULL_BOX])},
        (),
        (),
    ),
    "another container": (
        "aws:ecs/taskDefinition:TaskDefinition",
        {"family": "web", "containerDefinitions": json.dumps([BOX])},
        {},
        {"family": "web", "containerDefinitions": json.dumps([{**BOX, "image": "nginx:2"}])},
        ("containerDefinitions",),
        ("containerDefinitions",),
    ),
    # hashicorp/terraform-provider-aws#1487: rules are a set.
    "order of rules": (
        "aws:ec2/securityGroup:SecurityGroup",
        {"vpcId": "vpc-1", "ingress": [RULE, WEB]},
        {},
        {"vpcId": "vpc-1", "ingress": [WEB, RULE]},
        (),
        (),
    ),
    "one more rule first": (
        "aws:ec2/securityGroup:SecurityGroup",
        {"vpcId": "vpc-1", "ingress": [RULE]},
        {},
        {"vpcId": "vpc-1", "ingress": [WEB, RULE]},
        ("ingress[0]",),
        (),
    ),
    # hashicorp/terraform-provider-aws#6448 and the like: types that no table describes.
    "family of parameters": (
        "aws:elasticache/parameterGroup:ParameterGroup",
        {"name": "p", "family": "redis6.x"},
        {},
        {"name": "p", "family": "redis7"},
        ("family",),
        ("family",),
    ),
    "public key": (
        "aws:ec2/keyPair:KeyPair",
        {"publicKey": KEY},
        {},
        {"publicKey": OTHER_KEY},
        ("publicKey",),
        ("publicKey",),
    ),
    "root disk": (
        "aws:ec2/instance:Instance",
        {"rootBlockDevice": {"encrypted": False}},
        {},
        {"rootBlockDevice": {"encrypted": True}},
        ("rootBlockDevice.encrypted",),
        ("rootBlockDevice.encrypted",),
    ),
    "size of a root disk": (
        "aws:ec2/instance:Instance",
        {"rootBlockDevice": {"encrypted": True, "volumeSize": 8}},
        {},
        {"rootBlockDevice": {"encrypted": True, "volumeSize": 16}},
        ("rootBlockDevice.volumeSize",),
        (),
    ),
    "computed in a block": (
        "aws:ec2/instance:Instance",
        {"rootBlockDevice": {"volumeType": "gp3", "volumeSize": 8}},
        {},
        {"rootBlockDevice": {"volumeSize": 8}},
        (),
        (),
    ),
    "default": (
        "aws:sqs/queue:Queue",
        {"visibilityTimeoutSeconds": 30},
        {},
        {},
        (),
        (),
    ),
    "empty": ("aws:sqs/queue:Queue", {}, {}, {"fifoQueue": False}, (), ()),
    "port of targets": (
        "aws:lb/targetGroup:TargetGroup",
        {"port": 80, "protocol": "HTTP", "vpcId": "vpc-1"},
        {},
        {"port": 8080, "protocol": "HTTP", "vpcId": "vpc-1"},
        ("port",),
        ("port",),
    ),
    "subnets of a cache": (
        "aws:elasticache/cluster:Cluster",
        {"clusterId": "c", "engine": "redis", "subnetGroupName": "a"},
        {},
        {"clusterId": "c", "engine": "redis", "subnetGroupName": "b"},
        ("subnetGroupName",),
        ("subnetGroupName",),
    ),
    "what EC2 fills in": (
        "aws:ec2/instance:Instance",
        {"ami": "ami-1"},
        {},
        {"ami": "ami-1", "tenancy": "default", "metadataOptions": {"httpPutResponseHopLimit": 1}},
        (),
        (),
    ),
    "other than what EC2 fills in": (
        "aws:ec2/instance:Instance",
        {"ami": "ami-1"},
        {},
        {"ami": "ami-1", "tenancy": "dedicated"},
        ("tenancy",),
        ("tenancy",),
    ),
    "filled in, and changed since": (
        "gcp:compute/disk:Disk",
        {"name": "d"},
        {"physicalBlockSizeBytes": 16384},
        {"name": "d", "physicalBlockSizeBytes": 4096},
        ("physicalBlockSizeBytes",),
        ("physicalBlockSizeBytes",),
    ),
    "suppressed and computed": (
        "gcp:container/cluster:Cluster",
        {"name": "k", "datapathProvider": "LEGACY_DATAPATH"},
        {},
        {"name": "k"},
        (),
        (),
    ),
    "a number or its text": (
        "aws:lb/targetGroup:TargetGroup",
        {"deregistrationDelay": 300},
        {},
        {},
        (),
        (),
    ),
    # hashicorp/terraform-provider-google#377: a network by name or by link.
    "name or link": (
        "gcp:compute/firewall:Firewall",
        {"network": "main"},
        {},
        {"network": LINK},
        (),
        (),
    ),
    "another network": (
        "gcp:compute/firewall:Firewall",
        {"network": "main"},
        {},
        {"network": LINK.replace("main", "other")},
        ("network",),
        (),
    ),
    # hashicorp/terraform-provider-google#22543: another MTU.
    "MTU": ("gcp:compute/network:Network", {"mtu": 1460}, {}, {"mtu": 8896}, ("mtu",), ()),
    "tags of machines": (
        "gcp:compute/instance:Instance",
        {"tags": ["a", "b"]},
        {},
        {"tags": ["b", "a"]},
        (),
        (),
    ),
}


@pytest.fixture(scope="module")
def drivers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Driver]:
    folder = tmp_path_factory.mktemp("drivers")
    return {
        "aws": aws.Driver(folder / "aws", Schemas("aws", CACHE)),
        "gcp": gcp.Driver(folder / "gcp", Schemas("gcp", CACHE)),
    }


@pytest.mark.parametrize("name", CASES)
def test_differences_are_those_of_the_provider(name: str, drivers: dict[str, Driver]) -> None:
    token, old, has, new, changed, replaces = CASES[name]
    driver = drivers[token.partition(":")[0]]
    found = driver.cloud.diff(driver.call(token, "x"), "x", old, {**old, **has}, new)
    assert (found.changed, found.replaces) == (changed, replaces)


def test_a_state_of_another_provider_version_is_compared(drivers: dict[str, Driver]) -> None:
    """Properties that the SDK does not have, other types of values, and a type that it does not know."""
    driver = drivers["aws"]
    old = {"bucket": "b", "gone": {"a": [1]}, "tags": ["a"], "versioning": True}
    call = driver.call("aws:s3/bucket:Bucket", "x")
    found = driver.cloud.diff(
        call, "x", old, {"bucket": "b", "versioning": [{"enabled": 1}]}, {"bucket": "b"}
    )
    assert set(found.changed) == {"gone", "tags"} and found.replaces == ()
    lost = driver.call("aws:gone/thing:Thing", "x")
    assert driver.cloud.diff(lost, "x", {"a": 1}, {"a": 1}, {"a": 2}).changed == ("a",)
    assert driver.cloud.diff(lost, "x", {"a": 1}, {}, {"a": 1}).changed == ()


def test_an_update_that_may_replace_says_so(drivers: dict[str, Driver]) -> None:
    driver = drivers["aws"]
    unknown = driver.call("aws:gone/thing:Thing", "x")
    driver.said.clear()
    driver.cloud.diff(unknown, "x", {"a": 1}, {"a": 1}, {"a": 2})
    driver.cloud.diff(unknown, "x", {"a": 1, "tags": {}}, {"a": 1}, {"a": 1, "tags": {"x": "y"}})
    assert len(driver.said) == 1
    google = drivers["gcp"]
    replica = google.call("gcp:sql/databaseInstance:DatabaseInstance", "x")
    one, other = ({"masterInstanceName": name} for name in "ab")
    found = google.cloud.diff(replica, "x", one, one, other)
    assert found.changed == ("masterInstanceName",)
    assert found.replaces == () and len(google.said) == 1


def test_an_index_of_a_table_and_a_version_of_a_cache_are_updates_for_sure(
    drivers: dict[str, Driver],
) -> None:
    driver = drivers["aws"]
    driver.said.clear()
    table: dict[str, Any] = {"hashKey": "a", "attributes": [{"name": "a", "type": "S"}]}
    index = {"name": "i", "hashKey": "b", "projectionType": "ALL"}
    more = {
        **table,
        "attributes": [*table["attributes"], {"name": "b", "type": "S"}],
        "globalSecondaryIndexes": [index],
    }
    version = {"engine": "redis", "engineVersion": "7.0"}
    for token, one, other in (
        ("aws:dynamodb/table:Table", table, more),
        ("aws:dynamodb/table:Table", more, {**more, "globalSecondaryIndexes": [{**index, "rangeKey": "a"}]}),
        ("aws:elasticache/replicationGroup:ReplicationGroup", version, {**version, "engineVersion": "7.1"}),
    ):
        found = driver.cloud.diff(driver.call(token, "x"), "x", one, one, other)
        assert found.changed and found.replaces == ()
    assert driver.said == []


def test_a_pool_is_where_its_cluster_is(tmp_path: Path) -> None:
    """R9: `location` beside the id of a cluster elsewhere (pulumi/pulumi-gcp#1117)."""
    schemas = Schemas("gcp", CACHE)
    google = gcp.Driver(tmp_path, schemas)
    cluster = google.create(
        "container/cluster:Cluster", "gke", name="gke", location="us-central1", initialNodeCount=1
    )
    pool: dict[str, Any] = {"cluster": cluster["id"], "name": "p", "nodeCount": 1}
    made = google.create("container/nodePool:NodePool", "p", **pool, location="us-central1-a")
    assert made["location"] == "us-central1" and made["id"] == f"{cluster['id']}/nodePools/p"
    assert google.diff("p", **pool, location="us-central1-a").replaces == ("location",)
    assert google.diff("p", **pool, location="us-central1").replaces == ()
    schemas.close()
