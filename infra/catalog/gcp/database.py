"""Machine tiers, disks and backups of Cloud SQL for PostgreSQL, edition Enterprise."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from infra.catalog.gcp import facts
from infra.errors import Problem

# Source: Cloud SQL documentation, Create instances ("Memory must be: 0.9 to 6.5 GB per vCPU. A multiple of
# 256 MB. At least 3.75 GB (3840 MB)"; "vCPUs must be either 1 or an even number between 2 and 96"), read
# 2026-11-25.
_TIER: Final = re.compile(r"db-custom-(\d+)-(\d+)")
_MOST_VCPU: Final = 96
_LEAST_MIB: Final = 3840
_STEP_MIB: Final = 256
_LEAST_PER_VCPU: Final = 0.9
_MOST_PER_VCPU: Final = 6.5
"""In GiB."""

SHARED_CORES: Final = ("db-f1-micro", "db-g1-small")
"""Tiers with a shared processor: cheap, and without a service level. Source: Cloud SQL documentation,
"Instance settings" (machine types: shared core), and its service level agreement, which excludes them."""


@dataclass(frozen=True)
class Tier:
    """A machine tier with dedicated cores."""

    vcpu: int
    mib: int

    @property
    def gib(self) -> float:
        """Memory in GiB."""
        return self.mib / 1024


def tier(name: str) -> Tier | None:
    """The size of a tier `db-custom-<CPUs>-<MiB>`; None for other forms."""
    found = _TIER.fullmatch(name)
    return Tier(int(found[1]), int(found[2])) if found else None


def tier_problems(path: str, name: str, *, shared: bool = False) -> Iterator[Problem]:
    """The tier has processors and memory that Cloud SQL offers; with `shared` also a shared core."""
    if shared and name in SHARED_CORES:
        return
    size = tier(name)
    if size is None:
        rule, fix = "must have the form db-custom-<CPUs>-<MiB>", "Write db-custom-2-7680."
        yield Problem(path, name, rule, fix, code="invalid-database-tier")
        return
    if size.vcpu != 1 and (size.vcpu % 2 or not 2 <= size.vcpu <= _MOST_VCPU):
        rule = f"must have 1 processor, or an even number up to {_MOST_VCPU}"
        yield Problem(path, name, rule, "Write db-custom-2-7680.", code="database-processors-not-offered")
        return
    least = max(_LEAST_MIB, int(size.vcpu * _LEAST_PER_VCPU * 1024))
    most = int(size.vcpu * _MOST_PER_VCPU * 1024)
    if not least <= size.mib <= most or size.mib % _STEP_MIB:
        fitting = min(max(size.mib, least), most)
        nearest = -(-fitting // _STEP_MIB) * _STEP_MIB
        nearest -= _STEP_MIB if nearest > most else 0
        rule = f"{size.vcpu} processors take {least} to {most} MiB in steps of {_STEP_MIB}"
        fix = f"Write db-custom-{size.vcpu}-{nearest}."
        yield Problem(path, name, rule, fix, code="database-memory-not-offered")


def database_problems(
    *, tier: str, disk_gib: float, backup_days: float, shared: bool = False
) -> Iterator[Problem]:
    """Check the size and backups of a Cloud SQL database."""
    yield from tier_problems("tier", tier, shared=shared)
    yield from facts.limits["cloud_sql_disk_gib"].problems("disk_gib", disk_gib)
    yield from facts.limits["cloud_sql_backup_days"].problems("backup_retention_days", backup_days)
