"""Phases of a run: order, depths, time budgets (pure).

Seconds are budgets for four gloo ranks on two cores; measurements are in benchmarks/RESULTS.md.
"""

from collections.abc import Mapping
from dataclasses import dataclass

QUICK, FULL, BURN = "quick", "full", "burn"


@dataclass(frozen=True, kw_only=True)
class ValidationPhase:
    """One phase; `quick_s` is None for a phase of full runs only, both are for one of burns."""

    name: str
    what: str
    quick_s: float | None
    full_s: float | None
    needs_peers: bool = False

    def seconds(self, depth: str) -> float:
        """Budget in seconds at a depth; 0 where the phase is not run."""
        return (self.quick_s if depth == QUICK else self.full_s) or 0.0


PHASES: tuple[ValidationPhase, ...] = (
    ValidationPhase(name="world", what="all ranks join, alike", quick_s=8, full_s=8),
    ValidationPhase(
        name="fitness", what="a fixed spin on every rank: noise of the machines", quick_s=2, full_s=3
    ),
    ValidationPhase(
        name="gpus", what="a matrix product on every GPU: rate, bits, errors", quick_s=6, full_s=18
    ),
    # Its budget is the plan's.
    ValidationPhase(name=BURN, what="sustained work, copies and small files", quick_s=None, full_s=None),
    ValidationPhase(name="collectives", what="sweeps of collectives, exact sums", quick_s=6, full_s=20),
    ValidationPhase(
        name="pairs", what="every pair of nodes, both directions", quick_s=5, full_s=15, needs_peers=True
    ),
    ValidationPhase(
        name="rails", what="every network interface by itself", quick_s=2, full_s=6, needs_peers=True
    ),
    ValidationPhase(
        name="training", what="steps with and without communication", quick_s=10, full_s=30, needs_peers=True
    ),
    ValidationPhase(
        name="sharded", what="the step with sharded parameters", quick_s=None, full_s=15, needs_peers=True
    ),
    ValidationPhase(name="parity", what="losses of many ranks and of one", quick_s=2, full_s=2),
    ValidationPhase(name="storage", what="durable writes, cold reads", quick_s=3, full_s=10),
    ValidationPhase(name="loader", what="a loader feeding an emulated accelerator", quick_s=None, full_s=10),
    ValidationPhase(name="checkpoint", what="an asynchronous checkpoint, restored", quick_s=3, full_s=8),
    ValidationPhase(name="resume", what="a rank is killed; training resumes", quick_s=15, full_s=20),
)
PHASE: Mapping[str, ValidationPhase] = {phase.name: phase for phase in PHASES}
NAMES = tuple(phase.name for phase in PHASES)


def chosen(depth: str, only: tuple[str, ...] | None) -> tuple[str, ...]:
    """Return the names of the phases to run, in order; `world` always runs: others need its group."""
    if only is not None:
        return tuple(name for name in NAMES if name in only or name == "world")
    if depth == BURN:
        return ("world", "fitness", BURN)
    return tuple(phase.name for phase in PHASES if phase.seconds(depth))
