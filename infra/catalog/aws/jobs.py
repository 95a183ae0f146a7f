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
from infra.catalog.tables import read_table
from infra.errors import Problem

PREFIX: Final = "ml."
MAX_HOURS: Final = 28 * 24
"""Longest run of a training job. Source: botocore 1.44.5 sagemaker/2017-07-24 StoppingCondition
(MaxRuntimeInSeconds: "The maximum value is 28 days"), read 2026-11-26."""
DISK_GB: Final = 200
"""Disk of a machine of a job: an image has 20, and the rest holds data, checkpoints and the model."""
Use = Literal["training", "notebook"]


class JobFamily(Fact):
    """The sizes of a family for training jobs, notebooks and training plans."""

    name: Name
    sizes: tuple[Name, ...] = Field(min_length=1)
    notebooks: tuple[Name, ...] = ()
    plans: tuple[Name, ...] = ()
    """Sizes that a training plan can reserve."""


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
        """The EC2 type with the same hardware."""
        return self.name.removeprefix(PREFIX)

    @property
    def gpus(self) -> int:
        """Accelerators of one machine; 0 without any."""
        found = facts.instance_types.get(self.ec2)
        return found.accelerator_count if found else 0

    @property
    def has_nvme(self) -> bool:
        """True with local disks: the service then attaches no volume, and accepts no key for one."""
        found = facts.instance_types.get(self.ec2)
        return found is not None and found.local_nvme_gb is not None

    @property
    def disk_gb(self) -> int:
        """Disk to request for a job: at most the local disks, as the service refuses more than they have.

        Source: ResourceConfig of the API, in botocore before 1.44 ("You can't request a VolumeSizeInGB
        greater than the total size of the local instance storage"); aws/sagemaker-python-sdk issue 4939,
        where the ValidationException has no message.
        """
        found = facts.instance_types.get(self.ec2)
        return min(DISK_GB, (found.local_nvme_gb if found else None) or DISK_GB)


class JobCatalog:
    """The table of machine types, read on first use."""

    def __init__(self, path: Path) -> None:
        self._path = path

    @cached_property
    def families(self) -> Mapping[str, JobFamily]:
        """Families of machines by name such as "g6"."""
        return read_table(self._path, "job_family", JobFamily, "name")

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
        columns = ("machine", "use", "region")
        return read_table(self._path, "job_price", JobPrice, *columns, expand=per_region)

    def price(self, machine: str, region: str, use: Use = "training") -> JobPrice | None:
        """Price of an hour on demand, or None without a source: unknown, never free."""
        return self.prices.get((machine, use, region))


jobs: Final = JobCatalog(Path(__file__).parent / "tables" / "job_machines.toml")


def quota_name(machine: str, purchase: str) -> str:
    """The quota of job machines: one for each type and way to buy, 0 for many.

    Source: Service Quotas, names of the service `sagemaker` in public listings (ml.g6.xlarge for
    training job usage is L-56AE9D73), read 2026-11-22.
    """
    kind = "spot training job usage" if purchase == "spot" else "training job usage"
    return f"{machine} for {kind}"


def warm_quota_name(machine: str) -> str:
    """The quota of machines kept after a job; 0 by default, and then none is kept, without an error.

    Source: SageMaker developer guide, train-warm-pools-resource-limits.
    """
    return f"{machine} for training warm pool usage"


def app_quota_name(machine: str, app: str) -> str:
    """The quota of apps such as JupyterLab on a type. Source: aws/amazon-sagemaker-feedback issue 157."""
    return f"Studio {app} Apps running on {machine} instances"


def machine_problems(path: str, machine: str, *, notebook: bool = False) -> Iterator[Problem]:
    """The type exists, for this use."""
    known = jobs.machines.get(machine)
    if known is None or (notebook and not known.notebook):
        usable = [name for name, one in jobs.machines.items() if one.notebook or not notebook]
        near = difflib.get_close_matches(machine, usable, n=3) or [
            "ml.t3.medium" if notebook else "ml.g6.xlarge"
        ]
        what = "notebooks" if notebook else "training jobs"
        rule, fix = f"is not a known machine type of {what}", f"Near it are {', '.join(near)}."
        yield Problem(path, machine, rule, fix, code="unknown-job-machine")


@dataclass(frozen=True)
class RequestedPlan:
    """A training plan in a spec, with region and account of the stack."""

    arn: str
    region: str
    account: str


def plan_problems(path: str, machine: str, plan: RequestedPlan) -> Iterator[Problem]:
    """The plan is in the region and account of the stack, and can reserve the machine.

    Source: botocore 1.44.5 sagemaker/2017-07-24 TrainingPlanArn and ReservedCapacityInstanceType.
    """
    found = re.fullmatch(
        r"arn:aws[a-z-]*:sagemaker:([a-z0-9-]*):([0-9]{12}):training-plan/[a-zA-Z0-9](-*[a-zA-Z0-9]){0,63}",
        plan.arn,
    )
    at = f"{path}.purchase.arn"
    if found is None:
        fix = "Write an ARN that `aws sagemaker list-training-plans` prints (arn:...:training-plan/NAME)."
        rule = "is not the ARN of a training plan"
        yield Problem(at, plan.arn, rule, fix, code="invalid-training-plan-arn")
    elif (found[1], found[2]) != (plan.region, plan.account):
        rule = f"is a plan of account {found[2]} in {found[1]}, and the stack is elsewhere"
        fix = f"Name a plan of {plan.account} in {plan.region}."
        yield Problem(at, plan.arn, rule, fix, code="training-plan-elsewhere")
    known = jobs.machines.get(machine)
    if known is not None and not known.planned:
        names = ", ".join(sorted(name for name, one in jobs.machines.items() if one.planned))
        rule, fix = "is not available in training plans", f"Available: {names}."
        yield Problem(f"{path}.machine", machine, rule, fix, code="machine-not-in-training-plans")


def hours_problems(path: str, hours: float) -> Iterator[Problem]:
    """A job ends within 28 days."""
    if hours > MAX_HOURS:
        rule, fix = f"no job may run for more than {MAX_HOURS} hours (28 days)", f"Set {MAX_HOURS}."
        yield Problem(path, hours, rule, fix, code="job-too-long")
