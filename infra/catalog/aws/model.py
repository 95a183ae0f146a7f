"""Facts about AWS as frozen models, each with its source and date.

Sizes are the cloud's own (MiB for memory, GB for local disks), rates are Gb/s = 10^9 bits per second,
money is US dollars. `None` always means "no source": nothing here is guessed.
"""

import datetime
from dataclasses import dataclass
from typing import Annotated, Literal, Self

from pydantic import BaseModel, Field, model_validator

from infra.catalog.fact import CLOSED, Count, DatedPrice, Fact, Name, Usd

InterfaceType = Literal["interface", "efa", "efa-only"]
CapacityType = Literal["on_demand", "spot", "capacity_block"]


class Accelerator(Fact):
    """One GPU model, independent of the machine type."""

    key: Name
    name: Name
    vendor: Name
    memory_gib: Count  # as the EC2 API reports it, rounded down; the board may be sold as more
    generation: Name
    dense_bf16_tflops: float | None = Field(
        default=None, gt=0
    )  # without sparsity; None: no bf16 or no source
    dense_fp16_tflops: float | None = Field(default=None, gt=0)  # of one that has no bf16
    mig: dict[Name, Count] = Field(default_factory=dict)  # partitions of a GPU by their size


class EfaInterface(BaseModel):
    """One entry of a launch template's `network_interfaces`, in order."""

    model_config = CLOSED

    network_card_index: Annotated[int, Field(ge=0)]
    device_index: Annotated[int, Field(ge=0, le=1)]
    interface_type: InterfaceType


class InstanceType(Fact):
    """One GPU machine type of EC2.

    `efa` is the exact ordered list of network interfaces its launch template needs to use every EFA device,
    the primary interface first (plain where the type's first card has no EFA); empty where the type has none.
    """

    name: Name
    accelerator: Name
    accelerator_count: Count
    accelerator_memory_mib: Count  # of one accelerator
    vcpu: Count
    memory_mib: Count
    architecture: Literal["x86_64", "arm64"]
    network_gbps: float = Field(gt=0)  # sustained
    network_burst_gbps: float | None = Field(default=None, gt=0)  # "up to", where it is more than sustained
    network_cards: Count
    nvlink: bool | None = None  # None also where there is one GPU and thus nothing to link
    local_nvme_gb: Count | None = None
    efa: tuple[EfaInterface, ...] = ()
    efa_source: Name | None = None
    supports_cluster_placement: bool
    capacity_block: bool  # can be bought as a Capacity Block, somewhere

    @property
    def efa_interfaces(self) -> int:
        """Number of EFA devices, which a node offers as vpc.amazonaws.com/efa."""
        return sum(interface.interface_type != "interface" for interface in self.efa)

    @model_validator(mode="after")
    def _layout_is_launchable(self) -> Self:
        places = [(i.network_card_index, i.device_index) for i in self.efa]
        if self.efa and (places[0] != (0, 0) or self.efa[0].interface_type == "efa-only"):
            raise ValueError("the first interface must be card 0, device 0 and have an IP (not efa-only)")
        if len(set(places)) != len(places):
            raise ValueError("two interfaces share a network card and device index")
        if (
            len({i.network_card_index for i in self.efa if i.interface_type != "interface"})
            != self.efa_interfaces
        ):
            raise ValueError("a network card carries two EFA devices, but takes one")
        if places and max(card for card, _ in places) >= self.network_cards:
            raise ValueError(f"an interface names a card beyond the {self.network_cards} of this type")
        if bool(self.efa) != (self.efa_source is not None):
            raise ValueError("efa and efa_source go together")
        return self


class InstancePrice(DatedPrice):
    """Dollars per hour of one instance, Linux, shared tenancy, before any discount.

    For spot, min and max are the extremes over the region's zones and `expected` is the planning figure:
    the mean of the zones that list a spot market of their own.
    """

    instance_type: Name
    region: Name
    capacity: CapacityType
    usd_per_hour_min: Usd
    usd_per_hour_expected: Usd
    usd_per_hour_max: Usd

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if not self.usd_per_hour_min <= self.usd_per_hour_expected <= self.usd_per_hour_max:
            raise ValueError("min <= expected <= max does not hold")
        return self


class Region(Fact):
    """A region, its zones, and the GPU types of the catalog that each zone offers."""

    name: Name
    zones: tuple[Name, ...] = Field(min_length=1)
    zone_ids: tuple[Name, ...] = ()  # which name has which id differs by account, so there is no mapping
    instance_types: dict[str, tuple[Name, ...]]  # type -> ids of the zones that offer it

    def offers(self, instance_type: str) -> bool:
        """Return whether any zone of the region offers the type."""
        return instance_type in self.instance_types


class CpuFamily(Fact):
    """Sizes of a family of CPU machine types that are offered in the same places."""

    name: Name
    architecture: Literal["x86_64", "arm64"]
    mib_per_vcpu: Count | None = None  # None: not the same in all sizes
    sizes: tuple[Name, ...]
    regions: tuple[Name, ...]
    without_zones: tuple[Name, ...]  # ids of the zones of these regions that do not offer it


@dataclass(frozen=True)
class CpuType:
    """One CPU machine type of EC2, for a pool."""

    name: str
    architecture: Literal["x86_64", "arm64"]
    vcpu: int
    memory_mib: int


class Endpoints(Fact):
    """Names of services with an interface endpoint: the end of `com.amazonaws.<region>.<name>`."""

    names: tuple[Name, ...]


class EndpointGap(Fact):
    """Regions without the interface endpoint of a service."""

    name: Name
    regions: tuple[Name, ...]


class LustreThroughput(Fact):
    """One throughput tier of FSx for Lustre PERSISTENT_2 SSD, and the capacities each use accepts."""

    throughput_mb_s_per_tib: Count
    capacity_first_gib: Count  # the one small size allowed besides multiples of the step
    capacity_step_gib: Count
    efa_capacity_step_gib: Count  # with EFA: this and its multiples only


class KubernetesVersion(Fact):
    """One Kubernetes minor version on EKS; a `None` date has no source."""

    version: Annotated[str, Field(pattern=r"^1\.\d+$")]
    released: datetime.date | None = None
    standard_support_ends: datetime.date | None = None
    extended_support_ends: datetime.date | None = None


class ZoneWithoutEks(Fact):
    """A zone in which no subnet of an EKS cluster may lie, by its id."""

    zone_id: Name


class AddonIdentity(BaseModel):
    """AWS permissions of the pods of one service account of an add-on.

    `managed_policies` are the ARN paths after `arn:aws:iam::aws:policy/`, `actions` additional actions on all
    resources. With `by_resource`, the component that creates a resource grants access to it. Neither: no
    source gives them narrowly enough.
    """

    model_config = CLOSED

    service_account: Name
    managed_policies: tuple[Name, ...] = ()
    actions: tuple[Name, ...] = ()
    by_resource: bool = False


class EksAddon(Fact):
    """One EKS add-on and the identities its pods use."""

    name: Name
    namespace: Name
    identities: tuple[AddonIdentity, ...] = ()


class ServiceQuota(Fact):
    """A default service quota of an account, per region; `None`: the sources disagree."""

    key: Name
    service: Name
    quota_code: Name | None = None
    description: Name
    value: float | None = Field(default=None, ge=0)
    unit: Name
    each: bool = False  # limits every single request; what others use does not count
    error: Name | None = None  # the code with which the service refuses more; None: not known


class Permission(Fact):
    """The IAM actions for creating, changing and deleting resources of a Pulumi type."""

    type: Name
    actions: tuple[Name, ...] = Field(min_length=1)
    passes_to: tuple[Name, ...] = ()
    """Services that get a role with the resource: principals of the role's trust, and the called service."""

    @model_validator(mode="after")
    def _passes_roles_to_named_services(self) -> Self:
        if ("iam:PassRole" in self.actions) != bool(self.passes_to):
            raise ValueError("iam:PassRole and the services of passes_to need each other")
        return self


class SimulatedResource(Fact):
    """The ARN of a resource of a Pulumi type, and the IAM actions that are simulated with it.

    `{stack}`, `{region}` and `{account}` in the ARN stand for those of the stack.
    """

    type: Name
    arn: Name
    actions: tuple[Name, ...] = Field(min_length=1)
