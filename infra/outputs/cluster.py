"""Outputs of a deployed stack with a cluster: one versioned record and a few plain keys."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import pulumi
from pydantic import BaseModel, ConfigDict

KEY = "trainstack"
# The previous schema: one validation, or null.
_ONE_RUN = "trainstack.outputs/1"
# Also exported as plain keys, for `pulumi stack output`.
PLAIN_KEYS = ("kubeconfig", "mlflow_url", "checkpoint_uri")


class TeamOutputs(BaseModel):
    """A team's place in the cluster."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    namespace: str
    queue: str
    claims: tuple[str, ...] = ()
    """Claims that its pods can mount."""
    checkpoint_uri: str | None = None
    """Checkpoints of its runs."""
    dataset_uri: str | None = None
    """Its own datasets."""


class ValidationRun(BaseModel):
    """The run that validated a pool of the deployment."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    pool: str | None = None
    """The pool; null only for stacks deployed with one run for all pools."""
    job: str
    namespace: str
    result_uri: str
    """URI of the result JSON: `s3://...`, `gs://...`, or without an object store a path in the volume."""
    baseline_uri: str | None = None
    """URI of the figures of an accepted run; a smoke plan includes them as its `baseline`."""
    schedule: str | None = None
    """The CronJob that repeats the validation, if any."""
    alert_topic: str | None = None
    """Topic for messages about a scheduled validation that failed or found the stack slower: of SNS, by its
    ARN, or of Pub/Sub (`projects/<project>/topics/<topic>`)."""


class ServiceAddress(BaseModel):
    """The address of a service for browsers."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    url: str
    target: str
    """Target of the DNS record for the host in `url`; the administrator of its zone adds the record."""

    def __str__(self) -> str:
        return f"{self.url}, once that host is a CNAME of {self.target}"


class WorkerOutputs(BaseModel):
    """The place of a cluster of a large stack, for its manager."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    contract: Literal[1] = 1
    """Version of this record."""
    of: str
    """The stack of the manager."""
    cluster: str
    """Name of the cluster there."""
    spec: str
    """Digest of the spec of the cluster, by which the manager detects one that was deployed from another."""
    server: str
    """Address of its API server."""
    authority: str
    """Its authority's certificate: PEM as base64."""
    cluster_name: str
    """Its name in its cloud."""
    role: str
    """Identity in its cloud that logs in to it; empty: the manager's own."""
    provider: str = ""
    """What admits the manager from another cloud there; empty: both are on one cloud."""
    network: str
    """Its network: on AWS the id of the VPC."""
    route_tables: dict[str, str]
    """Route tables of its private subnets by zone; on AWS."""


class StackOutputs(BaseModel):
    """Data about a deployed stack for validation, audits and reports."""

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
    """Address of the tracking server for browsers; null: use a port-forward."""
    checkpoint_uri: str
    dataset_uri: str
    artifact_uri: str
    pools: tuple[str, ...]
    teams: tuple[TeamOutputs, ...]
    budget: str
    """The name of the stack's budget, which mails its alarms."""
    smoke: tuple[ValidationRun, ...]
    """One run per validated pool."""
    worker: WorkerOutputs | None = None
    """Of a cluster of a large stack."""


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


def has_schema(exported: Mapping[str, Any], schema: str) -> bool:
    """Return whether stack outputs are a record of this schema."""
    return bool(dict(exported.get(KEY) or {}).get("schema_version") == schema)


def parse(outputs: Mapping[str, Any]) -> StackOutputs:
    """Read the record back from stack outputs. Raises KeyError before the first complete deployment."""
    record = dict(outputs[KEY])
    if record["schema_version"] == _ONE_RUN:
        del record["schema_version"]
        record["smoke"] = [record["smoke"]] if record["smoke"] else []
    return StackOutputs.model_validate(record)
