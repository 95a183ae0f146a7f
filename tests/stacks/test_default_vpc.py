"""An account without a default VPC: everything that would fall back to it names the network of the stack.

Source: Amazon VPC User Guide, "Default VPCs"; EC2 CreateSecurityGroup (VpcId), RDS CreateDBCluster
(DBSubnetGroupName) and ELB CreateLoadBalancer (Subnets) use the default VPC where the field is absent.
"""

from typing import Any

import pytest

from tests.stacks.composition.composed import composed
from tests.stacks.stack_files import LOAD_BALANCER

# Field that keeps a type out of the default VPC.
NAMED = {
    "ec2/securityGroup:SecurityGroup": "vpcId",
    "rds/cluster:Cluster": "dbSubnetGroupName",
    "lb/loadBalancer:LoadBalancer": "subnets",
    "lb/targetGroup:TargetGroup": "vpcId",
    "sagemaker/domain:Domain": "vpcId",
    "eks/nodeGroup:NodeGroup": "subnetIds",
    "efs/mountTarget:MountTarget": "subnetId",
    "fsx/lustreFileSystem:LustreFileSystem": "subnetIds",
}


@pytest.mark.parametrize("profile", ["small", "medium"])
def test_nothing_falls_back_to_the_default_vpc(profile: str) -> None:
    balanced = profile == "medium"
    graph = composed((profile, "aws"), _balanced if balanced else None)
    found = {token: graph.all(token) for token in NAMED}
    assert found["ec2/securityGroup:SecurityGroup"]
    bare = [name for token, all_ in found.items() for name, one in all_.items() if not one.get(NAMED[token])]
    assert bare == []
    assert graph.all("ec2/instance:Instance") == {} and graph.all("ec2/defaultVpc:DefaultVpc") == {}


def _balanced(spec: Any) -> None:
    spec["on"]["load_balancer"] = LOAD_BALANCER
