"""Private endpoints of a VPC for AWS services, so that data and credentials need no NAT gateway."""

from collections.abc import Mapping, Sequence

import pulumi
import pulumi_aws as aws

from components.base import Component


def s3_gateway(
    component: Component,
    name: str,
    *,
    region: str,
    vpc_id: pulumi.Input[str],
    route_tables: Sequence[aws.ec2.RouteTable],
) -> aws.ec2.VpcEndpoint:
    """The gateway to S3, free of charge. Without it NAT bills every byte of checkpoints and datasets."""
    return aws.ec2.VpcEndpoint(
        f"{name}-s3",
        vpc_id=vpc_id,
        service_name=f"com.amazonaws.{region}.s3",
        vpc_endpoint_type="Gateway",
        route_table_ids=[table.id for table in route_tables],
        tags={"Name": f"{name}-s3"},
        opts=component.child(),
    )


def interface_endpoints(
    component: Component,
    name: str,
    *,
    region: str,
    vpc_id: pulumi.Input[str],
    vpc_cidr: str,
    subnets: Mapping[str, aws.ec2.Subnet],
    services: Sequence[str],
) -> list[aws.ec2.VpcEndpoint]:
    """One endpoint with private DNS per service (`ecr.dkr`, `sts`, ...), with an address in every zone."""
    if not services:
        return []
    group = aws.ec2.SecurityGroup(
        f"{name}-endpoints",
        vpc_id=vpc_id,
        description="HTTPS from the VPC to AWS services",
        tags={"Name": f"{name}-endpoints"},
        opts=component.child(),
    )
    https = aws.vpc.SecurityGroupIngressRule(
        f"{name}-endpoints-https",
        security_group_id=group.id,
        cidr_ipv4=vpc_cidr,
        ip_protocol="tcp",
        from_port=443,
        to_port=443,
        description="HTTPS from the VPC",
        opts=component.child(),
    )
    return [
        aws.ec2.VpcEndpoint(
            f"{name}-{service.replace('.', '-')}",
            vpc_id=vpc_id,
            service_name=f"com.amazonaws.{region}.{service}",
            vpc_endpoint_type="Interface",
            private_dns_enabled=True,
            subnet_ids=[subnet.id for subnet in subnets.values()],
            security_group_ids=[group.id],
            tags={"Name": f"{name}-{service}"},
            opts=component.child(pulumi.ResourceOptions(depends_on=[https])),
        )
        for service in services
    ]
