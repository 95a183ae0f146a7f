"""Machine types of managed training jobs and notebooks (Vertex AI): GPUs, price, names of quotas."""

import datetime
import difflib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Final, Literal

from pydantic import Field

from infra.catalog.fact import Count, DatedPrice, Fact, Name
from infra.catalog.gcp import facts, pools
from infra.catalog.gcp.model import Way, family_of
from infra.catalog.gcp.prices import NodePrice, node_price
from infra.catalog.tables import read_rows, read_table
from infra.errors import Problem

IDLE_MINUTES: Final = (10, 1440)
"""Range of the idle shutdown of a notebook. Source: Vertex AI Workbench documentation, "Idle shutdown",
read 2026-11-22."""
Kind = Literal["on_demand", "spot", "reserved", "flex_start"]
"""Ways to buy machines of jobs."""
NOTEBOOK_BOOT_GIB: Final = 150
"""The boot disk of a notebook, in GiB: recommendation and default of Workbench. Source:
Notebooks API v2, BootDisk.diskSizeGb."""
_RESERVATION: Final = re.compile(
    r"projects/(?P<project>[a-z][a-z0-9-]{4,28}[a-z0-9])/zones/(?P<zone>[a-z0-9-]+)"
    r"/reservations/(?P<name>[a-z]([a-z0-9-]{0,61}[a-z0-9])?)"
)
NOTEBOOK_DISK_GIB: Final = 10
"""Minimum size of a standard persistent disk of Compute Engine, in GiB."""


class JobFamily(Fact):
    """A family of machine types that custom jobs may have."""

    name: Name
    sizes: tuple[Count, ...] = ()  # of CPU types; empty: all that the catalog knows
    accelerator: Name | None = None  # as the service calls the GPU
    quota: Name | None = None  # the part of the quota's metric that names the GPU


class JobFee(DatedPrice):
    """Fee of the service above Compute Engine, as a share of the machine's on-demand price."""

    share: Annotated[float, Field(ge=0, le=1)]


@dataclass(frozen=True)
class JobMachineType:
    """A machine type of the service."""

    name: str
    accelerator: str | None
    """`acceleratorType` of a job; None without GPUs."""
    gpus: int
    quota: str | None


@dataclass(frozen=True)
class JobPrice:
    """US dollars per machine-hour, with the price row that expires first."""

    usd: float
    renew: DatedPrice


class JobCatalog:
    """The table of machine types, read on first use."""

    def __init__(self, path: Path) -> None:
        self._path = path

    @cached_property
    def machines(self) -> Mapping[str, JobMachineType]:
        """Types that custom jobs may have, by name such as "g2-standard-8"."""
        families = read_table(self._path, "job_family", JobFamily, "name")
        cpu = {
            name: JobMachineType(name, None, 0, None)
            for name in facts.cpu_types
            if (row := families.get(family_of(name))) and int(name.rpartition("-")[2]) in row.sizes
        }
        return cpu | {
            name: JobMachineType(name, row.accelerator, known.count, row.quota)
            for name, known in facts.machine_types.items()
            if (row := families.get(known.family))
        }

    @cached_property
    def fee(self) -> JobFee:
        """The fee of the service."""
        (row,) = read_rows(self._path, "job_fee", JobFee)
        return row

    def price(self, machine: str, region: str, kind: Kind = "on_demand") -> JobPrice | None:
        """Price of an hour, or None without a source: unknown, never free.

        The fee is a share of the on-demand price, however machines are bought. On reserved machines a job
        adds only the fee: Compute Engine bills the reservation, used or not (Vertex AI documentation, "Use
        reservations with training", billing, read 2026-11-26).
        """
        listed = node_price(machine, region, "on_demand")
        bought = node_price(machine, region, kind) if kind in ("spot", "flex_start") else listed
        if machine not in self.machines or listed is None or bought is None:
            return None
        own = 0.0 if kind == "reserved" else bought.expected
        return JobPrice(own + self.fee.share * listed.expected, _first(self.fee, bought))


jobs: Final = JobCatalog(Path(__file__).parent / "tables" / "job_machines.toml")


@dataclass(frozen=True)
class JobReservation:
    """A reservation of Compute Engine for jobs."""

    project: str
    zone: str
    name: str


def job_reservation(text: str) -> JobReservation | None:
    """The reservation of a full name with its zone; None for other forms."""
    found = _RESERVATION.fullmatch(text)
    return JobReservation(found["project"], found["zone"], found["name"]) if found else None


def reservation_problems(path: str, named: str, region: str) -> Iterator[Problem]:
    """A reservation is in a zone of the region, by its full name: jobs may run in any zone."""
    found = job_reservation(named)
    if found is None:
        fix = "Write projects/<project>/zones/<zone>/reservations/<name>."
        rule = "must be the full name of a reservation, with its zone"
        yield Problem(path, named, rule, fix, code="invalid-reservation-name")
    elif not found.zone.startswith(f"{region}-"):
        rule = f"is in {found.zone}, and jobs run in {region}"
        fix = f"Name a reservation of a zone of {region}."
        yield Problem(path, named, rule, fix, code="reservation-in-other-region")


def quota_metric(machine: JobMachineType, *, spot: bool) -> str | None:
    """The metric of the quota that GPUs of jobs count against; None without a source.

    Flex-start jobs count as spot ones (Vertex AI documentation, "Schedule training jobs based on resource
    availability", quota).

    Quotas of custom jobs are not those of Compute Engine, nor those of endpoints. Source: quota errors and
    listings in public repositories, such as GoogleCloudPlatform/stable-diffusion-on-gcp issue 12
    (custom_model_training_nvidia_l4_gpus), read 2026-11-22.
    """
    if machine.quota is None:
        return None
    kind = "preemptible_" if spot else ""
    return f"aiplatform.googleapis.com/custom_model_training_{kind}nvidia_{machine.quota}_gpus"


def machine_problems(path: str, machine: str, region: str) -> Iterator[Problem]:
    """The type is available for custom jobs and, by the offers of Compute Engine, in the region."""
    known = jobs.machines.get(machine)
    if known is None:
        near = difflib.get_close_matches(machine, jobs.machines, n=3) or ["g2-standard-8"]
        rule = "is not a known machine type of custom jobs"
        yield Problem(path, machine, rule, f"Near it are {', '.join(near)}.", code="unknown-job-machine")
    elif region in facts.regions and facts.offering_zones(machine, region) == ():
        regions = sorted(place for place in facts.regions if facts.offering_zones(machine, place))
        fix = f"It is offered in {', '.join(regions[:6])}." if regions else "Choose another type."
        yield Problem(path, machine, f"is not offered in {region}", fix, code="machine-not-in-region")


def purchase_problems(path: str, kind: Way, machine: str, hours_path: str, hours: float) -> Iterator[Problem]:
    """Compute Engine sells the machine that way; flex-start has GPUs, for seven days at most.

    Source: Vertex AI documentation, "Schedule training jobs based on resource availability", read 2026-11-28
    (L4, A100, H100, H200, B200: the GPUs of this catalog's job types).
    """
    if machine not in jobs.machines:
        return
    yield from pools.purchase_problems(path, kind, machine)
    if kind != "flex_start":
        return
    if machine in facts.cpu_types:
        fix = "Buy it on_demand or spot."
        yield Problem(path, kind, "flex-start jobs have GPUs", fix, code="purchase-needs-gpus")
    if hours > pools.FLEX_START_DAYS * 24:
        rule = f"flex-start jobs run at most {pools.FLEX_START_DAYS * 24} hours"
        fix = f"Set {pools.FLEX_START_DAYS * 24}."
        yield Problem(hours_path, hours, rule, fix, against=path, code="flex-start-too-long")


def notebook_problems(path: str, machine: str, idle_path: str, idle_minutes: int) -> Iterator[Problem]:
    """Notebooks have no GPUs, and an idle shutdown that the service accepts."""
    if machine not in facts.cpu_types:
        near = difflib.get_close_matches(machine, facts.cpu_types, n=3) or ["e2-standard-2"]
        rule = "is not a known machine type without GPUs; only jobs, which end by themselves, may use GPUs"
        yield Problem(path, machine, rule, f"Near it are {', '.join(near)}.", code="unknown-notebook-machine")
    least, most = IDLE_MINUTES
    if not least <= idle_minutes <= most:
        rule = f"idle shutdown must be after {least} to {most} minutes"
        fix = f"Set {min(max(idle_minutes, least), most)}."
        yield Problem(idle_path, idle_minutes, rule, fix, code="idle-minutes-not-accepted")


def _first(fee: JobFee, price: NodePrice) -> DatedPrice:
    return min((fee, price.renew), key=lambda row: row.date + datetime.timedelta(row.good_for_days))
