"""Changes that replace a resource depending on more than the property."""

from typing import Any

import pytest

from rehearsal.aws.table import TABLE
from rehearsal.core.emulation.replacing import replacing
from rehearsal.core.model import UNKNOWN
from rehearsal.gcp.table import TABLE as GOOGLE

_LUSTRE, _ENDPOINT = "aws:fsx/lustreFileSystem:LustreFileSystem", "aws:ec2/vpcEndpoint:VpcEndpoint"
_RULE = "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule"
_CLUSTER, _VERSION, _DNS = "aws:eks/cluster:Cluster", "fileSystemTypeVersion", "privateDnsEnabled"
_VPC, _INSTANCE, _NLB = "aws:ec2/vpc:Vpc", "aws:ec2/instance:Instance", "aws:lb/loadBalancer:LoadBalancer"
_ON_CHANGE, _NETWORK = "userDataReplaceOnChange", {"loadBalancerType": "network"}
_KEY = {"resources": ["secrets"], "provider": {"keyArn": "k"}}


@pytest.mark.parametrize(
    ("before", "after", "grows", "replaced"),
    [(30, 20, False, True), (20, 30, False, False), (30, 20, True, False), (30, None, False, False)],
)
def test_a_disk_of_cloud_sql_that_does_not_grow_is_replaced_by_a_smaller_one(
    before: int, after: int | None, grows: bool, replaced: bool
) -> None:
    old, new = ({"settings": {"diskSize": size, "diskAutoresize": grows}} for size in (before, after))
    row = GOOGLE.row("gcp:sql/databaseInstance:DatabaseInstance")
    assert replacing(row, "settings.diskSize", old, new) is replaced
    assert not replacing(row, "settings.tier", old, new)


@pytest.mark.parametrize(
    ("token", "path", "old", "new", "replaced"),
    [
        (_LUSTRE, "storageCapacity", {"storageCapacity": 4800}, {"storageCapacity": 2400}, True),
        (
            _LUSTRE,
            "storageCapacity",
            {"storageCapacity": 2400, "deploymentType": "PERSISTENT_2"},
            {"storageCapacity": 4800, "deploymentType": "PERSISTENT_2"},
            False,
        ),
        (_LUSTRE, "storageCapacity", {"storageCapacity": 2400}, {"storageCapacity": 4800}, True),  # SCRATCH_1
        (_LUSTRE, _VERSION, {_VERSION: "2.15"}, {_VERSION: "2.12"}, True),
        (_LUSTRE, _VERSION, {_VERSION: "2.12"}, {_VERSION: "2.15"}, False),
        (_RULE, "cidrIpv4", {"cidrIpv4": "10.0.0.0/8"}, {"cidrIpv6": "::/0"}, True),
        (_RULE, "cidrIpv4", {"cidrIpv4": "10.0.0.0/8"}, {"cidrIpv4": "10.1.0.0/16"}, False),
        (_ENDPOINT, _DNS, {}, {_DNS: True, "vpcEndpointType": "Interface"}, False),
        (_ENDPOINT, _DNS, {}, {_DNS: True, "vpcEndpointType": "Resource"}, True),
        (_CLUSTER, "encryptionConfig", {"encryptionConfig": _KEY}, {}, True),
        (_CLUSTER, "encryptionConfig", {}, {"encryptionConfig": _KEY}, False),
        (_VPC, "instanceTenancy", {"instanceTenancy": "dedicated"}, {"instanceTenancy": "default"}, False),
        (_VPC, "instanceTenancy", {"instanceTenancy": "dedicated"}, {}, False),
        (_VPC, "instanceTenancy", {"instanceTenancy": "default"}, {"instanceTenancy": "dedicated"}, True),
        (_INSTANCE, "userData", {"userData": "a"}, {"userData": "b"}, False),
        (_INSTANCE, "userData", {"userData": "a"}, {"userData": "b", _ON_CHANGE: True}, True),
        (_INSTANCE, "userDataBase64", {}, {"userDataBase64": "Yg==", _ON_CHANGE: True}, True),
        (_NLB, "subnets[1]", {"subnets": ["a", "b"]}, {**_NETWORK, "subnets": ["a"]}, True),
        (_NLB, "subnets[0]", {"subnets": ["a"]}, {**_NETWORK, "subnets": ["b"]}, True),
        (_NLB, "subnets[1]", {"subnets": ["a"]}, {**_NETWORK, "subnets": ["a", "b"]}, False),
        (_NLB, "subnets[1]", {"subnets": ["a", "b"]}, {"subnets": ["a"]}, False),  # an application's
        (_NLB, "subnets[0]", {"subnets": ["a"]}, {**_NETWORK, "subnets": [UNKNOWN]}, False),
        (_NLB, "subnetMappings", {"subnetMappings": [1]}, {**_NETWORK, "subnetMappings": [2, 3]}, True),
        (_NLB, "subnetMappings", {"subnetMappings": [1]}, {**_NETWORK, "subnetMappings": [1, 3]}, False),
        (_NLB, "securityGroups", {}, {**_NETWORK, "securityGroups": ["sg"]}, True),
        (_NLB, "securityGroups", {"securityGroups": ["sg"]}, {**_NETWORK, "securityGroups": []}, True),
        (_NLB, "securityGroups[0]", {"securityGroups": ["a"]}, {**_NETWORK, "securityGroups": ["b"]}, False),
        ("aws:budgets/budget:Budget", "budgetType", {"budgetType": "COST"}, {"budgetType": "USAGE"}, False),
    ],
)
def test_replacements_depend_on_values(
    token: str, path: str, old: dict[str, Any], new: dict[str, Any], replaced: bool
) -> None:
    assert replacing(TABLE.row(token), path, old, new) is replaced
