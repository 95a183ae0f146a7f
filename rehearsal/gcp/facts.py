"""Dated facts from `facts.toml`: GPU machines, fabrics, storage sizes, zones, GKE versions."""

import functools
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_FILE = Path(__file__).with_name("facts.toml")
_LETTERS = ("a", "b", "c")


@dataclass(frozen=True)
class Machine:
    """A machine type with built-in GPUs: GKE's name of the accelerator, and how many."""

    name: str
    accelerator: str
    count: int
    source: str


@dataclass(frozen=True)
class Fabric:
    """The networks that the NICs of a machine's GPUs need, besides the cluster's own."""

    machine: str
    networks: int
    rdma_subnetworks: int
    source: str

    @property
    def total(self) -> int:
        """Additional node networks of a node pool."""
        return self.networks + self.rdma_subnetworks


@dataclass(frozen=True)
class FilestoreTier:
    """Sizes of a tier in GiB: bands of (smallest, largest, step)."""

    tier: str
    bands: tuple[tuple[int, int, int], ...]
    source: str

    def offers(self, gib: int) -> bool:
        """Whether a share may have this size."""
        return any(low <= gib <= high and (gib - low) % step == 0 for low, high, step in self.bands)


@dataclass(frozen=True)
class LustreTier:
    """A throughput in MB/s per TiB, and its smallest size and step in GiB."""

    throughput: int
    step: int
    largest: int
    source: str


@functools.cache
def _tables() -> Mapping[str, Any]:
    return tomllib.loads(_FILE.read_text())


def _sourced(row: Mapping[str, Any]) -> dict[str, Any]:
    return {**row, "source": _tables()["sources"][row["source"]]["text"]}


@functools.cache
def machines() -> Mapping[str, Machine]:
    """Machine types with built-in GPUs, by name."""
    return {row["name"]: Machine(**_sourced(row)) for row in _tables()["machine"]}


@functools.cache
def fabrics() -> Mapping[str, Fabric]:
    """Machines whose GPUs have NICs of their own, by name."""
    return {row["machine"]: Fabric(**_sourced(row)) for row in _tables()["fabric"]}


@functools.cache
def filestore_tiers() -> Mapping[str, FilestoreTier]:
    """Filestore tiers by name."""
    rows = ({**row, "bands": tuple(tuple(band) for band in row["bands"])} for row in _tables()["filestore"])
    return {row["tier"]: FilestoreTier(**_sourced(row)) for row in rows}


@functools.cache
def lustre_tiers() -> Mapping[int, LustreTier]:
    """Managed Lustre tiers by throughput."""
    return {row["throughput"]: LustreTier(**_sourced(row)) for row in _tables()["lustre"]}


def versions() -> tuple[str, ...]:
    """GKE versions, the one of new clusters first."""
    return tuple(_tables()["versions"][0]["names"])


def zones(region: str) -> tuple[str, ...]:
    """The zones of a region; one that is not listed has a, b and c."""
    return tuple(f"{region}-{letter}" for letter in _tables()["zones"].get(region, _LETTERS))


def zones_known(region: str) -> bool:
    """Whether a source says which zones the region has."""
    return region in _tables()["zones"]
