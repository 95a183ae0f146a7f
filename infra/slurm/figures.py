"""Figures of a Slurm system in CloudWatch, and the form of alarms on them (pure)."""

from dataclasses import dataclass
from typing import Final, Literal

FIGURES: Final = (
    ("Nodes and controller", ("ControllerUp", "NodesDown")),
    ("GPUs of nodes that run", ("GpusRunning", "GpusUsed", "GpusIdle")),
    ("Jobs", ("JobsRunning", "JobsWaiting")),
    ("Longest wait for nodes, minutes", ("LongestWaitMinutes",)),
    ("Largest share of a budget, per cent", ("BudgetUsedPercent",)),
)
"""Charts of the dashboard: title and metrics."""


@dataclass(frozen=True)
class SlurmAlarm:
    """An alarm that fires when all values of some minutes are past a threshold."""

    name: str
    metric: str
    past: Literal["above", "below"]
    threshold: float
    minutes: int
    """A multiple of five."""
    text: str
    """What is wrong."""
    without_data: Literal["breaching", "notBreaching", "missing"] = "missing"


def namespace(stack: str) -> str:
    """Namespace of the metrics of a stack in CloudWatch."""
    return f"trainstack/slurm/{stack}"
