"""Ways to buy nodes; those of one cloud are in its folder."""

from typing import Annotated, Literal

from pydantic import Field

from infra.stackspec.gcp.purchases import FlexStart, Queued
from infra.stackspec.model import Model, Moment


class OnDemand(Model):
    """Nodes are bought on demand, at the list price."""

    kind: Literal["on_demand"]
    """`on_demand`"""


class Spot(Model):
    """Nodes are cheaper and may be reclaimed at any time: for jobs that write checkpoints."""

    kind: Literal["spot"]
    """`spot`"""


class Reserved(Model):
    """Nodes run on capacity that is reserved, and billed, without an end."""

    kind: Literal["reserved"]
    """`reserved`"""

    id: str
    """Id of the reservation; on AWS a capacity reservation (`cr-...`), on Google Cloud
    `projects/<project>/reservations/<name>`, optionally with `/reservationBlocks/<block>`; for jobs, which
    may run in any zone, `projects/<project>/zones/<zone>/reservations/<name>`."""


class CapacityBlock(Model):
    """Nodes run on capacity that is reserved for a period with a start and an end."""

    kind: Literal["block"]
    """`block`"""

    id: str
    """Id of the block; on AWS a Capacity Block (`cr-...`), on Google Cloud the reservation of a future
    reservation in calendar mode."""

    starts: Moment | None = None
    """Start of the block: no job of the pool's queue starts earlier. Null: unknown."""

    ends: Moment | None = None
    """End of the block: jobs are stopped before it, and start only if they end by then or write checkpoints.
    Null: unknown; the cloud ends the nodes under running jobs."""


Purchase = Annotated[
    OnDemand | Spot | Reserved | CapacityBlock | FlexStart | Queued, Field(discriminator="kind")
]
"""Ways to buy nodes."""
