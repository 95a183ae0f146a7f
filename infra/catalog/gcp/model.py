"""Facts about Google Cloud as frozen models, each with its source and date.

Sizes are GiB, rates Gb/s = 10^9 bits per second, money is US dollars. `None` means "no source".
"""

import datetime
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from infra.catalog.fact import Count, DatedPrice, Fact, Name, Usd

Band = tuple[Count, Count, Count]
"""The smallest size, the largest, and the step between."""
Market = Literal["on_demand", "spot", "flex_start", "calendar"]
"""Markets with a price of their own. `calendar`: a reservation for a time, made in calendar mode."""
Way = Literal["on_demand", "spot", "reserved", "block", "flex_start", "queued"]
"""Ways to buy nodes, by the names of the spec."""
Fabric = Literal["tcpx", "tcpxo", "rdma"]
"""Network between GPUs of several machines: GPUDirect-TCPX, GPUDirect-TCPXO, or RDMA over converged
Ethernet."""

Minor = Annotated[str, Field(pattern=r"^1\.\d+$")]


class Accelerator(Fact):
    """One GPU model, by its name in GKE."""

    name: Name
    title: Name
    memory_gib: Count | None = None
    dense_bf16_tflops: float | None = Field(default=None, gt=0)  # without sparsity
    mig: dict[Name, Count] = Field(default_factory=dict)  # partitions of a GPU by their size


class MachineType(Fact):
    """A machine type with built-in GPUs."""

    name: Name
    accelerator: Name  # as GKE calls it
    count: Count
    gpu_share: float = Field(
        default=1.0, gt=0, le=1
    )  # part of a GPU that a machine has, instead of whole ones
    vcpu: Count
    memory_gib: Count
    architecture: Literal["x86_64", "arm64"] = "x86_64"
    fabric: Fabric | None = None  # None: none documented
    network_gbps: Count | None = None
    nvlink: bool | None = None  # None also where there is one GPU and thus nothing to link
    local_ssds: Count | None = None  # that the type always has; None: chosen, or it has none
    local_ssd_choices: tuple[Count, ...] = ()  # that a node may have instead of none
    boot_disk: Name | None = None  # None: GKE chooses
    nics: Count | None = None  # adapters of the fabric
    nic_gbps: Count | None = None
    static_cpu: bool = False  # pods get whole processors, and memory beside them
    refused: Name | None = None  # reason why stacks have no pools of this type

    @property
    def local_ssd_counts(self) -> tuple[int, ...]:
        """Numbers of local SSDs that a node may have."""
        return (0, *self.local_ssd_choices) if self.local_ssds is None else (self.local_ssds,)

    @property
    def family(self) -> str:
        """Series and shape: `a2-highgpu`, `g2-standard`."""
        return family_of(self.name)


class GpuNetworks(Fact):
    """The networks that the NICs of a machine's GPUs need, besides the cluster's own."""

    machine: Name
    networks: Annotated[int, Field(ge=0)]
    rdma_subnetworks: Annotated[int, Field(ge=0)]
    mtu: Annotated[int, Field(ge=1300, le=8896)]  # in bytes, of all these networks and the cluster's own
    by_gke: bool  # GKE can make them (acceleratorNetworkProfile auto)
    by_hand: bool  # a program can make them

    @property
    def total(self) -> int:
        """Additional node networks of a node pool."""
        return self.networks + self.rdma_subnetworks


class CpuFamily(Fact):
    """CPU machine types of one series and shape; a size is a number of processors."""

    name: Name
    boot_disk: Name = "pd-balanced"
    gib_per_vcpu: float = Field(gt=0)
    sizes: tuple[Count, ...] = Field(min_length=1)
    regions: tuple[Name, ...] = Field(min_length=1)


@dataclass(frozen=True)
class CpuType:
    """One CPU machine type; `memory_gib` is rounded down."""

    name: str
    vcpu: int
    memory_gib: int


class Offer(Fact):
    """Zones that offer machine types with GPUs: letters of zones by region; empty: no source names them."""

    machines: tuple[Name, ...] = Field(min_length=1)
    zones: dict[Name, tuple[Name, ...]]


class Sale(Fact):
    """Ways to buy machine types; a way that is neither sold nor unknown is not sold."""

    machines: tuple[Name, ...] = Field(min_length=1)
    ways: tuple[Way, ...] = Field(min_length=1)
    unknown: tuple[Way, ...] = ()


class VmPrice(DatedPrice):
    """Dollars per hour for processors and memory of one machine; its family costs the same per CPU."""

    reference: Name
    market: Market
    region: Name
    usd: Usd


class GpuPrice(DatedPrice):
    """Dollars per hour of one GPU."""

    accelerator: Name
    market: Market
    region: Name
    usd: Usd
    whole_machine: bool = False  # processors and memory are in the price


class Region(Fact):
    """A region and its zones."""

    name: Name
    zones: tuple[Name, ...] = Field(min_length=1)


class GkeVersion(Fact):
    """A documented version of GKE; GKE offers more."""

    name: Name


class GkeMinor(Fact):
    """A minor version of GKE: its date in channel `regular`, and the end of standard support."""

    name: Minor
    regular: datetime.date
    standard_support_ends: datetime.date


class ReleaseChannel(Fact):
    """The minor versions that a release channel offers."""

    name: Name
    oldest: Minor
    newest: Minor


class ServiceQuota(Fact):
    """A quota of a project. No row has a value: projects differ."""

    key: Name
    service: Name = "compute.googleapis.com"
    quota_id: Name
    regional: bool = True
    gpu_family: Name | None = None  # a dimension of the quota, where several GPUs share its id
    accelerator: Name | None = None  # the GPU that it counts
    preemptible: bool = False
    families: tuple[Name, ...] = ()  # series of machines whose processors it counts
    description: Name
    unit: Name


class FilestoreTier(Fact):
    """The sizes of a Filestore tier."""

    tier: Name
    bands: tuple[Band, ...] = Field(min_length=1)

    def problem(self, gib: int) -> str | None:
        """Reason why a share cannot have a size, or None."""
        if in_bands(gib, self.bands):
            return None
        return f"{gib} GiB is not offered by {self.tier}: {bands_in_words(self.bands)}"


class LustreTier(Fact):
    """The sizes of a Managed Lustre tier, whose throughput is in MB/s per TiB."""

    throughput: Count
    bands: tuple[Band, ...] = Field(min_length=1)

    def problem(self, gib: int) -> str | None:
        """Reason why a file system cannot have a size, or None."""
        if in_bands(gib, self.bands):
            return None
        return f"{gib} GiB is not offered at {self.throughput} MB/s per TiB: {bands_in_words(self.bands)}"


def family_of(machine: str) -> str:
    """Series and shape of a machine type: `a2-highgpu` of `a2-highgpu-8g`."""
    return "-".join(machine.split("-")[:2])


def in_bands(size: int, bands: tuple[Band, ...]) -> bool:
    """Return whether a size is one of the steps of a band."""
    return any(low <= size <= high and (size - low) % step == 0 for low, high, step in bands)


def nearest_in_bands(size: int, bands: tuple[Band, ...]) -> tuple[int, ...]:
    """The largest size below and the smallest above, where there is one."""
    below: list[int] = []
    above: list[int] = []
    for low, high, step in bands:
        last = low + (high - low) // step * step
        if size > low:
            below.append(min(last, low + (size - low) // step * step))
        if size <= last:
            above.append(max(low, low + -(-(size - low) // step) * step))
    return tuple(found[0] for found in (sorted(below)[-1:], sorted(above)[:1]) if found)


def bands_in_words(bands: tuple[Band, ...]) -> str:
    """The sizes of bands, for messages."""
    return "; ".join(f"{low} to {high} in steps of {step}" for low, high, step in bands)
