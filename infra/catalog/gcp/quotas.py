"""What nodes take of the quotas of a project, and how more is asked for.

A quota whose value is not known never refuses.
"""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from infra.catalog.gcp import facts
from infra.catalog.gcp.model import Quota

RESERVED: Final = ("reserved", "block")
"""Nodes on a specific reservation count against no quota of processors, GPUs and SSDs."""
_PREEMPTIBLE: Final = ("spot", "flex_start", "queued")


@dataclass(frozen=True)
class Demand:
    """So much of a quota is taken by something with a name."""

    key: str
    amount: float
    name: str


@dataclass(frozen=True)
class Shortfall:
    """More is wanted than the project may have."""

    quota: Quota
    limit: float
    wanted: float
    names: tuple[str, ...]

    def __str__(self) -> str:
        names = ", ".join(self.names[:4]) + (" ..." if len(self.names) > 4 else "")
        unit = self.quota.unit
        return f"{self.quota.description}: {self.wanted:g} {unit} wanted, {self.limit:g} allowed ({names})"


def gpu_quota(accelerator: str, bought: str) -> Quota | None:
    """The quota that GPUs count against, by how nodes are bought; None: reserved, or no source names one."""
    if bought in RESERVED:
        return None
    preemptible = bought in _PREEMPTIBLE
    fitting = (
        row
        for row in facts.quotas.values()
        if row.accelerator == accelerator and row.preemptible == preemptible
    )
    return next(fitting, None)


def demands(name: str, machine: str, bought: str, nodes: int) -> Iterator[Demand]:
    """What a pool of so many nodes takes. Machines that are not known take nothing."""
    if bought in RESERVED or nodes == 0:
        return
    vcpus = facts.vcpus(machine)
    if vcpus is not None:
        yield Demand("cpus_all_regions", float(vcpus * nodes), name)
    gpus = facts.machine_types.get(machine)
    if gpus is None:
        return
    yield Demand("gpus_all_regions", float(gpus.count * nodes), name)
    if machine.startswith("a2-"):
        yield Demand("a2_cpus", float(gpus.vcpu * nodes), name)
    row = gpu_quota(gpus.accelerator, bought)
    if row is not None:
        yield Demand(row.key, float(gpus.count * nodes), name)


def exceeded(wanted: Iterable[Demand], allowed: Mapping[str, float]) -> list[Shortfall]:
    """Every quota of `allowed` that the sum of its demands exceeds, worst first."""
    by_key: dict[str, list[Demand]] = {}
    for demand in wanted:
        by_key.setdefault(demand.key, []).append(demand)
    found = []
    for key, taken in by_key.items():
        amount = sum(one.amount for one in taken)
        if amount > allowed.get(key, amount):
            names = tuple(one.name for one in taken)
            found.append(Shortfall(facts.quotas[key], allowed[key], amount, names))
    return sorted(found, key=lambda one: one.limit / one.wanted)


def request(key: str, value: float, project: str, region: str) -> str:
    """The command that asks Google Cloud for a quota of `value`, rounded up."""
    row = facts.quotas[key]
    places = [f"region={region}"] if row.quota_id.endswith("-region") else []
    families = [f"gpu_family={row.gpu_family}"] if row.gpu_family else []
    dimensions = f" --dimensions={','.join([*places, *families])}" if places or families else ""
    return (
        f"gcloud alpha quotas preferences create --service=compute.googleapis.com --project={project} "
        f"--quota-id={row.quota_id} --preferred-value={math.ceil(value)}{dimensions}"
    )
