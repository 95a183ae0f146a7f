"""Interfaces of what commands use of a cloud."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:  # slow to import
    from infra.errors import Problem
    from infra.jobs.service_part import RunService
    from infra.outputs.cluster import StackOutputs
    from infra.outputs.jobs import JobOutputs
    from infra.stackspec import StackSpec
    from trainstack.bootstrap.stacks import BootstrapPlace
    from trainstack.bootstrap.trust import Trust
    from trainstack.capacity.classes import PoolCapacity
    from trainstack.capacity.reserved import ReservedCapacity
    from trainstack.preflight.deployment import Preflight
    from trainstack.preflight.shortfalls import Short
    from trainstack.versions.pins import Row


class PinnedVersions(Protocol):
    """Versions of stacks on one cloud."""

    def rows(self, spec: "StackSpec") -> list["Row"]:
        """Every pin with its newest version."""

    def update_problem(self, spec: "StackSpec", /) -> "Problem | None":
        """The problem of writing versions into the stack file; None where that is possible."""


class Setup(Protocol):
    """The setup of an account or project."""

    @property
    def FORMS(self) -> tuple[str, ...]:  # noqa: N802 - a constant of a module
        """Forms in which it is printed, the default first."""

    def printed(
        self, client: str, place: "BootstrapPlace", trust: "Trust", *, terraform: bool
    ) -> tuple[str, list[str]]:
        """The file, and notes for the reader. Raises UserError for a trust of another cloud."""


class CloudServices(Protocol):
    """Services of one cloud."""

    def job_service(self, outputs: "JobOutputs") -> "RunService":
        """The managed training service of a stack. Raises UserError without a login."""

    def read_secret(self, exported: "StackOutputs") -> dict[str, Any]:
        """The secret with the MLflow administrator's login."""

    def preflight(self, spec: "StackSpec", together: Sequence["StackSpec"] = ()) -> "Preflight":
        """The checks before a deployment; `together`: specs of all stacks of it, which share quotas."""

    def beyond(self, spec: "StackSpec", overrides: Mapping[str, float], *, largest: bool) -> list["Short"]:
        """The quotas that a deployment exceeds."""

    def presumed(self, spec: "StackSpec", /) -> list[dict[str, Any]]:
        """Capacity that a rehearsal takes as bought: rows of `rehearsal.client.Rehearsal.seed` with URNs."""

    def reservations(self, pools: "Sequence[PoolCapacity]", /) -> "Iterator[ReservedCapacity | Problem]":
        """Reservations of pools as the cloud describes them. Raises UserError without a login."""

    def to_keep(self, resources: Sequence[Mapping[str, Any]]) -> list[str]:
        """URNs in a state that belong to others as well: the end of the stack forgets them only."""

    def versions(self) -> PinnedVersions:
        """Pinned and newest versions."""

    def setup(self) -> Setup:
        """The setup that an administrator applies before the first deployment."""
