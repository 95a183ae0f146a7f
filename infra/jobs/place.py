"""What of a run's plan depends on the service that runs it."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from smoke_training.launchers.runplan import SageMaker, Vertex


@dataclass(frozen=True, kw_only=True)
class Place:
    """How one service runs a folder: the machine's hardware, the command, the service's own part."""

    command: tuple[str, ...]
    machine: str
    """As the launcher has it."""
    gpus: int
    cpu: int
    memory_gib: int
    environment: Mapping[str, str] = field(default_factory=dict)
    """What the wrapper is told besides."""
    sagemaker: SageMaker | None = None
    vertex: Vertex | None = None
