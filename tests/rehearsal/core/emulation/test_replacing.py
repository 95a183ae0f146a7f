"""Changes that replace a resource depending on more than the property."""

from typing import Any

import pytest

from rehearsal.aws.table import TABLE
from rehearsal.core.emulation.replacing import replacing

_LUSTRE, _ENDPOINT = "aws:fsx/lustreFileSystem:LustreFileSystem", "aws:ec2/vpcEndpoint:VpcEndpoint"
_RULE = "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule"
_CLUSTER, _VERSION, _DNS = "aws:eks/cluster:Cluster", "fileSystemTypeVersion", "privateDnsEnabled"
_KEY = {"resources": ["secrets"], "provider": {"keyArn": "k"}}


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
        ("aws:budgets/budget:Budget", "budgetType", {"budgetType": "COST"}, {"budgetType": "USAGE"}, False),
    ],
)
def test_replacements_depend_on_values(
    token: str, path: str, old: dict[str, Any], new: dict[str, Any], replaced: bool
) -> None:
    assert replacing(TABLE.row(token), path, old, new) is replaced
