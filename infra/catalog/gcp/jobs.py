"""Machine types of managed training jobs and notebooks (Vertex AI): GPUs, price, names of quotas."""

import datetime
import difflib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Final

from pydantic import Field

from infra.catalog.fact import Count, DatedPrice, Fact, Name
from infra.catalog.gcp import facts
from infra.catalog.gcp.model import family_of
from infra.catalog.gcp.prices import NodePrice, node_price
from infra.catalog.tables import by_key, read_rows
from infra.errors import Problem

IDLE_MINUTES: Final = (10, 1440)
"""What the idle shutdown of a notebook takes. Source: Vertex AI Workbench documentation, "Idle shutdown",
read 2026-11-22."""
NOTEBOOK_BOOT_GIB: Final = 150
"""The boot disk of a notebook, in GiB: what Workbench recommends, and takes where nothing is said. Source:
Notebooks API v2, BootDisk.diskSizeGb."""
NOTEBOOK_DISK_GIB: Final = 10
"""The least that a standard persistent disk of Compute Engine has, in GiB."""


class JobFamily(Fact):
    """A family of machine types that custom jobs may have."""

    name: Name
    sizes: tuple[Count, ...] = ()  # of CPU types; empty: all that the catalog knows
    accelerator: Name | None = None  # as the service calls the GPU
    quota: Name | None = None  # the part of the quota's metric that names the GPU


class JobFee(DatedPrice):
    """What the service costs above Compute Engine, as a share of the machine's on-demand price."""

    share: Annotated[float, Field(ge=0, le=1)]


@dataclass(frozen=True)
class JobMachine:
    """A machine type of the service."""

    name: str
    accelerator: str | None
    """What a job names as `acceleratorType`; None without GPUs."""
    gpus: int
    quota: str | None


@dataclass(frozen=True)
class JobPrice:
    """US dollars per machine-hour, with the price that has to be renewed first."""

    usd: float
    renew: DatedPrice


class JobCatalog:
    """The table of machine types, read when it is first asked for."""

    def __init__(self, path: Path) -> None:
        self._path = path

    @cached_property
    def machines(self) -> Mapping[str, JobMachine]:
        """Types that custom jobs may have, by name such as "g2-standard-8"."""
        rows = read_rows(self._path, "job_family", JobFamily)
        families = by_key(rows, lambda row: row.name, self._path.name)
        cpu = {
            name: JobMachine(name, None, 0, None)
            for name in facts.cpu_types
            if (row := families.get(family_of(name))) and int(name.rpartition("-")[2]) in row.sizes
        }
        return cpu | {
            name: JobMachine(name, row.accelerator, known.count, row.quota)
            for name, known in facts.machine_types.items()
            if (row := families.get(known.family))
        }

    @cached_property
    def fee(self) -> JobFee:
        """What the service adds."""
        (row,) = read_rows(self._path, "job_fee", JobFee)
        return row

    def price(self, machine: str, region: str, *, spot: bool = False) -> JobPrice | None:
        """What an hour costs, or None where no source says: unknown, never free.

        Spot machines cost their spot price and the fee, which is a share of the on-demand price.
        """
        listed = node_price(machine, region, "on_demand")
        bought = node_price(machine, region, "spot") if spot else listed
        if machine not in self.machines or listed is None or bought is None:
            return None
        return JobPrice(bought.expected + self.fee.share * listed.expected, _first(self.fee, bought))


jobs: Final = JobCatalog(Path(__file__).parent / "tables" / "job_machines.toml")


def quota_metric(machine: JobMachine, *, spot: bool) -> str | None:
    """The metric of the quota that GPUs of jobs count against; None where no source names one.

    Quotas of custom jobs are not those of Compute Engine, nor those of endpoints. Source: quota errors and
    listings in public repositories, such as GoogleCloudPlatform/stable-diffusion-on-gcp issue 12
    (custom_model_training_nvidia_l4_gpus), read 2026-11-22.
    """
    if machine.quota is None:
        return None
    kind = "preemptible_" if spot else ""
    return f"aiplatform.googleapis.com/custom_model_training_{kind}nvidia_{machine.quota}_gpus"


def machine_problems(path: str, machine: str, region: str) -> Iterator[Problem]:
    """The type is one of custom jobs, and offered in the region as far as Compute Engine's offers tell."""
    known = jobs.machines.get(machine)
    if known is None:
        near = difflib.get_close_matches(machine, jobs.machines, n=3) or ["g2-standard-8"]
        rule = "is no machine type of custom jobs that is known"
        yield Problem(path, machine, rule, f"Such are {', '.join(near)}.")
    elif region in facts.regions and facts.offering_zones(machine, region) == ():
        regions = sorted(place for place in facts.regions if facts.offering_zones(machine, place))
        fix = f"It is offered in {', '.join(regions[:6])}." if regions else "Choose another type."
        yield Problem(path, machine, f"is not offered in {region}", fix)


def notebook_problems(path: str, machine: str, idle_path: str, idle_minutes: int) -> Iterator[Problem]:
    """Notebooks have no GPUs, and go off after a time that the service takes."""
    if machine not in facts.cpu_types:
        near = difflib.get_close_matches(machine, facts.cpu_types, n=3) or ["e2-standard-2"]
        rule = "is no machine type without GPUs that is known: GPUs belong to jobs, which end by themselves"
        yield Problem(path, machine, rule, f"Such are {', '.join(near)}.")
    least, most = IDLE_MINUTES
    if not least <= idle_minutes <= most:
        rule = f"a notebook can go off after {least} to {most} minutes"
        yield Problem(idle_path, idle_minutes, rule, f"Set {min(max(idle_minutes, least), most)}.")


def _first(fee: JobFee, price: NodePrice) -> DatedPrice:
    """The one that is to be renewed first."""
    return min((fee, price.renew), key=lambda row: row.date + datetime.timedelta(row.good_for_days))
