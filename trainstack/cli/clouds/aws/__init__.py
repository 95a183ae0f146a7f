"""Services of AWS that commands use."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from infra.clouds.aws.login import LOG_IN, LoggedOutError, clients
from infra.errors import Problem, UserError
from infra.jobs.aws.account_logs import to_retain
from infra.jobs.service_part import RunService
from infra.outputs.jobs import JobOutputs

if TYPE_CHECKING:
    from infra.outputs.cluster import StackOutputs
    from infra.stackspec import StackSpec
    from trainstack.capacity.classes import PoolCapacity
    from trainstack.capacity.reserved import ReservedCapacity
    from trainstack.cli.clouds.services import PinnedVersions, Setup
    from trainstack.preflight.deployment import Preflight
    from trainstack.preflight.shortfalls import Short


def job_service(outputs: JobOutputs) -> RunService:
    """SageMaker. Raises UserError without a login."""
    from infra.jobs.aws.runs import SageMakerRuns  # noqa: PLC0415 - slow to import

    try:
        return SageMakerRuns(clients(), outputs.stack, outputs.region)
    except LoggedOutError as error:
        raise UserError([Problem("login", None, str(error), LOG_IN, code="logged-out")]) from error


def read_secret(exported: "StackOutputs") -> dict[str, Any]:
    """The secret with the MLflow administrator's login. Raises LoggedOutError and errors of botocore."""
    import json  # noqa: PLC0415

    client = clients()("secretsmanager", exported.region)
    return dict(json.loads(client.get_secret_value(SecretId=exported.mlflow_admin_secret)["SecretString"]))


def preflight(spec: "StackSpec", together: Sequence["StackSpec"] = ()) -> "Preflight":
    """The checks of the account, and in a client's folder of its setup. Raises UserError without a login."""
    from infra.places import CLIENT  # noqa: PLC0415
    from trainstack.bootstrap.aws.checks import checks_of  # noqa: PLC0415 - slow to import
    from trainstack.bootstrap.setup import setup_of  # noqa: PLC0415
    from trainstack.preflight.aws.deployment import preflight_of  # noqa: PLC0415

    return preflight_of(spec, checks_of(setup_of(CLIENT)) if CLIENT else None, together)


def beyond(spec: "StackSpec", overrides: Mapping[str, float], *, largest: bool) -> list["Short"]:
    """The quotas that a deployment exceeds."""
    from trainstack.preflight.aws.deployment import beyond as exceeded  # noqa: PLC0415

    return exceeded(spec, overrides, largest=largest)


def presumed(spec: "StackSpec") -> list[dict[str, Any]]:
    """Capacity reservations and Capacity Blocks that pools name: the launch templates refer to them."""
    kind = "aws:ec2/capacityReservation:CapacityReservation"
    return [
        {
            "type": kind,
            "id": pool.purchase.id,
            "urn": f"urn:pulumi:{spec.name}::presumed::{kind}::{pool.purchase.id}",
            "region": spec.region,
            "outputs": {
                "availabilityZone": pool.zones[0],
                "instanceCount": pool.max_nodes,
                "instanceType": pool.machine,
            },
        }
        for pool in getattr(spec.layout, "pools", ())
        if pool.purchase.kind in ("reserved", "block")
    ]


def reservations(pools: "Sequence[PoolCapacity]") -> "Iterator[ReservedCapacity | Problem]":
    """Reservations, Capacity Blocks and training plans of pools. Raises UserError without a login."""
    from trainstack.capacity.aws.reading import described  # noqa: PLC0415 - slow to import

    try:
        yield from described(pools, clients())
    except LoggedOutError as error:
        raise UserError([Problem("login", None, str(error), LOG_IN, code="logged-out")]) from error


def to_keep(resources: Sequence[Mapping[str, Any]]) -> list[str]:
    """Log groups of the account, which stacks of an earlier version own, and their key."""
    return to_retain(resources)


def versions() -> "PinnedVersions":
    """Pinned and newest versions of EKS."""
    from trainstack.versions import aws as pinned  # noqa: PLC0415 - slow to import

    return pinned


def setup() -> "Setup":
    """CloudFormation or Terraform."""
    from trainstack.bootstrap import aws as made  # noqa: PLC0415 - slow to import

    return made
