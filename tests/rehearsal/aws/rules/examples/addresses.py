"""Examples of the rules about addresses of subnets."""

from tests.rehearsal.aws.rules.world import Example

_CLUSTER, _GROUP = "eks/cluster:Cluster", "eks/nodeGroup:NodeGroup"


def _narrow(subnet: str = "$narrow", **sizes: int) -> dict[str, object]:
    """A group in a subnet of 16 addresses, of which AWS keeps five."""
    return {"subnetIds": [subnet], "scalingConfig": {"minSize": 0, **sizes}}


# Seven of the others are reserved.
_HALVED = "$halved"
# Each node takes two /28 of the 14 that a /24 has besides the first and the last.
_DELEGATING = {"clusterName": "$delegating"}


EXAMPLES = {
    "AWS-EKS-047": Example(
        _CLUSTER,
        "vpcConfig.subnetIds",
        {"vpcConfig.subnetIds": ["$crowded", "$b"]},
        {"vpcConfig.subnetIds": ["$narrow", "$b"]},
    ),
    "AWS-EKS-048": Example(
        _GROUP, "subnetIds", _narrow(desiredSize=12, maxSize=12), _narrow(desiredSize=11, maxSize=11)
    ),
    "AWS-EKS-049": Example(
        _GROUP,
        "scalingConfig.maxSize",
        _narrow(_HALVED, desiredSize=2, maxSize=5),
        _narrow(_HALVED, desiredSize=2, maxSize=4),
    ),
    "AWS-EKS-050": Example(
        _GROUP,
        "scalingConfig.maxSize",
        {**_DELEGATING, "scalingConfig.maxSize": 8},
        {**_DELEGATING, "scalingConfig.maxSize": 7},
    ),
}
