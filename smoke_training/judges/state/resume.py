"""Judges of the recovery after a kill (pure)."""

import signal
from typing import Any

from smoke_training.evidence import Evidence
from smoke_training.evidence.state import RankResume, Resume
from smoke_training.evidence.world import World
from smoke_training.judges.common import host_of
from smoke_training.model import Cause, Check, Culprit, Expected, Measured, Verdict
from smoke_training.plan import Plan

NOT_THE_SAME_RUN = "Do not train on this stack: a resumed run is not the run that was interrupted."
TOO_FAR_APART = "Check that checkpoints reach storage before the next one begins."
TOO_LONG = (
    "See in torchrun.log what the restarted ranks waited for: imports, the rendezvous, or the checkpoint."
)
TEST_THE_NODE = (
    "Take the accused rank's node out and test its processors and memory; the checkpoint is intact."
)
# Seconds from the kill to the next step. torchrun, imports and NCCL take 3 to 9 s on CPUs and up to 18 s on a
# GPU (benchmarks/RESULTS.md); an image on a busy file system takes longer, but no two minutes.
RECOVERED_S, LOST_S = 60.0, 120.0


def resume_equality(_plan: Plan, found: Evidence) -> Check:
    """Every entry of every rank equal to the uninterrupted run, and bit-equal losses afterwards."""
    outcome = found.need(Resume)
    entries = sum(rank.entries for rank in outcome.ranks)
    different = [f"rank {rank.rank} {name}" for rank in outcome.ranks for name in rank.different]
    count = sum(max(rank.differing, len(rank.different)) for rank in outcome.ranks)
    compared = sum(rank.losses_compared for rank in outcome.ranks)
    unequal = compared - sum(rank.losses_equal for rank in outcome.ranks)
    empty = [rank.rank for rank in outcome.ranks if rank.entries == 0 or rank.losses_compared < 5]
    good = not different and unequal == 0 and not empty
    miscounted = _miscounted(outcome)
    culprits = tuple(
        Culprit("rank", str(rank.rank), Cause.STATE_LOST, tuple(rank.different[:5]))
        for rank in outcome.ranks
        if rank.different or rank.losses_equal < rank.losses_compared
    )
    action, reported = NOT_THE_SAME_RUN, ""
    if miscounted:
        culprits, action = tuple(_miscounting(rank, found) for rank in miscounted), TEST_THE_NODE
        reported = f"; {culprits[0].kind} {culprits[0].id}: {culprits[0].evidence[0]}"
    detail: dict[str, Any] = {"losses_compared": compared, "losses_different": unequal}
    detail["first"] = different[:10]
    return Check(
        status=Verdict.PASS if good else Verdict.ERROR if empty else Verdict.FAIL,
        measured=Measured.count(count, "different entries", entries, **detail),
        expected=Expected.exactly(0.0, "an uninterrupted run of the same ranks, at the same steps"),
        culprits=culprits,
        message=f"{count} of {entries} state entries, {unequal} of {compared} losses differ{reported}"
        + (f"; rank {empty[0]} compared nothing" if empty else ""),
        next_action=None if good else action,
    )


def _miscounted(outcome: Resume) -> list[RankResume]:
    """The ranks whose own gradients were the first thing to differ, before any reduction.

    None if the state had differed before, for then the checkpoint is at fault; nor if all ranks differ at
    once, for then the software is not deterministic.
    """
    first = min((r.gradient_step for r in outcome.ranks if r.gradient_step is not None), default=None)
    if first is None or any(r.state_step is not None and r.state_step <= first for r in outcome.ranks):
        return []
    found = [rank for rank in outcome.ranks if rank.gradient_step == first]
    return found if len(found) < len(outcome.ranks) else []


def _miscounting(rank: RankResume, found: Evidence) -> Culprit:
    text = (
        f"at step {rank.gradient_step} its own gradients, before any reduction, differ from those of the "
        "uninterrupted run, although the state before was the same"
    )
    cluster = found.of(World)
    node = None if cluster is None else host_of(rank.rank, cluster)
    return Culprit("rank", str(rank.rank), Cause.CORRUPTION, (text,), node=node)


def recovery(_plan: Plan, found: Evidence) -> Check:
    """Check that the kill was real and cost no more than one checkpoint interval."""
    outcome = found.need(Resume)
    # A damaged checkpoint has a check of its own; this one judges whether checkpoints were frequent enough.
    newest = outcome.resumed_from if outcome.committed is None else outcome.committed
    lost = outcome.killed_at_step - newest
    real = outcome.signal == signal.SIGKILL and outcome.mttr_seconds > 0
    # The victim dies somewhere inside the step after the last one it reported, which may be one checkpoint
    # further.
    kept, seconds = -1 <= lost <= outcome.every, outcome.mttr_seconds
    status = Verdict.PASS if seconds <= RECOVERED_S else Verdict.INCONCLUSIVE
    if not kept or seconds > LOST_S:
        status = Verdict.FAIL
    status = status if real else Verdict.ERROR
    return Check(
        status=status,
        measured=Measured(
            value=outcome.mttr_seconds,
            unit="s",
            n=1,
            estimator="kill to first new optimizer step",
            detail={
                "lost_steps": lost,
                "repeated_steps": outcome.killed_at_step - outcome.resumed_from,
                "killed_at_step": outcome.killed_at_step,
                "resumed_from": outcome.resumed_from,
                "victim": outcome.victim,
                "imports": outcome.imports,
            },
        ),
        expected=Expected(
            value=RECOVERED_S, kind="derived", source="measured recoveries on CPUs and a GPU", floor=LOST_S
        ),
        zone=(RECOVERED_S, LOST_S),
        message=f"rank {outcome.victim} was killed at step {outcome.killed_at_step}; training resumed from "
        f"{outcome.resumed_from} after {seconds:.1f} s (at most {LOST_S:.0f}), {max(lost, 0)} steps lost "
        f"(at most {outcome.every})",
        next_action=None if status is Verdict.PASS else TOO_LONG if kept else TOO_FAR_APART,
    )
