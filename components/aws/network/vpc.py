"""The network of a training stack: a VPC with addresses for pods and private data paths."""

from collections.abc import Mapping, Sequence
from typing import NotRequired, TypedDict

import pulumi
import pulumi_aws as aws

from components.aws.network.endpoints import interface_endpoints, s3_gateway
from components.aws.network.flow_logs import flow_logs
from components.aws.network.security import EVERYWHERE, efa_security_group, lock_default_security_group
from components.aws.network.subnets import ZoneSubnets, plan_subnets
from components.base import Component, Options
from components.ordering import after


class AwsNetworkArgs(TypedDict):
    """Arguments of an `AwsNetwork`."""

    region: str
    """The region of `zones`, such as `us-east-1`; must be the provider's."""
    cidr: str
    """The VPC's private IPv4 block, /16 to /20."""
    zones: Sequence[str]
    """At least two availability zones. Zones may be added or reordered later; no subnet moves."""
    nat_per_zone: bool
    """One NAT gateway per zone (survives the loss of a zone) instead of one in the first zone (cheaper)."""
    flow_log_retention_days: int
    """Days that flow logs are kept: one of the periods of CloudWatch Logs."""
    interface_endpoints: Sequence[str]
    """Short names of AWS services to reach without NAT, such as `ecr.api`; S3 is always included."""
    load_balancer: NotRequired[bool]
    """Whether there are subnets for an internal load balancer. Default: no; they may be added later."""
    kms_key_arn: NotRequired[pulumi.Input[str]]
    """A key for the flow logs that CloudWatch Logs may use; without it the network creates its own."""


class AwsNetwork(Component):
    """VPC, subnets, NAT, endpoints, flow logs and the EFA security group.

    Subnet ids and the EFA group's id depend on their routes and rules: resources in them are created after
    these and destroyed before them.
    """

    vpc_id: pulumi.Output[str]
    """Id of the VPC."""
    private_subnet_ids: pulumi.Output[Sequence[str]]
    """Private subnets, in the order of `zones`: nodes, file systems, databases, control-plane interfaces."""
    private_subnet_id_by_zone: dict[str, pulumi.Output[str]]
    """The private subnet of each zone."""
    public_subnet_ids: pulumi.Output[Sequence[str]]
    """Public subnets, in the order of `zones`: NAT gateways and internet-facing load balancers only."""
    balancer_subnet_ids: list[pulumi.Output[str]]
    """Subnets for an internal load balancer and nothing else, with the routes of the private ones: their
    addresses identify the load balancer. Empty without `load_balancer`."""
    efa_security_group_id: pulumi.Output[str]
    """Id of the group of every EFA interface."""
    endpoint_ids: pulumi.Output[Sequence[str]]
    """Ids of the VPC endpoints, S3 first."""

    def __init__(self, name: str, args: AwsNetworkArgs, opts: Options = None) -> None:
        super().__init__(name, opts)
        self._prefix = name
        plan = plan_subnets(args["cidr"], args["region"], args["zones"])
        vpc = self._vpc(args["cidr"])
        lock_default_security_group(self, f"{name}-default", vpc.id)
        public = {zone.zone: self._public_subnet(vpc, zone) for zone in plan}
        internet = self._route_to_internet(vpc, public)
        private = {zone.zone: self._private_subnet(vpc, zone) for zone in plan}
        tables = {zone: self._route_table(vpc, f"private-{zone}") for zone in private}
        # A plain attribute: for routes of other networks inside one program, not part of the schema.
        self.private_route_tables = {zone: table.id for zone, table in tables.items()}
        nat_zones = list(private) if args["nat_per_zone"] else list(private)[:1]
        gateways = {zone: self._nat_gateway(zone, public[zone], internet) for zone in nat_zones}
        first = gateways[nat_zones[0]]
        routes = {zone: self._way_out(zone, tables[zone], gateways.get(zone, first)) for zone in private}
        self.private_subnet_id_by_zone = {
            zone: self._routed(f"private-{zone}", subnet, tables[zone], routes[zone])
            for zone, subnet in private.items()
        }
        wanted = plan if args.get("load_balancer", False) else ()
        self.balancer_subnet_ids = [self._balancer_subnet(vpc, zone, tables, routes) for zone in wanted]

        region = args["region"]
        endpoints = [
            s3_gateway(self, name, region=region, vpc_id=vpc.id, route_tables=list(tables.values())),
            *interface_endpoints(
                self,
                name,
                region=region,
                vpc_id=vpc.id,
                vpc_cidr=args["cidr"],
                subnets=private,
                services=args["interface_endpoints"],
            ),
        ]
        flow_logs(
            self,
            f"{name}-flow-logs",
            region=region,
            vpc_id=vpc.id,
            retention_days=args["flow_log_retention_days"],
            key_arn=args.get("kms_key_arn"),
        )

        self.vpc_id = vpc.id
        self.private_subnet_ids = pulumi.Output.all(*self.private_subnet_id_by_zone.values())
        self.public_subnet_ids = pulumi.Output.all(*(after(s.id, internet) for s in public.values()))
        self.efa_security_group_id = efa_security_group(self, f"{name}-efa", vpc.id)
        self.endpoint_ids = pulumi.Output.all(*(endpoint.id for endpoint in endpoints))
        self.register_declared()

    def _vpc(self, cidr: str) -> aws.ec2.Vpc:
        return aws.ec2.Vpc(
            f"{self._prefix}-vpc",
            cidr_block=cidr,
            enable_dns_support=True,
            enable_dns_hostnames=True,  # private DNS of interface endpoints, EFS and FSx names need both
            tags={"Name": self._prefix},
            opts=self.child(),
        )

    def _subnet(
        self,
        vpc: aws.ec2.Vpc,
        zone: ZoneSubnets,
        kind: str,
        block: str,
        tags: Mapping[str, str] | None = None,
    ) -> aws.ec2.Subnet:
        """No public addresses by itself: NAT gateways and load balancers bring their own."""
        name = f"{self._prefix}-{kind}-{zone.zone}"
        return aws.ec2.Subnet(
            name,
            vpc_id=vpc.id,
            availability_zone=zone.zone,
            cidr_block=block,
            map_public_ip_on_launch=False,
            tags={"Name": name, **(tags or {})},
            opts=self.child(),
        )

    def _public_subnet(self, vpc: aws.ec2.Vpc, zone: ZoneSubnets) -> aws.ec2.Subnet:
        # Load-balancer controllers find the subnets for internet-facing load balancers by it.
        return self._subnet(vpc, zone, "public", zone.public, {"kubernetes.io/role/elb": "1"})

    def _private_subnet(self, vpc: aws.ec2.Vpc, zone: ZoneSubnets) -> aws.ec2.Subnet:
        subnet = self._subnet(vpc, zone, "private", zone.private, {"kubernetes.io/role/internal-elb": "1"})
        aws.ec2.SubnetCidrReservation(
            f"{self._prefix}-pods-{zone.zone}",
            subnet_id=subnet.id,
            cidr_block=zone.pod_prefixes,
            reservation_type="prefix",
            description="Pod address prefixes of the VPC CNI",
            opts=self.child(),
        )
        return subnet

    def _balancer_subnet(
        self,
        vpc: aws.ec2.Vpc,
        zone: ZoneSubnets,
        tables: Mapping[str, aws.ec2.RouteTable],
        routes: Mapping[str, aws.ec2.Route],
    ) -> pulumi.Output[str]:
        subnet = self._subnet(vpc, zone, "balancer", zone.balancer)
        return self._routed(f"balancer-{zone.zone}", subnet, tables[zone.zone], routes[zone.zone])

    def _route_table(self, vpc: aws.ec2.Vpc, purpose: str) -> aws.ec2.RouteTable:
        return aws.ec2.RouteTable(
            f"{self._prefix}-{purpose}",
            vpc_id=vpc.id,
            tags={"Name": f"{self._prefix}-{purpose}"},
            opts=self.child(),
        )

    def _associated(
        self, purpose: str, subnet: aws.ec2.Subnet, table: aws.ec2.RouteTable
    ) -> aws.ec2.RouteTableAssociation:
        return aws.ec2.RouteTableAssociation(
            f"{self._prefix}-{purpose}", subnet_id=subnet.id, route_table_id=table.id, opts=self.child()
        )

    def _route_to_internet(
        self, vpc: aws.ec2.Vpc, public: dict[str, aws.ec2.Subnet]
    ) -> list[pulumi.Resource]:
        """Create the route of the public subnets to the internet; returns the resources that it needs."""
        gateway = aws.ec2.InternetGateway(
            f"{self._prefix}-internet", vpc_id=vpc.id, tags={"Name": self._prefix}, opts=self.child()
        )
        table = self._route_table(vpc, "public")
        route = aws.ec2.Route(
            f"{self._prefix}-public-internet",
            route_table_id=table.id,
            destination_cidr_block=EVERYWHERE,
            gateway_id=gateway.id,
            opts=self.child(),
        )
        associations = [self._associated(f"public-{zone}", subnet, table) for zone, subnet in public.items()]
        return [route, *associations]

    def _nat_gateway(
        self, zone: str, subnet: aws.ec2.Subnet, internet: list[pulumi.Resource]
    ) -> aws.ec2.NatGateway:
        address = aws.ec2.Eip(
            f"{self._prefix}-nat-{zone}",
            domain="vpc",
            tags={"Name": f"{self._prefix}-nat-{zone}"},
            opts=self.child(),
        )
        return aws.ec2.NatGateway(
            f"{self._prefix}-nat-{zone}",
            allocation_id=address.allocation_id,
            subnet_id=subnet.id,
            tags={"Name": f"{self._prefix}-nat-{zone}"},
            opts=self.child(pulumi.ResourceOptions(depends_on=internet)),
        )

    def _way_out(self, zone: str, table: aws.ec2.RouteTable, gateway: aws.ec2.NatGateway) -> aws.ec2.Route:
        """The route from a zone's subnets to its NAT gateway.

        Every zone has a route table of its own even with one NAT gateway: changing `nat_per_zone` later then
        changes one route per zone and moves nothing.
        """
        return aws.ec2.Route(
            f"{self._prefix}-private-{zone}-nat",
            route_table_id=table.id,
            destination_cidr_block=EVERYWHERE,
            nat_gateway_id=gateway.id,
            opts=self.child(),
        )

    def _routed(
        self, purpose: str, subnet: aws.ec2.Subnet, table: aws.ec2.RouteTable, route: aws.ec2.Route
    ) -> pulumi.Output[str]:
        """The id of a subnet, usable once its route exists."""
        return after(subnet.id, [route, self._associated(purpose, subnet, table)])
