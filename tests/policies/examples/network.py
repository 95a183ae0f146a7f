"""Examples of the rules NET."""

from tests.policies.recording.example import Example, Made

_VPC = Made("aws:ec2/vpc:Vpc", {"cidrBlock": "10.0.0.0/16"})
_A = Made(
    "aws:ec2/subnet:Subnet", {"vpcId": "$vpc", "cidrBlock": "10.0.0.0/24", "availabilityZone": "us-east-1a"}
)
_B = Made(
    "aws:ec2/subnet:Subnet", {"vpcId": "$vpc", "cidrBlock": "10.0.1.0/24", "availabilityZone": "us-east-1b"}
)
_TRUST = (
    '{"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "sts:AssumeRole",'
    ' "Principal": {"Service": "eks.amazonaws.com"}}]}'
)
_NETWORK = {"vpc": _VPC, "a": _A, "b": _B}
_CLUSTER = {
    **_NETWORK,
    "role": Made("aws:iam/role:Role", {"assumeRolePolicy": _TRUST}),
    "cluster": Made("aws:eks/cluster:Cluster", {"roleArn": "$role.arn"}),
}


def _cluster(**network: object) -> dict[str, Made]:
    config = {"subnetIds": ["$a", "$b"], **network}
    return {**_CLUSTER, "cluster": _CLUSTER["cluster"].but(vpcConfig=config)}


_GROUP = {
    "vpc": _VPC,
    "group": Made("aws:ec2/securityGroup:SecurityGroup", {"vpcId": "$vpc", "description": "MLflow"}),
}


def _ingress(cidr: str) -> dict[str, Made]:
    rule = {
        "securityGroupId": "$group",
        "ipProtocol": "tcp",
        "fromPort": 5000,
        "toPort": 5001,
        "cidrIpv4": cidr,
    }
    return {**_GROUP, "open": Made("aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule", rule)}


EXAMPLES = {
    "MLS-NET-05": Example(
        _cluster(endpointPublicAccess=True, publicAccessCidrs=["203.0.113.0/24"]),
        _cluster(endpointPublicAccess=True),
        at="cluster",
        path="vpcConfig.publicAccessCidrs",
    ),
    "MLS-NET-07": Example(_ingress("203.0.113.0/24"), _ingress("0.0.0.0/0"), at="open"),
}
