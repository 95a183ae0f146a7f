"""The NICs beside the GPUs of a machine: which networks they need, and what these are like."""

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Final, Literal

from pydantic import Field

from infra.catalog.fact import Fact, Name
from infra.catalog.gcp import facts
from infra.catalog.tables import by_key, read_rows
from infra.errors import Problem

JUMBO: Final = 8896
"""The largest packet of a VPC network, in bytes (VPC documentation, "Maximum transmission unit")."""
_TABLE: Final = Path(__file__).parent / "tables" / "fabrics.toml"
Making = Literal["managed", "classic"]
Mtu = Annotated[int, Field(ge=1300, le=JUMBO)]


class Fabric(Fact):
    """What the networks of a machine type need besides their number."""

    machine: Name
    primary_mtu: Mtu
    """Of the cluster's own network."""
    accelerator_mtu: Mtu
    """Of the networks beside GPUs."""
    managed: bool
    """Whether GKE can make these by itself (DRANET, `acceleratorNetworkProfile: auto`)."""


@cache
def fabrics() -> Mapping[str, Fabric]:
    """Fabrics by the name of the machine type. Raises CatalogError when the table is malformed."""
    return by_key(read_rows(_TABLE, "fabric", Fabric), lambda row: row.machine, _TABLE.name)


def making(machine: str, wanted: Making) -> Making | None:
    """Who makes the networks of a machine type; None where it needs none.

    GKE makes those that it can where `managed` is wanted. Those of TCPX and TCPXO are always classic, those
    of a type that no source lays out by hand always managed.
    """
    fabric = fabrics().get(machine)
    if fabric is None:
        return None
    if not fabric.managed:
        return "classic"
    return wanted if machine in facts.gpu_networks else "managed"


def primary_mtu(machines: Iterable[str]) -> int:
    """The largest packet of a cluster's network that all these machine types can have, in bytes."""
    known = fabrics()
    return min((known[machine].primary_mtu for machine in machines if machine in known), default=JUMBO)


def classic_problems(path: str, machine: str) -> Iterator[Problem]:
    """The networks of a machine type are known, so that they can be made by hand."""
    if machine not in fabrics() or machine not in facts.gpu_networks:
        known = ", ".join(sorted(set(fabrics()) & set(facts.gpu_networks)))
        rule = "no source says which networks its NICs need"
        yield Problem(path, machine, rule, f"Known are {known}; GKE itself makes those of A4X (managed).")
