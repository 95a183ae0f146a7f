"""Node groups of a pool: one for each zone, so that nothing moves nodes between zones.

EC2 Auto Scaling ends nodes of a group over several zones to balance it (process AZRebalance), also nodes with
jobs, and a managed node group has no setting against it (docs/adr/0057-a-node-group-per-zone.md).
"""

from collections.abc import Mapping
from dataclasses import dataclass

import pulumi
import pulumi_aws as aws

from components.aws.pools.live_size import GroupName, LiveSizeArgs, Scaling, scaling
from components.aws.pools.nodes import GroupTags, group_name
from components.base import Component


@dataclass(frozen=True)
class ZoneGroup:
    """The part of a pool in one zone."""

    zone: str
    subnet_id: pulumi.Input[str]
    name: str
    """Logical name of the node group."""
    prefix: str
    """Start of the logical names of its tags."""
    size: Scaling
    former: tuple[str, str] | None
    """`name` and `prefix` of a pool's only group before groups were named by their zones."""

    @property
    def aliases(self) -> list[pulumi.Alias]:
        """Former names of the node group: it continues with its nodes."""
        return [pulumi.Alias(name=self.former[0])] if self.former else []

    def tags(self, component: Component, group: aws.eks.NodeGroup) -> GroupTags:
        """The tags of `group`."""
        return GroupTags(component, self.prefix, group, self.former and self.former[1])


def zone_groups(
    name: str,
    subnets: Mapping[str, pulumi.Input[str]],
    least: int,
    most: int,
    live: Mapping[str, LiveSizeArgs] | None,
) -> list[ZoneGroup]:
    """One group for each zone of `subnets`.

    The smallest sizes add up to `least`. Each group can grow to `most`, since the other zones may have no
    machines; the pool as a whole is limited by its quota in Kueue.
    """
    share, rest = divmod(least, max(1, len(subnets)))
    return [
        ZoneGroup(
            zone=zone,
            subnet_id=subnet,
            name=group_of_zone(name, zone).name,
            prefix=f"{name}-{zone}",
            size=scaling(share + (index < rest), most, (live or {}).get(zone)),
            former=(group_name(f"{name}-nodes"), name) if len(subnets) == 1 else None,
        )
        for index, (zone, subnet) in enumerate(subnets.items())
    ]


def group_of_zone(name: str, zone: str) -> GroupName:
    """The names of the node group of the pool `name` in a zone."""
    return GroupName(group_name(f"{name}-nodes-{zone}"), zone, group_name(f"{name}-nodes"))
