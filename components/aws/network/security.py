"""The security groups of a VPC: the default one, closed, and that of EFA."""

import pulumi
import pulumi_aws as aws

from components.base import Component
from components.ordering import after

EVERYWHERE = "0.0.0.0/0"


def lock_default_security_group(
    component: Component, name: str, vpc_id: pulumi.Input[str]
) -> aws.ec2.DefaultSecurityGroup:
    """Remove every rule from the group of resources that name none."""
    return aws.ec2.DefaultSecurityGroup(name, vpc_id=vpc_id, ingress=[], egress=[], opts=component.child())


def efa_security_group(component: Component, name: str, vpc_id: pulumi.Input[str]) -> pulumi.Output[str]:
    """The id of a group whose members reach each other over EFA; usable once its rules exist.

    EFA traffic bypasses IP, so it matches only rules that name a group: all traffic to the group itself, in
    *and* out. An egress rule to 0.0.0.0/0 does not count, and without the self rule NCCL falls back to TCP
    silently. Source: EC2 user guide, "Get started with EFA and NCCL", step "Prepare an EFA-enabled security
    group". The last rule lets a node pull images and reach AWS through the NAT gateway.
    """
    group = aws.ec2.SecurityGroup(
        name,
        vpc_id=vpc_id,
        description="EFA: all traffic between members",
        tags={"Name": name},
        # A group that refers to itself cannot be deleted before that rule is removed.
        revoke_rules_on_delete=True,
        opts=component.child(),
    )
    own = [
        rule(
            f"{name}-{way}-self",
            security_group_id=group.id,
            referenced_security_group_id=group.id,
            ip_protocol="-1",
            description=f"EFA {way} members",
            opts=component.child(),
        )
        for rule, way in (
            (aws.vpc.SecurityGroupIngressRule, "from"),
            (aws.vpc.SecurityGroupEgressRule, "to"),
        )
    ]
    to_internet = aws.vpc.SecurityGroupEgressRule(
        f"{name}-to-internet",
        security_group_id=group.id,
        cidr_ipv4=EVERYWHERE,
        ip_protocol="tcp",
        from_port=443,
        to_port=443,
        description="Image registries and AWS through NAT",
        opts=component.child(),
    )
    return after(group.id, [*own, to_internet])
