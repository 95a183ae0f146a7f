"""Demand of nodes for the quotas of a project, and requests for more.

A quota without a known value is never exceeded.
"""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from infra.catalog.demand import Demand, by_quota
from infra.catalog.gcp import facts
from infra.catalog.gcp.model import ServiceQuota
from infra.catalog.gcp.pools import PREEMPTIBLE, PREPAID

RESERVED: Final = PREPAID
"""Reserved capacity counts at reservation, its nodes against no quota of processors, GPUs and SSDs
(GoogleCloudPlatform/cluster-toolkit pkg/config quota.go)."""


@dataclass(frozen=True)
class Shortfall:
    """Demand that exceeds a quota of the project."""

    quota: ServiceQuota
    limit: float
    wanted: float
    names: tuple[str, ...]

    def __str__(self) -> str:
        names = ", ".join(self.names[:4]) + (" ..." if len(self.names) > 4 else "")
        unit = self.quota.unit
        return f"{self.quota.description}: {self.wanted:g} {unit} wanted, {self.limit:g} allowed ({names})"


def gpu_key(accelerator: str, *, preemptible: bool) -> str | None:
    """The quota that GPUs count against; None without a source."""
    wanted = accelerator, preemptible
    rows = facts.quotas.values()
    return next((row.key for row in rows if (row.accelerator, row.preemptible) == wanted), None)


def cpu_key(machine: str) -> str | None:
    """The quota of a region that the vCPUs of a machine type count against; None if unknown."""
    series = machine.partition("-")[0]
    return next((row.key for row in facts.quotas.values() if series in row.families), None)


def vcpus(machine: str) -> int | None:
    """The vCPUs of a machine type, also from its name, as `c9-standard-8`; None for others.

    Source: Compute Engine documentation, "Machine families resource and comparison guide", naming convention.
    """
    last = machine.rpartition("-")[2]
    named = int(last) if last.isdigit() and machine.count("-") == 2 else None
    return facts.vcpus(machine) or named


def taken(
    machine: str, gpus: Mapping[str, int], nodes: int, *, preemptible: bool
) -> Iterator[tuple[str, float]]:
    """(quota, amount) of `nodes` machines with these GPUs each.

    Spot has separate quotas in a region, and counts in the quota of all regions. Processors of machines with
    GPUs are not counted there, as no source says that they are; of these, only A2 has a regional quota.
    """
    for accelerator, count in gpus.items():
        key = gpu_key(accelerator, preemptible=preemptible)
        if key:
            yield key, float(count * nodes)
        yield "gpus_all_regions", float(count * nodes)
    key, each, with_gpus = cpu_key(machine), vcpus(machine), machine in facts.machine_types
    if each and key and (with_gpus or not preemptible):
        yield key, float(each * nodes)
    if each and not with_gpus:
        yield "cpus_all_regions", float(each * nodes)


def demands(name: str, machine: str, bought: str, nodes: int) -> Iterator[Demand]:
    """Demand of a pool of `nodes` nodes for processors and GPUs. Unknown machines take nothing."""
    if bought in RESERVED or nodes == 0:
        return
    known = facts.machine_types.get(machine)
    gpus = {known.accelerator: known.count} if known else {}
    for key, amount in taken(machine, gpus, nodes, preemptible=bought in PREEMPTIBLE):
        yield Demand(key, amount, name)


def exceeded(wanted: Iterable[Demand], allowed: Mapping[str, float]) -> list[Shortfall]:
    """Every quota of `allowed` that the sum of its demands exceeds, worst first."""
    found = []
    for key, asked in by_quota(wanted).items():
        amount = sum(one.amount for one in asked)
        if amount > allowed.get(key, amount):
            names = tuple(dict.fromkeys(one.name for one in asked))
            found.append(Shortfall(facts.quotas[key], allowed[key], amount, names))
    return sorted(found, key=lambda one: one.limit / one.wanted)


def dimensions(row: ServiceQuota, region: str) -> dict[str, str]:
    """The dimensions of a quota's value for a region."""
    place = {"region": region} if row.regional else {}
    return {**place, **({"gpu_family": row.gpu_family} if row.gpu_family else {})}


def request(key: str, value: float, project: str, region: str) -> str:
    """The command that requests a quota of `value`, rounded up."""
    row = facts.quotas[key]
    chosen = ",".join(f"{name}={one}" for name, one in dimensions(row, region).items())
    return (
        f"gcloud beta quotas preferences create --project={project} --service={row.service} "
        f"--quota-id={row.quota_id} --preferred-value={math.ceil(value)}"
        + (f" --dimensions={chosen}" if chosen else "")
    )
