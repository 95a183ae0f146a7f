"""Cluster Director: machine series, ids, the version of Slurm, settings that its resource does not have.

No source states how many nodesets, partitions or clusters a project may have: it is unknown here.
"""

import re
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Final

from pydantic import Field

from infra.catalog.fact import Count, Fact, Name
from infra.catalog.tables import read_table
from infra.errors import Problem

API: Final = "hypercomputecluster.googleapis.com"
"""The API of the service."""
_ID: Final = re.compile(r"[a-z][a-z0-9]*")
_RESERVATION: Final = re.compile(r"projects/(?P<project>[^/]+)/reservations/(?P<name>[^/]+)")
_LOGIN_TYPE: Final = re.compile(r"n2-standard-(?P<vcpus>\d+)")


class DirectorSeries(Fact):
    """Machine types of a series, and the ways to buy them."""

    name: Name
    machines: tuple[Name, ...] = Field(default=(), strict=False)
    """Types of the series; empty: all that begin with its name and a dash."""
    purchases: tuple[Name, ...] = Field(strict=False)

    def has(self, machine: str) -> bool:
        """Return whether a machine type is of the series."""
        return machine in self.machines if self.machines else machine.startswith(f"{self.name}-")


class DirectorLimit(Fact):
    """A largest value."""

    name: Name
    most: Count


class DirectorVersion(Fact):
    """The version of Slurm of new clusters."""

    name: Name


class DirectorSetting(Fact):
    """A setting of Slurm that the resource does not have."""

    name: Name
    default: Name
    effect: Name


class DirectorCatalog:
    """Tables of the service; each is read on first use."""

    def __init__(self, path: Path) -> None:
        self._path = path

    @cached_property
    def series(self) -> Mapping[str, DirectorSeries]:
        """Machine series by name."""
        return read_table(self._path, "series", DirectorSeries, "name")

    @cached_property
    def limits(self) -> Mapping[str, int]:
        """Largest values by name."""
        rows = read_table(self._path, "limit", DirectorLimit, "name")
        return {name: row.most for name, row in rows.items()}

    @cached_property
    def version(self) -> str:
        """Version of Slurm of a new cluster."""
        rows = read_table(self._path, "version", DirectorVersion, "name")
        return next(iter(rows.values())).name

    @cached_property
    def settings(self) -> Mapping[str, DirectorSetting]:
        """Settings that the resource does not have, by name."""
        return read_table(self._path, "setting", DirectorSetting, "name")


director: Final = DirectorCatalog(Path(__file__).parent / "tables" / "director.toml")


def cluster_id_problems(path: str, name: str) -> Iterator[Problem]:
    """The id of a cluster."""
    most = director.limits["cluster_id_letters"]
    if not _ID.fullmatch(name) or len(name) > most:
        rule = f"Cluster Director needs 1 to {most} lower-case letters and digits, a letter first"
        yield Problem(path, name, rule, "Choose another id.", code="director-id-invalid")


def machine_problems(path: str, machine: str, purchase_path: str, purchase: str) -> Iterator[Problem]:
    """A machine type of a nodeset, bought in a way that the service has."""
    series = next((one for one in director.series.values() if one.has(machine)), None)
    if series is None:
        known = ", ".join(name for one in director.series.values() for name in one.machines or (one.name,))
        rule, fix = "is no machine type of Cluster Director", f"Use one of {known}."
        yield Problem(path, machine, rule, fix, code="director-machine-unsupported")
    elif purchase not in series.purchases:
        rule = f"Cluster Director does not sell {machine} this way"
        fix = f"Use one of {', '.join(series.purchases)}."
        yield Problem(purchase_path, purchase, rule, fix, against=path, code="director-purchase-unsupported")


def login_problems(path: str, machine: str) -> Iterator[Problem]:
    """The machine type of a login node."""
    most, found = director.limits["login_vcpus"], _LOGIN_TYPE.fullmatch(machine)
    if found is None or int(found["vcpus"]) > most:
        rule = f"login nodes of Cluster Director are n2-standard machines of at most {most} processors"
        yield Problem(path, machine, rule, "Use n2-standard-4.", code="director-login-unsupported")


def version_problems(path: str, version: str) -> Iterator[Problem]:
    """The version of Slurm: that of new clusters, as the resource cannot ask for another one."""
    if version != director.version:
        rule = f"new clusters of Cluster Director have Slurm {director.version}"
        yield Problem(path, version, rule, f"Set {director.version}.", code="director-version-unsupported")


def reservation_problems(path: str, name: str) -> Iterator[Problem]:
    """A whole reservation, as the API names no blocks of one."""
    if not _RESERVATION.fullmatch(name):
        rule = "Cluster Director takes a whole reservation"
        fix = "Write projects/<project>/reservations/<name>."
        yield Problem(path, name, rule, fix, code="director-reservation-invalid")


def reservation_name(name: str, zone: str) -> str:
    """The name of a reservation with its zone, as the API takes it."""
    found = _RESERVATION.fullmatch(name)
    assert found is not None  # `reservation_problems`
    return f"projects/{found['project']}/zones/{zone}/reservations/{found['name']}"
