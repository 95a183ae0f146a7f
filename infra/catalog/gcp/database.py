"""Machine tiers, disks and backups of Cloud SQL for PostgreSQL, edition Enterprise."""

import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

from infra.catalog.limits import Limit, read_limits
from infra.errors import Problem

_TIER = re.compile(r"db-custom-(\d+)-(\d+)")
# Memory for each vCPU, in MiB (0.9 and 6.5 GiB).
_LEAST_MIB, _MOST_MIB = 921.6, 6656


@cache
def _limits() -> Mapping[str, Limit]:
    return read_limits(Path(__file__).parent / "tables" / "cloud_sql.toml")


def tier_problems(path: str, tier: str) -> Iterator[Problem]:
    """A custom tier, `db-custom-<vCPUs>-<MiB>`, that can be made."""
    found = _TIER.fullmatch(tier)
    if found is None:
        yield Problem(path, tier, "must be db-custom-<vCPUs>-<MiB>", "Set db-custom-2-7680.")
        return
    cpus, memory = int(found[1]), int(found[2])
    yield from _limits()["cloud_sql_cpus"].problems(path, cpus)
    yield from _limits()["cloud_sql_memory_mib"].problems(path, memory)
    if cpus > 1 and cpus % 2:
        yield Problem(path, tier, "has an odd number of vCPUs above 1", f"Set {cpus + 1} vCPUs.")
    if not _LEAST_MIB * cpus <= memory <= _MOST_MIB * cpus:
        rule = f"{cpus} vCPUs take {_LEAST_MIB * cpus:g} to {_MOST_MIB * cpus:g} MiB of memory"
        yield Problem(path, tier, rule, "Change the number of vCPUs or the memory.")


def database_problems(*, tier: str, disk_gib: float, backup_days: float) -> Iterator[Problem]:
    """Everything that Cloud SQL would refuse of a database's size and backups."""
    yield from tier_problems("tier", tier)
    yield from _limits()["cloud_sql_disk_gib"].problems("disk_gib", disk_gib)
    yield from _limits()["cloud_sql_backup_days"].problems("backup_retention_days", backup_days)
