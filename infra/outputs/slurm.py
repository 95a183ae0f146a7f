"""Outputs of a deployed stack with Slurm: one versioned record."""

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from infra.outputs import cluster as outputs
from infra.outputs.jobs import ValidationJob

SCHEMA = "trainstack.slurm-outputs/1"
PLAIN_KEYS = ("cluster_id", "checkpoint_uri")


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class PartitionOutputs(_Record):
    """A pool as a partition."""

    name: str
    machine: str
    purchase: str
    max_nodes: int
    group_id: str
    """Id of the compute node group; on Google Cloud, of the nodeset."""
    usd_per_hour: float | None
    """Of one node; null: unknown."""


class SlurmOutputs(_Record):
    """Data about a deployed Slurm system."""

    schema_version: Literal["trainstack.slurm-outputs/1"] = "trainstack.slurm-outputs/1"
    stack: str
    cloud: str
    region: str
    profile: str
    owner: str
    cost_center: str
    cluster_id: str
    slurm_version: str | None = None
    """Of the controller; null: deployed before this field existed."""
    login_group_id: str
    """Id of the compute node group of the login node; on Google Cloud, the name of its instance;
    of a pod, `kubernetes/<namespace>/<Deployment>`."""
    checkpoint_uri: str
    dataset_uri: str
    artifact_uri: str
    tracking_uri: str | None = None
    """Of MLflow for clients with a login of the cloud: an ARN on AWS, an address on Google Cloud; null: none.
    Jobs have an address on their node."""
    dashboard: str | None = None
    """Name of the dashboard of CloudWatch; null: none."""
    partitions: tuple[PartitionOutputs, ...]
    accounts: tuple[str, ...]
    budget: str
    smoke: tuple[ValidationJob, ...]
    """Validations, one of each validated pool; empty: the stack has no gate."""


def is_of_slurm(exported: Mapping[str, Any]) -> bool:
    """Return whether stack outputs are those of a stack with Slurm."""
    return outputs.has_schema(exported, SCHEMA)


def export(fields: Mapping[str, Any]) -> None:
    """Export the record made of `fields` (plain values or outputs) and the plain keys."""
    outputs.export(fields, SlurmOutputs, PLAIN_KEYS)


def parse(exported: Mapping[str, Any]) -> SlurmOutputs:
    """Read the record back from stack outputs. Raises KeyError before the first complete deployment."""
    return SlurmOutputs.model_validate(exported[outputs.KEY])
