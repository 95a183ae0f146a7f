"""Peerings of networks in the emulated AWS: their other side is in another region or account."""

import pytest

from tests.rehearsal.aws.harness import Driver
from tests.rehearsal.driver import refused

_CONNECTION = "ec2/vpcPeeringConnection:VpcPeeringConnection"
_ACCEPTER = "ec2/vpcPeeringConnectionAccepter:VpcPeeringConnectionAccepter"
_ROUTE = "ec2/route:Route"


@pytest.fixture
def west(aws: Driver) -> str:
    """A network in another region than the driver's; returns its id."""
    aws.create("ec2/vpc:Vpc", "here", cidrBlock="10.0.0.0/16")
    return str(aws.create("ec2/vpc:Vpc", "west", cidrBlock="10.1.0.0/16", region="us-west-2")["id"])


def _routes(aws: Driver, connection: str, region: str, vpc: str) -> None:
    table = aws.create("ec2/routeTable:RouteTable", f"table-{region}", vpcId=vpc, region=region)["id"]
    aws.create(
        _ROUTE, f"route-{region}", routeTableId=table, region=region,
        destinationCidrBlock="10.9.0.0/16", vpcPeeringConnectionId=connection,
    )  # fmt: skip


def test_networks_of_two_regions_are_connected_and_separated(aws: Driver, west: str) -> None:
    here = aws.made["here"][1]
    made = aws.create(_CONNECTION, "connection", vpcId=here, peerVpcId=west, peerRegion="us-west-2")["id"]
    aws.create(_ACCEPTER, "accepter", vpcPeeringConnectionId=made, autoAccept=True, region="us-west-2")
    _routes(aws, made, "us-east-1", here)
    _routes(aws, made, "us-west-2", west)
    refused(
        "InvalidVpcPeeringConnectionID.NotFound", aws.create, _ACCEPTER, "third",
        vpcPeeringConnectionId=made, region="eu-west-1",
    )  # fmt: skip
    for one in ("us-east-1", "us-west-2"):
        aws.delete(f"route-{one}")
        aws.delete(f"table-{one}")
    for name in ("accepter", "connection", "west", "here"):
        aws.delete(name)
    assert aws.state.count() == 0


def test_the_other_network_is_in_the_region_that_the_peering_names(aws: Driver, west: str) -> None:
    here = aws.made["here"][1]
    refused("InvalidVpcID.NotFound", aws.create, _CONNECTION, "own", vpcId=here, peerVpcId=west)
    refused(
        "InvalidVpcID.NotFound", aws.create, _CONNECTION, "eu",
        vpcId=here, peerVpcId=west, peerRegion="eu-west-1",
    )  # fmt: skip


def test_a_network_of_another_account_is_not_looked_up(aws: Driver, west: str) -> None:
    here = aws.made["here"][1]
    aws.create(
        _CONNECTION, "theirs", vpcId=here, peerVpcId="vpc-0123456789abcdef0", peerOwnerId="999999999999"
    )
    assert west
