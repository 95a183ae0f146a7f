"""Judge of a rank's own arithmetic: the same work must give the same bits every time (pure).

Timed steps change no weights and cycle through few batches, so every rank computes the gradients of each
batch repeatedly; accelerators do so in further steps, with deterministic algorithms. Gradients are compared
before any reduction, which would spread an error to all ranks.
"""

from smoke_training.evidence import Evidence
from smoke_training.evidence.training import Numerics, Repeats
from smoke_training.evidence.world import World
from smoke_training.judges.common import host_of
from smoke_training.model import Cause, Check, Culprit, Expected, Measured, Verdict
from smoke_training.plan import Plan

ODD = "passes whose own gradients are not those that the same work gives most often"


def repeatable(_plan: Plan, found: Evidence) -> Check:
    """Check that no rank's own gradients differ between repetitions of the same work."""
    records, cluster = found.all_of(Numerics), found.need(World)
    repeats = [item for record in records for item in record.repeats]
    if not repeats:
        found.need(Numerics)
        return Check.skipped("Not judged: no work with deterministic algorithms was repeated.")
    if all(2 * item.odd >= item.passes for item in repeats):
        return Check.skipped("Not judged: no rank is repeatable, so the software is not deterministic.")
    wrong = [item for item in repeats if item.odd]
    passes = sum(item.passes for item in repeats)
    return Check(
        status=Verdict.FAIL if wrong else Verdict.PASS,
        measured=Measured.count(sum(item.odd for item in wrong), "backward passes", passes, ODD),
        expected=Expected.exactly(0.0, "the same additions in the same order"),
        culprits=tuple(
            Culprit(
                "rank", str(item.rank), Cause.CORRUPTION, (_text(item),), node=host_of(item.rank, cluster)
            )
            for item in wrong
        ),
        message="; ".join(f"rank {item.rank}: {_text(item)}" for item in wrong)
        or f"the same work gave every rank the same gradients, bit by bit, in {passes} backward passes",
        next_action="Take the accused rank's node out and test its processors and memory." if wrong else None,
    )


def _text(item: Repeats) -> str:
    return (
        f"{item.odd} of {item.passes} backward passes gave other gradients than the same work at other "
        f"times, before any reduction, first at step {item.first}"
    )
