"""The order in which a cluster's pools are created."""

from collections.abc import Sequence

import pulumi

# GKE runs five operations of a cluster at a time and rejects more ("Too many operations: cluster ... hits the
# concurrent operations quota 5", terraform-provider-google#15205, #15579). One is left for others.
AT_ONCE = 4


def waits_for(made: Sequence[pulumi.Resource]) -> list[pulumi.Resource]:
    """Dependencies of the next pool of a cluster, after the pools `made` so far in this order.

    At most four are then created, changed or deleted at a time. One that waits for machines delays only those
    after it in turn, not all.
    """
    return [made[-AT_ONCE]] if len(made) >= AT_ONCE else []
