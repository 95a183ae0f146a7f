"""How busy a node was while the run lasted."""

from dataclasses import dataclass

from smoke_training.evidence.registry import Record, kind


@kind("system")
@dataclass(frozen=True, kw_only=True)
class System(Record):
    """Samples of one node: `values[sample][name]`, at `at_ms` (milliseconds since the epoch).

    `names` are MLflow's own (`cpu_utilization_percentage`, ...). What a sample could not read is None.
    """

    node: int
    names: tuple[str, ...]
    at_ms: tuple[int, ...]
    values: tuple[tuple[float | None, ...], ...]
    gpu_reason: str | None
