"""Ways to buy machines that only Google Cloud has."""

from typing import Literal

from infra.stackspec.model import Model


class FlexStart(Model):
    """Nodes start when capacity is available, cost less and end after seven days; Google Cloud only.

    A job on a cluster whose nodes take longer than 20 minutes is queued again: use `queued` (docs/adr/0066).
    """

    kind: Literal["flex_start"]
    """`flex_start`"""


class Queued(Model):
    """Like `flex_start`, but all nodes of a job start together; Google Cloud only."""

    kind: Literal["queued"]
    """`queued`"""
