"""What every probe is handed."""

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
    """Whether more samples could still matter, by the rules that decide the verdict.

    Probes measure and do not judge, so the rank hands them this (`judges/sampling.py`). Every
    rank holds the same evidence and so gets the same answer: all stop together.
    """

    def training(self, sofar: Training) -> bool:
        """Whether more iterations could change the verdict of the training checks."""

    def collective(self, sofar: Collective, nodes: Sequence[int], backend: str) -> int | None:
        """The size in bytes of which more samples could change the verdict; `nodes` by rank."""

    def links(self, cells: Sequence[Cell], nodes: Sequence[int], backend: str) -> LinksSoFar:
        """What the visits of all pairs say so far."""

    def slow_rails(self, rails: Sequence[Rail], backend: str) -> list[str]:
        """The rails that look so slow that their pairs of nodes must tell."""

    def storage(self, seconds: Rows, queue: Rows | None, declared_s: float | None) -> Verdict:
        """What [node][repetition] says; PASS where there is nothing to compare with."""


@dataclass(frozen=True, kw_only=True)
class Context:
    """The process group, the plan, when to stop sampling, and the node's scratch folder."""

    group: Group
    plan: Plan
    scratch: Path
    sampling: Sampling

    @property
    def full(self) -> bool:
        """Whether there is time for the long version of a measurement."""
        return self.plan.depth == FULL
