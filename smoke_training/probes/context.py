"""Context of a probe."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from smoke_training.evidence.fabric import Collective
from smoke_training.evidence.links import Cell, Rail
from smoke_training.evidence.training import Rows, Training
from smoke_training.model import Verdict
from smoke_training.phases import FULL
from smoke_training.plan import Plan
from smoke_training.probes.group import Group
from smoke_training.statistics.links import LinksSoFar


class Sampling(Protocol):
    """Decides whether more samples could still change the verdict, by the judges' rules.

    Probes measure and do not judge, so the rank passes them this (`judges/sampling.py`). Every
    rank has the same evidence and so gets the same decision: all stop together.
    """

    def training(self, sofar: Training) -> bool:
        """Report whether more iterations could change the verdict of the training checks."""

    def collective(self, sofar: Collective, nodes: Sequence[int], backend: str) -> int | None:
        """Return the size in bytes of which more samples could change the verdict; `nodes` by rank."""

    def links(self, cells: Sequence[Cell], nodes: Sequence[int], backend: str) -> LinksSoFar:
        """Assess the visits of all pairs so far."""

    def slow_rails(self, rails: Sequence[Rail], backend: str) -> list[str]:
        """Return the rails that look so slow that their pairs of nodes have to be measured."""

    def storage(self, seconds: Rows, queue: Rows | None, declared_s: float | None) -> Verdict:
        """Judge [node][repetition]; PASS where there is nothing to compare with."""


@dataclass(frozen=True, kw_only=True)
class ProbeContext:
    """The process group, the plan, when to stop sampling, and the node's scratch folder."""

    group: Group
    plan: Plan
    scratch: Path
    sampling: Sampling

    @property
    def full(self) -> bool:
        """True if there is time for the long version of a measurement."""
        return self.plan.depth == FULL
