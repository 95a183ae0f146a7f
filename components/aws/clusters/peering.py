"""Connections of the networks of several clusters, in several regions and accounts."""

from collections.abc import Mapping
from typing import NotRequired, TypedDict

import pulumi
import pulumi_aws as aws

from components.base import Component, Options


class AwsPeerArgs(TypedDict):
    """A network to connect to."""

    vpc_id: str
    """Its VPC."""
    region: str
    """Its region."""
    cidr: str
    """Its range, which does not overlap the other network's."""
    route_tables: Mapping[str, str]
    """Route tables of its private subnets, by zone."""
    account: NotRequired[str]
    """Its account. Default: that of this network."""
    provider: NotRequired[aws.Provider]
    """Login to its account, with `account`. It needs `ec2:AcceptVpcPeeringConnection` and routes there."""


class AwsPeeringArgs(TypedDict):
    """Two networks."""

    vpc_id: pulumi.Input[str]
    """The VPC of this network."""
    cidr: str
    """Its range."""
    route_tables: Mapping[str, pulumi.Input[str]]
    """Route tables of its private subnets, by zone."""
    peer: AwsPeerArgs
    """The other network."""


class AwsPeering(Component):
    """A peering connection with routes of the private subnets of both networks.

    It opens no port: security groups decide. The other network may be in another account, where the
    connection is accepted and routes are made with a login of their own.
    """

    connection_id: pulumi.Output[str]
    """Id of the connection."""

    def __init__(self, name: str, args: AwsPeeringArgs, opts: Options = None) -> None:
        super().__init__(name, opts)
        peer = args["peer"]
        there = pulumi.ResourceOptions(provider=peer.get("provider"))
        requested = aws.ec2.VpcPeeringConnection(
            f"{name}-connection",
            vpc_id=args["vpc_id"],
            peer_vpc_id=peer["vpc_id"],
            peer_owner_id=peer.get("account"),
            peer_region=peer["region"],
            tags={"Name": name},
            opts=self.child(),
        )
        accepted = aws.ec2.VpcPeeringConnectionAccepter(
            f"{name}-accepted",
            region=peer["region"],
            vpc_peering_connection_id=requested.id,
            auto_accept=True,
            tags={"Name": name},
            opts=self.child(there),
        )
        accepting = pulumi.ResourceOptions(depends_on=[accepted])
        after_both = self.child(accepting)
        for zone, table in args["route_tables"].items():
            aws.ec2.Route(
                f"{name}-from-{zone}",
                route_table_id=table,
                destination_cidr_block=peer["cidr"],
                vpc_peering_connection_id=requested.id,
                opts=after_both,
            )
        for zone, table in peer["route_tables"].items():
            aws.ec2.Route(
                f"{name}-to-{zone}",
                region=peer["region"],
                route_table_id=table,
                destination_cidr_block=args["cidr"],
                vpc_peering_connection_id=requested.id,
                opts=self.child(pulumi.ResourceOptions.merge(accepting, there)),
            )
        self.connection_id = requested.id
        self.register_declared()
