"""What nodes of GPU machines are made of, and what GKE has to be told about them."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Final, Literal

from pydantic import Field

from infra.catalog.errors import UnknownFactError
from infra.catalog.fact import Count, Fact, Name
from infra.catalog.gcp import facts
from infra.catalog.tables import by_key, read_rows

_TABLE: Final = Path(__file__).parent / "tables" / "nodes.toml"
LOCAL_SSD_GIB: Final = 375


class Node(Fact):
    """A node of a GPU machine."""

    machine: Name
    vcpu: Count
    memory_gib: Count
    architecture: Literal["x86_64", "arm64"] = "x86_64"
    local_ssds: Count | None = None
    """How many the type always has; None where people choose, or no source says."""
    fixed_ssds: bool = False
    """Whether it has some number of them that no source gives."""
    boot_disk: Name | None = None
    fabric: Literal["tcpx", "tcpxo", "rdma"] | None = None
    nics: Count | None = None
    nic_gbps: Count | None = None
    network_gbps: Count | None = None
    topology: Name | None = None
    """Machines of one rack that a workload policy places together, as GKE writes it."""
    static_cpu: bool = False
    """Whether pods get whole processors, and memory beside them."""
    huge_pages: Count | None = None
    """Pages of 2 MiB that its adapters need."""
    secure_boot: bool = True
    """Whether it starts with secure boot."""
    labels: dict[str, str] = Field(default_factory=dict)
    """Labels by which GKE sets its nodes up."""

    @property
    def accelerator(self) -> str:
        """As GKE calls it."""
        return facts.machine_types[self.machine].accelerator

    @property
    def gpus(self) -> int:
        """GPUs of the machine."""
        return facts.machine_types[self.machine].count

    @property
    def ssds_are_chosen(self) -> bool:
        """Whether whoever makes a node says how many local SSDs it has."""
        return self.local_ssds is None and not self.fixed_ssds


class Partitions(Fact):
    """Into how many parts of each size a GPU can be cut."""

    accelerator: Name
    parts: dict[str, int] = Field(min_length=1)


class Peak(Fact):
    """The peak that the maker of a GPU states."""

    accelerator: Name
    dense_bf16_tflops: float


@cache
def nodes() -> Mapping[str, Node]:
    """Nodes by the name of the machine. Raises CatalogError when the table is malformed."""
    return by_key(read_rows(_TABLE, "node", Node), lambda row: row.machine, _TABLE.name)


@cache
def partitions() -> Mapping[str, Partitions]:
    """Partitions by the name of the accelerator."""
    return by_key(read_rows(_TABLE, "partitions", Partitions), lambda row: row.accelerator, _TABLE.name)


@cache
def peaks() -> Mapping[str, Peak]:
    """Peaks by the name of the accelerator."""
    return by_key(read_rows(_TABLE, "peak", Peak), lambda row: row.accelerator, _TABLE.name)


def node(machine: str) -> Node:
    """A node of this machine type. Raises UnknownFactError for one that the catalog lacks."""
    found = nodes().get(machine)
    if found is None or machine not in facts.machine_types:
        known = {name: row for name, row in nodes().items() if name in facts.machine_types}
        raise UnknownFactError("GPU machine type", machine, known)
    return found
