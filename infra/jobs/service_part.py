"""The part of a run's plan that depends on the service."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from smoke_training.launchers.runplan import SageMaker, Vertex


@dataclass(frozen=True, kw_only=True)
class ServicePart:
    """How one service runs a folder: the machine's hardware, the command, the service's own part."""

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
    sagemaker: SageMaker | None = None
    vertex: Vertex | None = None
