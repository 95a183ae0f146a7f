"""Current sizes of a cluster's node groups: the autoscaler resizes them, so the state does not have them."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypedDict

import pulumi
import pulumi_aws as aws

from infra.errors import Problem

# EKS names the Auto Scaling group of a managed node group eks-<node group>-<its own suffix>, and Pulumi ends
# the node group's name with seven hexadecimal digits.
_GROUP = r"eks-{group}-[0-9a-f]{{7}}-[0-9a-f-]+"


class LiveSizeArgs(TypedDict):
    """A node group as it is in AWS."""

    min_size: int
    max_size: int
    nodes: int
    """Its desired number of nodes."""


@dataclass(frozen=True)
class Scaling:
    """The size of a group in a deployment, and the part of it that the state keeps."""

    config: aws.eks.NodeGroupScalingConfigArgs
    ignored: list[str]


@dataclass(frozen=True)
class GroupName:
    """A node group of the program."""

    name: str
    """Logical name, the start of its name in AWS."""
    zone: str | None = None
    """Its only zone; None for a group over several."""
    former: str | None = None
    """A name without the zone, which it may have had as the only group of its pool."""


def live_sizes(
    cluster_name: str, groups: Sequence[GroupName], opts: pulumi.InvokeOptions
) -> dict[str, LiveSizeArgs]:
    """The existing node groups of a cluster, by logical name (`dev-aws-a100-nodes-us-east-1b`)."""
    tagged = aws.autoscaling.GetAmiIdsFilterArgs(name="tag:eks:cluster-name", values=[cluster_name])
    names = aws.autoscaling.get_ami_ids(filters=[tagged], opts=opts).names
    live = {name: aws.autoscaling.get_group(name=name, opts=opts) for name in names}
    found = {}
    for group in groups:
        mine = [
            one
            for name, one in live.items()
            if _named(name, group.name)
            or (group.former and _named(name, group.former) and one.availability_zones == [group.zone])
        ]
        if len(mine) == 1:  # two: one of them is being replaced, and its size is meaningless
            found[group.name] = LiveSizeArgs(
                min_size=mine[0].min_size, max_size=mine[0].max_size, nodes=mine[0].desired_capacity
            )
    return found


def _named(name: str, group: str) -> bool:
    return re.fullmatch(_GROUP.format(group=re.escape(group)), name) is not None


def scaling(least: int, most: int, live: LiveSizeArgs | None) -> Scaling:
    """The wanted bounds, with the current number of nodes.

    A change of the bounds sends the number of nodes with them, whatever `ignore_changes` says: the state's,
    which is that of the group's creation (terraform-provider-aws internal/service/eks/node_group.go,
    `expandNodegroupScalingConfig`). With 0 from the state, a larger pool would end every job. So the live
    number is sent, and only then; a smallest size above it starts nodes.
    """
    changed = live is not None and (live["min_size"], live["max_size"]) != (least, most)
    nodes = max(least, live["nodes"]) if live is not None and changed else least
    return Scaling(
        aws.eks.NodeGroupScalingConfigArgs(min_size=least, max_size=most, desired_size=nodes),
        [] if changed else ["scalingConfig.desiredSize"],
    )


def shrinking_problems(path: str, most: int, live: Iterable[LiveSizeArgs]) -> list[Problem]:
    """A largest size below the running nodes of a pool: EKS would reject it, or end nodes with their jobs.

    Each group of a pool may grow to the largest size, so their sum counts only where that becomes smaller.
    """
    groups = list(live)
    sizes = [group["nodes"] for group in groups]
    shrinks = any(group["max_size"] > most for group in groups)
    nodes = sum(sizes) if shrinks else max(sizes, default=0)
    if nodes <= most:
        return []
    rule = f"{nodes} nodes run now, {nodes - most} more than that, and nodes with jobs must not end"
    fix = "Retry when the autoscaler has removed idle nodes, or stop jobs of this pool before."
    return [Problem(path, most, rule, fix, code="pool-shrinks-below-live-size")]
