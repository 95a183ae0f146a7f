"""Services of Google Cloud that commands use."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from infra.errors import Problem, UserError
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
    """Vertex AI."""
    from infra.job_roles import account_of  # noqa: PLC0415
    from infra.jobs.gcp.prices import price_share  # noqa: PLC0415 - slow to import
    from infra.jobs.gcp.runs import VertexRuns  # noqa: PLC0415

    return VertexRuns(account_of(outputs.people[0].role), outputs.region, outputs.stack, price_share)


def read_secret(exported: "StackOutputs") -> dict[str, Any]:
    """The secret with the MLflow administrator's login."""
    from infra.clouds.gcp.storage import read_secret  # noqa: PLC0415 - slow to import

    return dict(read_secret(exported.mlflow_admin_secret))


def preflight(spec: "StackSpec", together: Sequence["StackSpec"] = ()) -> "Preflight":
    """The checks of the project, and in a client's folder of its setup. Raises UserError without a login."""
    from infra.places import CLIENT  # noqa: PLC0415
    from trainstack.bootstrap.gcp.checks import checks_of  # noqa: PLC0415 - slow to import
    from trainstack.bootstrap.setup import setup_of  # noqa: PLC0415
    from trainstack.preflight.gcp.deployment import preflight_of  # noqa: PLC0415

    return preflight_of(spec, checks_of(setup_of(CLIENT)) if CLIENT else None, together)


def beyond(spec: "StackSpec", overrides: Mapping[str, float], *, largest: bool) -> list["Short"]:
    """The quotas that a deployment exceeds."""
    from trainstack.preflight.gcp.deployment import beyond as exceeded  # noqa: PLC0415

    return exceeded(spec, overrides, largest=largest)


def presumed(spec: "StackSpec") -> list[dict[str, Any]]:  # noqa: ARG001 - as on AWS
    """Nothing: a rehearsed pool may name any reservation that no program has made."""
    return []


def reservations(pools: "Sequence[PoolCapacity]") -> "Iterator[ReservedCapacity | Problem]":
    """Reservations of pools. Raises UserError without a login."""
    from infra.clouds.gcp import login  # noqa: PLC0415 - slow to import
    from trainstack.capacity.gcp.reading import described  # noqa: PLC0415

    try:
        yield from described(pools, login.session(4)[0])
    except login.LoggedOutError as error:
        raise UserError([Problem("login", None, str(error), login.LOG_IN, code="logged-out")]) from error


def to_keep(resources: Sequence[Mapping[str, Any]]) -> list[str]:  # noqa: ARG001 - as on AWS
    """Nothing of a project is a stack's."""
    return []


def versions() -> "PinnedVersions":
    """Pinned and newest versions of GKE."""
    from trainstack.versions import gcp as pinned  # noqa: PLC0415 - slow to import

    return pinned


def setup() -> "Setup":
    """A script of gcloud, or Terraform."""
    from trainstack.bootstrap import gcp as made  # noqa: PLC0415 - slow to import

    return made
