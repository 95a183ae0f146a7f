"""Facts about Google Cloud as frozen models, each with its source and date. Sizes are GiB."""

from typing import Annotated

from pydantic import Field

from infra.catalog.fact import Count, Fact, Name

Band = tuple[Count, Count, Count]
"""The smallest size, the largest, and the step."""


class MachineType(Fact):
    """A machine type with built-in GPUs."""

    name: Name
    accelerator: Name  # as GKE calls it
    count: Count


class GpuNetworks(Fact):
    """The networks that the NICs of a machine's GPUs need, besides the cluster's own."""

    machine: Name
    networks: Annotated[int, Field(ge=0)]
    rdma_subnetworks: Annotated[int, Field(ge=0)]

    @property
    def total(self) -> int:
        """Additional node networks of a node pool."""
        return self.networks + self.rdma_subnetworks


class Region(Fact):
    """A region and its zones."""

    name: Name
    zones: tuple[Name, ...] = Field(min_length=1)


class GkeVersion(Fact):
    """A version of GKE that a source names; GKE offers more."""

    name: Name


class FilestoreTier(Fact):
    """The sizes of a Filestore tier."""

    tier: Name
    bands: tuple[Band, ...] = Field(min_length=1)

    def problem(self, gib: int) -> str | None:
        """Why a share cannot have a size, or None."""
        if any(low <= gib <= high and (gib - low) % step == 0 for low, high, step in self.bands):
            return None
        bands = "; ".join(f"{low} to {high} in steps of {step}" for low, high, step in self.bands)
        return f"{gib} GiB is not offered by {self.tier}: {bands}"


class LustreTier(Fact):
    """A throughput of Managed Lustre in MB/s per TiB; its smallest size is also the step."""

    throughput: Count
    step: Count
    largest: Count

    def problem(self, gib: int) -> str | None:
        """Why a file system cannot have a size, or None."""
        if self.step <= gib <= self.largest and gib % self.step == 0:
            return None
        return (
            f"{gib} GiB is not offered at {self.throughput} MB/s per TiB: {self.step} to {self.largest} "
            f"in steps of {self.step}"
        )
