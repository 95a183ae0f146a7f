"""The outputs of a deployed stack: one versioned record and a few keys that people type."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import pulumi
from pydantic import BaseModel, ConfigDict

KEY = "trainstack"
# What went before: one validation, or null.
_ONE_RUN = "trainstack.outputs/1"
# Exported besides the record, because people type them.
PLAIN_KEYS = ("kubeconfig", "mlflow_url", "checkpoint_uri")


class TeamOutputs(BaseModel):
    """A team's place in the cluster."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    namespace: str
    queue: str
    claims: tuple[str, ...] = ()
    """What its pods can mount."""
    checkpoint_uri: str | None = None
    """Where its runs write."""
    dataset_uri: str | None = None
    """Where its own datasets are."""


class ValidationRun(BaseModel):
    """The run that validated a pool of the deployment."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    pool: str | None = None
    """The pool; null only of stacks that were deployed when there was one run for all pools."""
    job: str
    namespace: str
    result_uri: str
    """Where the result JSON is: `s3://...` or `gs://...`, or a path in the volume without an object store."""
    baseline_uri: str | None = None
    """Where an accepted run leaves its figures; a smoke plan carries that document as its `baseline`."""
    schedule: str | None = None
    """The CronJob that repeats the validation, if there is one."""
    alert_topic: str | None = None
    """Topic for messages about a scheduled validation that failed or found the stack slower: of SNS, by its
    ARN, or of Pub/Sub (`projects/<project>/topics/<topic>`)."""


class ServiceAddress(BaseModel):
    """The address of a service for browsers."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    url: str
    target: str
    """The name to which the host in `url` has to point; whoever keeps its zone makes the record."""

    def __str__(self) -> str:
        return f"{self.url}, once that host is a CNAME of {self.target}"


class StackOutputs(BaseModel):
    """Everything that validation, audits and reports need to know about a deployed stack."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    schema_version: Literal["trainstack.outputs/2"] = "trainstack.outputs/2"
    stack: str
    cloud: str
    region: str
    profile: str
    owner: str
    cost_center: str
    cluster_name: str
    kubeconfig: str
    mlflow_url: str
    mlflow_admin_secret: str
    mlflow_way_in: ServiceAddress | None = None
    """Where browsers reach the tracking server; null: by a port-forward."""
    checkpoint_uri: str
    dataset_uri: str
    artifact_uri: str
    pools: tuple[str, ...]
    teams: tuple[TeamOutputs, ...]
    budget: str
    """The name of the stack's budget; it mails its alarms."""
    smoke: tuple[ValidationRun, ...]
    """Of each pool that is validated."""


def export(
    fields: Mapping[str, Any], record: type[BaseModel] = StackOutputs, plain: Sequence[str] = PLAIN_KEYS
) -> None:
    """Export a record made of `fields` (plain values or outputs) and the plain keys."""
    made = pulumi.Output.from_input(dict(fields)).apply(
        lambda values: record.model_validate(values).model_dump(mode="json")
    )
    pulumi.export(KEY, made)
    for key in plain:
        pulumi.export(key, fields[key])


def parse(outputs: Mapping[str, Any]) -> StackOutputs:
    """Read the record back from stack outputs. Raises KeyError when the stack never finished."""
    record = dict(outputs[KEY])
    if record["schema_version"] == _ONE_RUN:
        del record["schema_version"]
        record["smoke"] = [record["smoke"]] if record["smoke"] else []
    return StackOutputs.model_validate(record)
