"""Decide while measuring whether more samples could change the verdict; queried by probes (pure).

The only place that decides so, by the rules that judge the evidence afterwards, so that a probe stops only
when its verdict is settled, and samples no more when nothing can change it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from smoke_training.evidence.fabric import Collective
from smoke_training.evidence.links import Cell, Rail
from smoke_training.evidence.training import Rows, Training
from smoke_training.expected.links import reference
from smoke_training.expected.reference import setting_of
from smoke_training.judges.network import collectives, rails, wires
from smoke_training.judges.training import step
from smoke_training.model import Verdict
from smoke_training.plan import Plan
from smoke_training.statistics import noise, slowness
from smoke_training.statistics.links import LinksSoFar


@dataclass(frozen=True)
class VerdictSampling:
    """The decisions for one plan; see `smoke_training.probes.context.Sampling`.

    `sweep` is the all-reduce that the run has measured so far.
    """

    plan: Plan
    sweep: Collective | None = None

    def training(self, sofar: Training) -> bool:
        """Report whether more iterations could change the verdict of the training checks."""
        return Verdict.INCONCLUSIVE in step.statuses(self.plan, sofar, self.sweep)

    def collective(self, sofar: Collective, nodes: Sequence[int], backend: str) -> int | None:
        """Return the size in bytes of which more samples could change the verdict; None if none could."""
        return collectives.open_size(self.plan, setting_of(nodes, backend), sofar)

    def links(self, cells: Sequence[Cell], nodes: Sequence[int], backend: str) -> LinksSoFar:
        """Assess the visits of all pairs so far; needs at least one."""
        found, lost = wires.assess(self.plan, nodes, cells, backend), wires.losses(cells)
        attribution = found.attribution
        failed = lost is not None and lost.verdict is Verdict.FAIL
        blamed = lost is not None and bool(lost.attribution.accused)
        losses_settled = lost is None or lost.verdict is Verdict.PASS or (failed and blamed)
        return LinksSoFar(
            enough=attribution.settled and losses_settled,
            suspicious=bool(attribution.unexplained) or (failed and not blamed),
            accused=tuple(wires.worst_cell(blame, found.scores) for blame in attribution.accused),
        )

    def slow_rails(self, found: Sequence[Rail], backend: str) -> list[str]:
        """Return the rails that look so slow that their pairs of nodes have to be measured."""
        return rails.slow(rails.wire_rates(found), reference(self.plan, backend).gbit_s)

    def storage(self, seconds: Rows, queue: Rows | None, declared_s: float | None) -> Verdict:
        """Judge [node][repetition]; PASS where there is nothing to compare with."""
        if any(value <= 0 for row in seconds for value in row):
            return Verdict.INCONCLUSIVE
        times, nodes = noise.without_queue(seconds, queue, parts=slowness.KEPT_PARTS), range(len(seconds))
        found = list(slowness.factors(nodes, times)) if len(seconds) > 1 else []
        if declared_s is not None:
            found += slowness.factors(nodes, times, declared_s)
        return slowness.combined(found) if found else Verdict.PASS
