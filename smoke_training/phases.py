"""Phases of a run: order, depths, time budgets (pure).

Seconds are budgets for four gloo ranks on two cores; measurements are in benchmarks/RESULTS.md.
"""

from collections.abc import Mapping
from dataclasses import dataclass

QUICK, FULL, BURN = "quick", "full", "burn"


@dataclass(frozen=True)
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


# Budgets of quick and of full runs; that of a burn is the plan's.
PHASES: tuple[ValidationPhase, ...] = (
    ValidationPhase("world", "all ranks join, alike", 8, 8),
    ValidationPhase("fitness", "a fixed spin on every rank: noise of the machines", 2, 3),
    ValidationPhase("gpus", "a matrix product on every GPU: rate, bits, errors", 6, 18),
    ValidationPhase(BURN, "sustained work, copies and small files", None, None),
    ValidationPhase("collectives", "sweeps of collectives, exact sums", 6, 20),
    ValidationPhase("pairs", "every pair of nodes, both directions", 5, 15, needs_peers=True),
    ValidationPhase("rails", "every network interface by itself", 2, 6, needs_peers=True),
    ValidationPhase("training", "steps with and without communication", 10, 30, needs_peers=True),
    ValidationPhase("sharded", "the step with sharded parameters", None, 15, needs_peers=True),
    ValidationPhase("parity", "losses of many ranks and of one", 2, 2),
    ValidationPhase("storage", "durable writes, cold reads", 3, 10),
    ValidationPhase("loader", "a loader feeding an emulated accelerator", None, 10),
    ValidationPhase("checkpoint", "an asynchronous checkpoint, restored", 3, 8),
    ValidationPhase("resume", "a rank is killed; training resumes", 15, 20),
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
