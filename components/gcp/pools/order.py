"""In what order a cluster's pools are made."""

from collections.abc import Sequence

import pulumi

# GKE runs five operations of a cluster at a time and refuses more ("Too many operations: cluster ... hits the
# concurrent operations quota 5", terraform-provider-google#15205, #15579). One is left to others.
AT_ONCE = 4


def waits_for(made: Sequence[pulumi.Resource]) -> list[pulumi.Resource]:
    """What the next pool of a cluster waits for, after the pools `made` so far in this order.

    At most four are then made, changed or deleted at a time. One that waits for machines holds up only those
    that come after it in turn, not all.
    """
    return [made[-AT_ONCE]] if len(made) >= AT_ONCE else []
