"""The part of a run's plan that depends on the service."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from infra.jobs.options import RunOrder
from infra.jobs.service import JobService
from infra.launchers.runplan import SageMakerOptions, VertexOptions


@dataclass(frozen=True, kw_only=True)
class ServicePart:
    """One service's way to run a folder: the machine's hardware, the command, the service's own part."""

    command: tuple[str, ...]
    machine: str
    """Machine type in the notation of the launcher."""
    gpus: int
    cpu: int
    memory_gib: int
    environment: Mapping[str, str] = field(default_factory=dict)
    """Further variables for the wrapper in the job."""
    value_length: int | None = None
    """The most characters of the value of a variable; None: no limit is documented."""
    sagemaker: SageMakerOptions | None = None
    vertex: VertexOptions | None = None


PartOf = Callable[[RunOrder, str, str, str | None], ServicePart]
"""From an order, the run's name, the URI of its code and that of its checkpoints, or None."""


@runtime_checkable
class Keeping(Protocol):
    """Additional method of a service that keeps machines after a job."""

    def kept_warm(self, order: RunOrder) -> str:
        """The time for which it keeps the machines of a run, as text.

        Raises UserError where it would silently keep none.
        """


class RunService(JobService, Protocol):
    """A service of jobs that knows its part of a run's plan."""

    def part(self, order: RunOrder, name: str, code_uri: str, checkpoint_uri: str | None) -> ServicePart:
        """The part of a run's plan that is this service's; see `run_plan`."""
