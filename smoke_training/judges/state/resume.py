"""Judges of the recovery after a kill (pure)."""

import signal

from smoke_training.evidence import Evidence
from smoke_training.evidence.state import Resume
from smoke_training.model import Cause, Check, Culprit, Expected, Measured, Verdict
from smoke_training.plan import Plan


def resume_equality(_plan: Plan, found: Evidence) -> Check:
    """Every entry of every rank equal to the uninterrupted run, and bit-equal losses afterwards."""
    outcome = found.need(Resume)
    entries = sum(rank.entries for rank in outcome.ranks)
    different = [f"rank {rank.rank} {name}" for rank in outcome.ranks for name in rank.different]
    compared = sum(rank.losses_compared for rank in outcome.ranks)
    unequal = compared - sum(rank.losses_equal for rank in outcome.ranks)
    empty = [rank.rank for rank in outcome.ranks if rank.entries == 0 or rank.losses_compared < 5]
    good = not different and unequal == 0 and not empty
    culprits = tuple(
        Culprit("rank", str(rank.rank), Cause.STATE_LOST, tuple(rank.different[:5]))
        for rank in outcome.ranks
        if rank.different or rank.losses_equal < rank.losses_compared
    )
    return Check(
        status=Verdict.PASS if good else Verdict.ERROR if empty else Verdict.FAIL,
        measured=Measured(
            value=float(len(different)),
            unit="different entries",
            n=entries,
            estimator="count",
            detail={"losses_compared": compared, "losses_different": unequal, "first": different[:10]},
        ),
        expected=Expected.exactly(0.0, "an uninterrupted run of the same ranks, at the same steps"),
        culprits=culprits,
        message=f"{len(different)} of {entries} state entries, {unequal} of {compared} losses differ"
        + (f"; rank {empty[0]} compared nothing" if empty else ""),
        next_action=None
        if good
        else "Do not train on this stack: a resumed run is not the run that was interrupted.",
    )


def recovery(_plan: Plan, found: Evidence) -> Check:
    """The kill was real, and it cost no more than one checkpoint interval."""
    outcome = found.need(Resume)
    # A damaged checkpoint has a check of its own; here counts whether checkpoints were made often enough.
    newest = outcome.resumed_from if outcome.committed is None else outcome.committed
    lost = outcome.killed_at_step - newest
    real = outcome.signal == signal.SIGKILL and outcome.mttr_seconds > 0
    # The victim dies somewhere inside the step after the last one it reported, which may be one checkpoint
    # further.
    good = real and -1 <= lost <= outcome.every
    status = Verdict.PASS if good else Verdict.FAIL if real else Verdict.ERROR
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
            },
        ),
        expected=Expected(
            value=float(outcome.every), kind="declared", source="checkpoint interval in steps (lost steps)"
        ),
        message=f"rank {outcome.victim} was killed at step {outcome.killed_at_step}; training resumed from "
        f"{outcome.resumed_from} after {outcome.mttr_seconds:.1f} s, {max(lost, 0)} steps lost "
        f"(at most {outcome.every})",
        next_action=None if good else "Check that checkpoints reach storage before the next one begins.",
    )
