"""Security group rules: members of one group may connect to members of another."""

from collections.abc import Sequence

import pulumi
import pulumi_aws as aws

from components.base import Component

Traffic = tuple[str, Sequence[tuple[int | None, int | None]]]
"""A protocol and its port ranges, first and last included."""

# Every protocol and port: EFA needs it, because its packets have no ports.
ALL_TRAFFIC: Traffic = ("-1", ((None, None),))


def tcp(*ranges: tuple[int, int]) -> Traffic:
    """TCP on these port ranges (first and last, both included)."""
    return "tcp", ranges


def connect(
    component: Component, name: str, *, source: pulumi.Input[str], target: pulumi.Input[str], traffic: Traffic
) -> list[pulumi.Resource]:
    """The rules that let group `source` connect to group `target`: out of the one, into the other.

    Both, because a group whose egress is closed (as that of EFA nodes is) needs the first one. Responses need
    no rule: security groups are stateful.
    """
    protocol, ranges = traffic
    rules: list[pulumi.Resource] = []
    for first, last in ranges:
        port = "all" if first is None else str(first)
        rules += [
            rule(
                f"{name}-{port}-{way}",
                security_group_id=group,
                referenced_security_group_id=other,
                ip_protocol=protocol,
                from_port=first,
                to_port=last,
                opts=component.child(),
            )
            for rule, way, group, other in (
                (aws.vpc.SecurityGroupEgressRule, "out", source, target),
                (aws.vpc.SecurityGroupIngressRule, "in", target, source),
            )
        ]
    return rules
