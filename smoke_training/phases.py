"""The phases of a run: their order, which run at which depth, and how long they may take (pure).

Seconds are budgets for four gloo ranks on two cores; benchmarks/RESULTS.md has what was measured.
"""

from collections.abc import Mapping
from dataclasses import dataclass

QUICK, FULL = "quick", "full"


@dataclass(frozen=True, kw_only=True)
class Phase:
    """One phase; `quick_s` is None for a phase that only a full run has."""

    name: str
    what: str
    quick_s: float | None
    full_s: float
    needs_peers: bool = False

    def seconds(self, depth: str) -> float:
        """Budget in seconds at a depth; 0 where the phase is not run."""
        return self.full_s if depth == FULL else self.quick_s or 0.0


PHASES: tuple[Phase, ...] = (
    Phase(name="world", what="all ranks join, alike", quick_s=8, full_s=8),
    Phase(name="fitness", what="a fixed spin on every rank: how quiet the machines are", quick_s=2, full_s=3),
    Phase(name="gpus", what="a matrix product on every GPU: rate, bits, errors", quick_s=6, full_s=18),
    Phase(name="collectives", what="sweeps of collectives, exact sums", quick_s=6, full_s=20),
    Phase(name="pairs", what="every pair of nodes, both directions", quick_s=5, full_s=15, needs_peers=True),
    Phase(name="rails", what="every network interface by itself", quick_s=2, full_s=6, needs_peers=True),
    Phase(
        name="training", what="steps with and without communication", quick_s=10, full_s=30, needs_peers=True
    ),
    Phase(name="sharded", what="the step with sharded parameters", quick_s=None, full_s=15, needs_peers=True),
    Phase(name="parity", what="losses of many ranks and of one", quick_s=2, full_s=2),
    Phase(name="storage", what="durable writes, cold reads", quick_s=3, full_s=10),
    Phase(name="loader", what="a loader feeding an emulated accelerator", quick_s=None, full_s=10),
    Phase(name="checkpoint", what="an asynchronous checkpoint, restored", quick_s=3, full_s=8),
    Phase(name="resume", what="a rank is killed; training goes on", quick_s=15, full_s=20),
)
PHASE: Mapping[str, Phase] = {phase.name: phase for phase in PHASES}
NAMES = tuple(phase.name for phase in PHASES)


def chosen(depth: str, only: tuple[str, ...] | None) -> tuple[str, ...]:
    """Names of the phases to run, in order; `world` always runs, because all others need its group."""
    if only is not None:
        return tuple(name for name in NAMES if name in only or name == "world")
    return tuple(phase.name for phase in PHASES if depth == FULL or phase.quick_s is not None)
