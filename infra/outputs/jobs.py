"""Outputs of a deployed stack without a cluster: one versioned record, the input for jobs."""

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from infra.job_roles import JobClass
from infra.outputs import cluster as outputs

SCHEMA = "trainstack.job-outputs/1"
# Also exported as plain keys, for `pulumi stack output`.
PLAIN_KEYS = ("tracking_uri", "checkpoint_uri")


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class JobMachineOutputs(_Record):
    """A machine type for jobs."""

    name: str
    machine: str
    """The service's machine type, such as `ml.g6.xlarge`."""
    purchase: Literal["on_demand", "spot", "training_plan", "reserved", "flex_start"]
    """Default way to buy it."""
    reservation: str | None = None
    """ARN of its training plan, or full name of its reservation; null: bought by the hour."""
    max_nodes: int
    usd_per_hour: float | None
    """Of one machine, on demand; for a reserved one, what a job adds; null: unknown."""


class Person(_Record):
    """A person who runs jobs."""

    name: str
    email: str
    team: str
    folder: str
    """The team's folder: `teams/<folder>/` in the buckets of checkpoints and datasets."""
    role: str
    """Identity (role ARN or service account) of the person's notebooks, and of jobs without their own."""
    job_roles: Mapping[JobClass, str] = {}
    """Identities of the person's jobs by class, where the stack has them."""


class BudgetOutputs(_Record):
    """A monthly budget of the stack, of a team or of a person."""

    name: str
    scope: Literal["stack", "team", "person"]
    value: str
    """The stack, the team or the person."""
    monthly_usd: float
    over_budget: Literal["warn", "stop"]


class ValidationJob(_Record):
    """The job that validated the deployment."""

    job: str
    result_uri: str
    schedule: str | None = None
    """The schedule that repeats it, if any."""
    alert_topic: str | None = None
    """Topic for messages about a repetition that failed or found the stack slower."""


class JobOutputs(_Record):
    """Data about a deployed stack for jobs, audits and reports."""

    schema_version: Literal["trainstack.job-outputs/1"] = "trainstack.job-outputs/1"
    stack: str
    cloud: str
    region: str
    profile: str
    owner: str
    cost_center: str
    service: Literal["sagemaker", "vertex"]
    tracking_uri: str
    """Tracking URI of MLflow; on AWS the ARN of the MLflow App."""
    code_uri: str
    """Packed code lies below it, by digest."""
    checkpoint_uri: str
    dataset_uri: str
    artifact_uri: str
    image: str
    """Image of jobs, pinned by digest."""
    kms_key: str | None
    """Key of the buckets, and of disks of machines without local disks."""
    subnets: tuple[str, ...]
    security_groups: tuple[str, ...]
    machines: tuple[JobMachineOutputs, ...]
    max_hours: float
    people: tuple[Person, ...]
    budgets: tuple[BudgetOutputs, ...]
    smoke: ValidationJob | None
    """null: the stack has no gate."""


def is_of_jobs(exported: Mapping[str, Any]) -> bool:
    """Return whether stack outputs are those of a stack without a cluster."""
    return outputs.has_schema(exported, SCHEMA)


def export(fields: Mapping[str, Any]) -> None:
    """Export the record made of `fields` (plain values or outputs) and the plain keys."""
    outputs.export(fields, JobOutputs, PLAIN_KEYS)


def parse(exported: Mapping[str, Any]) -> JobOutputs:
    """Read the record back from stack outputs. Raises KeyError before the first complete deployment."""
    return JobOutputs.model_validate(exported[outputs.KEY])
