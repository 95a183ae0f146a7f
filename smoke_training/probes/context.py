"""What every probe is handed."""

from dataclasses import dataclass
from pathlib import Path

from smoke_training.phases import FULL
from smoke_training.plan import Plan
from smoke_training.probes.group import Gang

Line = dict[str, object]
"""One evidence line, ready for JSON; its `kind` is registered in `smoke_training.evidence`."""


@dataclass(frozen=True, kw_only=True)
class Context:
    """The gang, the plan, and this node's scratch folder (shared by the ranks of the node)."""

    gang: Gang
    plan: Plan
    scratch: Path

    @property
    def full(self) -> bool:
        """Whether there is time for the long version of a measurement."""
        return self.plan.depth == FULL
