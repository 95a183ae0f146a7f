"""Resources that several examples are made of: networks, clusters, pools."""

import json
from typing import Any

from tests.policies.recording.example import Made, Resources


def _trust(service: str) -> str:
    allowed = {"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"Service": service}}
    return json.dumps({"Version": "2012-10-17", "Statement": [allowed]})


def with_changes(resources: Resources, name: str, **changes: Any) -> dict[str, Made]:
    """The same resources, one of them with other properties."""
    return {**resources, name: resources[name].but(**changes)}


_SUBNET = Made("aws:ec2/subnet:Subnet", {"vpcId": "$vpc", "cidrBlock": "10.0.0.0/24"})
AWS_NETWORK = {
    "vpc": Made("aws:ec2/vpc:Vpc", {"cidrBlock": "10.0.0.0/16", "enableDnsHostnames": True}),
    "a": _SUBNET.but(availabilityZone="us-east-1a"),
    "b": _SUBNET.but(cidrBlock="10.0.1.0/24", availabilityZone="us-east-1b"),
}
CLUSTER = {
    **AWS_NETWORK,
    "role": Made("aws:iam/role:Role", {"assumeRolePolicy": _trust("eks.amazonaws.com")}),
    "cluster": Made(
        "aws:eks/cluster:Cluster",
        {"name": "train", "roleArn": "$role.arn", "vpcConfig": {"subnetIds": ["$a", "$b"]}},
    ),
}


def cluster(**network: Any) -> dict[str, Made]:
    """An EKS cluster with these settings of its network."""
    return with_changes(CLUSTER, "cluster", vpcConfig={"subnetIds": ["$a", "$b"], **network})


_TO_ITSELF = {"securityGroupId": "$efa", "referencedSecurityGroupId": "$efa", "ipProtocol": "-1"}
GROUP_OF_EFA = {
    "efa": Made("aws:ec2/securityGroup:SecurityGroup", {"vpcId": "$vpc", "description": "EFA"}),
    "from-self": Made("aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule", _TO_ITSELF),
    "to-self": Made("aws:vpc/securityGroupEgressRule:SecurityGroupEgressRule", _TO_ITSELF),
}
_CARDS = [
    {
        "networkCardIndex": card,
        "deviceIndex": 1 if card else 0,
        "interfaceType": "efa-only" if card else "efa",
        "securityGroups": ["$efa"],
    }
    for card in range(4)
]
NODE_ROLE = {"nodes": Made("aws:iam/role:Role", {"assumeRolePolicy": _trust("ec2.amazonaws.com")})}
NODE_GROUP = Made(
    "aws:eks/nodeGroup:NodeGroup",
    {
        "clusterName": "$cluster.name",
        "nodeRoleArn": "$nodes.arn",
        "subnetIds": ["$a"],
        "scalingConfig": {"minSize": 0, "desiredSize": 0, "maxSize": 4},
    },
)
EFA_POOL = {
    **CLUSTER,
    **NODE_ROLE,
    **GROUP_OF_EFA,
    "close": Made("aws:ec2/placementGroup:PlacementGroup", {"strategy": "cluster"}),
    "template": Made(
        "aws:ec2/launchTemplate:LaunchTemplate",
        {
            "instanceType": "p4d.24xlarge",
            "networkInterfaces": _CARDS,
            "placement": {"groupName": "$close.name"},
        },
    ),
    "pool": NODE_GROUP.but(
        amiType="AL2023_x86_64_NVIDIA", launchTemplate={"id": "$template", "version": "1"}
    ),
}


def ingress(cidr: str) -> dict[str, Made]:
    """A security group whose port of MLflow is open to a range."""
    rule = {
        "securityGroupId": "$group",
        "cidrIpv4": cidr,
        "ipProtocol": "tcp",
        "fromPort": 5000,
        "toPort": 5001,
    }
    return {
        "vpc": AWS_NETWORK["vpc"],
        "group": Made("aws:ec2/securityGroup:SecurityGroup", {"vpcId": "$vpc"}),
        "open": Made("aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule", rule),
    }


def google_network(**subnetwork: Any) -> dict[str, Made]:
    """A network of Google Cloud with one subnetwork with these settings."""
    props = {"network": "$net.id", "ipCidrRange": "10.0.0.0/20", "region": "us-central1", **subnetwork}
    return {
        "net": Made("gcp:compute/network:Network", {"autoCreateSubnetworks": False}),
        "sub": Made("gcp:compute/subnetwork:Subnetwork", props),
    }


GKE = {
    **google_network(),
    "cluster": Made(
        "gcp:container/cluster:Cluster",
        {
            "location": "us-central1-a",
            "network": "$net.name",
            "subnetwork": "$sub.name",
            "initialNodeCount": 1,
            "removeDefaultNodePool": True,
            "deletionProtection": False,
        },
    ),
}


def gke_pool(**changes: Any) -> dict[str, Made]:
    """A pool of nodes with eight GPUs, with these settings."""
    props = {
        "cluster": "$cluster.name",
        "location": "us-central1-a",
        "autoscaling": {"minNodeCount": 0, "maxNodeCount": 4},
        "nodeConfig": {"machineType": "a2-highgpu-8g", "gvnic": {"enabled": True}},
        **changes,
    }
    return {**GKE, "pool": Made("gcp:container/nodePool:NodePool", props)}
