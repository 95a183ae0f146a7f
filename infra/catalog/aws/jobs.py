"""Machine types of managed training jobs and notebooks (SageMaker): hardware, price, names of quotas."""

import difflib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final, Literal

from pydantic import Field

from infra.catalog.aws import facts
from infra.catalog.fact import DatedPrice, Fact, Name, Usd
from infra.catalog.rows import per_region
from infra.catalog.tables import by_key, read_rows
from infra.errors import Problem

PREFIX: Final = "ml."
MAX_HOURS: Final = 28 * 24
"""Longest run of a training job. Source: botocore 1.44.5 sagemaker/2017-07-24 StoppingCondition
(MaxRuntimeInSeconds: "The maximum value is 28 days"), read 2026-11-26."""
Use = Literal["training", "notebook"]


class JobFamily(Fact):
    """The sizes of a family that training jobs may have, and those that notebooks may have."""

    name: Name
    sizes: tuple[Name, ...] = Field(min_length=1)
    notebooks: tuple[Name, ...] = ()
    plans: tuple[Name, ...] = ()
    """Those that a training plan can reserve."""


class JobPrice(DatedPrice):
    """Dollars per machine-hour of one use, bought on demand."""

    machine: Name
    use: Use
    region: Name
    usd: Usd


@dataclass(frozen=True)
class JobMachineType:
    """A machine type of the service."""

    name: str
    notebook: bool
    """Whether notebooks may run on it, too."""
    planned: bool = False
    """Whether a training plan can reserve it."""

    @property
    def ec2(self) -> str:
        """The type of EC2 whose hardware it has."""
        return self.name.removeprefix(PREFIX)

    @property
    def gpus(self) -> int:
        """Accelerators of one machine; 0 without any."""
        found = facts.instance_types.get(self.ec2)
        return found.accelerator_count if found else 0

    @property
    def has_nvme(self) -> bool:
        """Whether it has local disks: the service then attaches no volume, and takes no key for one."""
        found = facts.instance_types.get(self.ec2)
        return found is not None and found.local_nvme_gb is not None


class JobCatalog:
    """The table of machine types, read when it is first asked for."""

    def __init__(self, path: Path) -> None:
        self._path = path

    @cached_property
    def families(self) -> Mapping[str, JobFamily]:
        """Families of machines by name such as "g6"."""
        rows = read_rows(self._path, "job_family", JobFamily)
        return by_key(rows, lambda row: row.name, self._path.name)

    @cached_property
    def machines(self) -> Mapping[str, JobMachineType]:
        """Types that training jobs may have, by name such as "ml.g6.xlarge"."""
        return {
            f"{PREFIX}{row.name}.{size}": JobMachineType(
                f"{PREFIX}{row.name}.{size}", size in row.notebooks, size in row.plans
            )
            for row in self.families.values()
            for size in row.sizes
        }

    @cached_property
    def prices(self) -> Mapping[tuple[str, Use, str], JobPrice]:
        """Prices by machine, use and region."""
        rows = read_rows(self._path, "job_price", JobPrice, per_region)
        return by_key(rows, lambda row: (row.machine, row.use, row.region), self._path.name)

    def price(self, machine: str, region: str, use: Use = "training") -> JobPrice | None:
        """What an hour costs on demand, or None where no source says: unknown, never free."""
        return self.prices.get((machine, use, region))


jobs: Final = JobCatalog(Path(__file__).parent / "tables" / "job_machines.toml")


def quota_name(machine: str, purchase: str) -> str:
    """The quota that machines of jobs count against. It has one for each type and way to buy, 0 for many.

    Source: Service Quotas, names of the service `sagemaker`, as public listings have them (ml.g6.xlarge for
    training job usage is L-56AE9D73), read 2026-11-22.
    """
    kind = "spot training job usage" if purchase == "spot" else "training job usage"
    return f"{machine} for {kind}"


def machine_problems(path: str, machine: str, *, notebook: bool = False) -> Iterator[Problem]:
    """The type exists, for the use that is made of it."""
    known = jobs.machines.get(machine)
    if known is None or (notebook and not known.notebook):
        usable = [name for name, one in jobs.machines.items() if one.notebook or not notebook]
        near = difflib.get_close_matches(machine, usable, n=3) or [
            "ml.t3.medium" if notebook else "ml.g6.xlarge"
        ]
        what = "notebooks" if notebook else "training jobs"
        yield Problem(
            path,
            machine,
            f"is no machine type of {what} that is known",
            f"Such are {', '.join(near)}.",
            code="unknown-job-machine",
        )


@dataclass(frozen=True)
class RequestedPlan:
    """A plan that a stack names, and where the stack is."""

    arn: str
    region: str
    account: str


def plan_problems(path: str, machine: str, plan: RequestedPlan) -> Iterator[Problem]:
    """The plan is one of the stack's region and account, and can hold the machine.

    Source: botocore 1.44.5 sagemaker/2017-07-24 TrainingPlanArn and ReservedCapacityInstanceType.
    """
    found = re.fullmatch(
        r"arn:aws[a-z-]*:sagemaker:([a-z0-9-]*):([0-9]{12}):training-plan/[a-zA-Z0-9](-*[a-zA-Z0-9]){0,63}",
        plan.arn,
    )
    at = f"{path}.purchase.arn"
    if found is None:
        fix = "Write what `aws sagemaker list-training-plans` says: arn:aws:sagemaker:...:training-plan/NAME."
        yield Problem(at, plan.arn, "is no ARN of a training plan", fix, code="invalid-training-plan-arn")
    elif (found[1], found[2]) != (plan.region, plan.account):
        rule = f"is a plan of account {found[2]} in {found[1]}, where no job of this stack runs"
        yield Problem(
            at,
            plan.arn,
            rule,
            f"Name a plan of {plan.account} in {plan.region}.",
            code="training-plan-elsewhere",
        )
    known = jobs.machines.get(machine)
    if known is not None and not known.planned:
        names = ", ".join(sorted(name for name, one in jobs.machines.items() if one.planned))
        rule, fix = "is no machine that a training plan reserves", f"Such are {names}."
        yield Problem(f"{path}.machine", machine, rule, fix, code="machine-not-in-training-plans")


def hours_problems(path: str, hours: float) -> Iterator[Problem]:
    """A job ends within 28 days."""
    if hours > MAX_HOURS:
        yield Problem(
            path,
            hours,
            f"no job may run for more than {MAX_HOURS} hours (28 days)",
            f"Set {MAX_HOURS}.",
            code="job-too-long",
        )
