"""Sharing of GPUs by pods, in the same words on every cloud."""

from typing import Annotated, Literal, TypedDict

from pydantic import Field

from infra.stackspec.model import Model


class TimeSharingSpec(Model):
    """Several pods share a GPU in turns, with its memory and its faults."""

    kind: Literal["time_sharing"]
    """`time_sharing`"""

    clients: Annotated[int, Field(ge=2, le=48)]
    """Maximum number of pods per GPU."""


class MigSpec(Model):
    """GPUs are split into partitions with separate memory and cores (Multi-Instance GPU)."""

    kind: Literal["mig"]
    """`mig`"""

    partition: str
    """Size of a partition, in NVIDIA's notation: `1g.5gb` of an A100, `1g.10gb` of an H100."""


Sharing = Annotated[TimeSharingSpec | MigSpec | None, Field(discriminator="kind")]
"""Sharing of the GPUs of a pool; None: each pod has its own."""


class Counted(TypedDict):
    """Shares of a GPU, as functions of the catalogs count them."""

    clients: int | None
    partition: str | None


def counted(sharing: Sharing) -> Counted:
    """The pods per GPU, or the size of its parts; neither where GPUs are not shared."""
    return {
        "clients": sharing.clients if isinstance(sharing, TimeSharingSpec) else None,
        "partition": sharing.partition if isinstance(sharing, MigSpec) else None,
    }
