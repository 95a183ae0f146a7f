"""Judges of a run's end: completed, broken off, or preempted by other work (pure).

A scheduled run is preempted by training: the queue suspends its Job, and every pod gets SIGTERM. Missing
measurements then accuse no node: such a run is SKIPPED, unless a check completed before fails on
its own evidence.
"""

import dataclasses
import signal
from collections.abc import Iterator

from smoke_training.evidence import Evidence
from smoke_training.evidence.liveness import Liveness
from smoke_training.evidence.world import EarlyEnd, Finished, RankFailure, Unrecorded
from smoke_training.model import Cause, Check, Culprit, Verdict
from smoke_training.plan import Plan

# Evidence about the processes of a run that is being stopped: ranks vanish and nodes never join because
# they are taken away.
_OWN_PROCESSES = ("run.", "preflight.")


def completed(found: Evidence) -> Check | None:
    """Return an ERROR when the run did not complete or its record is unreadable or unwritten, else None."""
    failures = found.all_of(RankFailure)
    reasons = list(found.unreadable)
    reasons += [f"rank {item.rank} broke in phase {item.phase}: {item.message}" for item in failures]
    reasons += [f"{item.path} could not be written: {item.reason}" for item in found.all_of(Unrecorded)]
    if found.of(Finished) is None:
        ended = found.of(EarlyEnd)
        reason = ended.reason if ended else "the ranks ended before they had delivered everything"
        # The launcher's reason repeats failures of ranks.
        reasons += [part for part in reason.split("; ") if part not in reasons]
    if not reasons:
        return None
    culprits = tuple(_full_disks(found))
    action = "Read torchrun.log in the node's scratch folder."
    if culprits:
        action = "Free space where the run writes, or give it another work folder."
    elif found.unreadable:
        action = "Judge the whole samples file, with the version that wrote it."
    elif not failures and found.of(Liveness) is None:
        action = "Correct it and run again: no rank was started."
    elif stopped(found):
        action = "Run it again: it was stopped from outside, which is no evidence about the machines."
    return Check(
        id="run.completed",
        status=Verdict.ERROR,
        message="; ".join(reasons)[:2000],
        culprits=culprits,
        next_action=action,
    )


def stopped(found: Evidence) -> str | None:
    """Return the signal that stopped a run, as text; None for every other run."""
    ended = found.of(EarlyEnd) if found.of(Finished) is None else None
    return ended.reason if ended is not None and ended.reason.startswith("stopped by SIG") else None


def _full_disks(found: Evidence) -> Iterator[Culprit]:
    """Yield the full disks named by failures."""
    full = [(item.path, item.reason) for item in found.all_of(Unrecorded)]
    full += [(f"work folder of rank {item.rank}", item.message) for item in found.all_of(RankFailure)]
    for place, reason in full:
        if "No space left on device" in reason or "Disk quota exceeded" in reason:
            yield Culprit("storage", place, Cause.DISK_FULL, (reason[:300],))


def preempted(plan: Plan, found: Evidence) -> str | None:
    """Return why a preemptible run ended early; None for every other run."""
    if not plan.preemptible or found.of(Finished) is not None:
        return None
    stopped = [item.reason for item in found.all_of(EarlyEnd) if signal.SIGTERM.name in item.reason]
    return f"preempted by other work ({stopped[0]})" if stopped else None


def excused(check: Check, why: str) -> Check:
    """Adapt the check of a preempted run: a measured failure stays, unfinished checks are SKIPPED."""
    unfinished = check.status in (Verdict.ERROR, Verdict.INCONCLUSIVE)
    if unfinished or (check.status is Verdict.FAIL and check.id.startswith(_OWN_PROCESSES)):
        return dataclasses.replace(
            check, status=Verdict.SKIPPED, message=f"Not judged: {why}.", culprits=(), next_action=None
        )
    return check
