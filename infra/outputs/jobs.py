"""The outputs of a deployed stack without a cluster: one versioned record that jobs are made from."""

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from infra.jobs.roles import JobClass
from infra.outputs import cluster as outputs

SCHEMA = "trainstack.job-outputs/1"
# Exported besides the record, because people type them.
PLAIN_KEYS = ("tracking_uri", "checkpoint_uri")


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class JobMachine(_Record):
    """A machine type that jobs may have."""

    name: str
    machine: str
    """The service's machine type, such as `ml.g6.xlarge`."""
    purchase: Literal["on_demand", "spot", "training_plan", "reserved"]
    """How it is bought where a job does not say."""
    reservation: str | None = None
    """ARN of the training plan, or full name of the reservation, that it is part of; null: it is bought by
    the hour."""
    max_nodes: int
    usd_per_hour: float | None
    """Of one machine, on demand; of one that is reserved, what a job adds; null: no source says."""


class Person(_Record):
    """Somebody who trains."""

    name: str
    email: str
    team: str
    folder: str
    """The team's folder: `teams/<folder>/` in the buckets of checkpoints and datasets."""
    role: str
    """What the cloud calls the identity of the person's notebooks, and of jobs of a class without its own."""
    job_roles: Mapping[JobClass, str] = {}
    """The identities that her jobs run as, where the cloud has one for each class."""


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
    """What repeats it, if anything does."""
    alert_topic: str | None = None
    """Topic for messages about a repetition that failed or found the stack slower."""


class JobOutputs(_Record):
    """Everything that a job, an audit or a report needs to know about a deployed stack."""

    schema_version: Literal["trainstack.job-outputs/1"] = "trainstack.job-outputs/1"
    stack: str
    cloud: str
    region: str
    profile: str
    owner: str
    cost_center: str
    service: Literal["sagemaker", "vertex"]
    tracking_uri: str
    """Of MLflow: on AWS the ARN of the MLflow App."""
    code_uri: str
    """Packs of code lie below it, by digest."""
    checkpoint_uri: str
    dataset_uri: str
    artifact_uri: str
    image: str
    """Of jobs, pinned by digest."""
    kms_key: str | None
    """Of the buckets, and of disks of machines that have none of their own."""
    subnets: tuple[str, ...]
    security_groups: tuple[str, ...]
    machines: tuple[JobMachine, ...]
    max_hours: float
    people: tuple[Person, ...]
    budgets: tuple[BudgetOutputs, ...]
    smoke: ValidationJob | None
    """null: the stack has no gate, or its profile none yet."""


def is_of_jobs(exported: Mapping[str, Any]) -> bool:
    """Whether stack outputs are those of a stack without a cluster."""
    return bool(dict(exported.get(outputs.KEY) or {}).get("schema_version") == SCHEMA)


def export(fields: Mapping[str, Any]) -> None:
    """Export the record made of `fields` (plain values or outputs) and the plain keys."""
    outputs.export(fields, JobOutputs, PLAIN_KEYS)


def parse(exported: Mapping[str, Any]) -> JobOutputs:
    """Read the record back from stack outputs. Raises KeyError when the stack never finished."""
    return JobOutputs.model_validate(exported[outputs.KEY])
