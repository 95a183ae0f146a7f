"""Judges of how a run ended: at its end, broken off, or because it made way for other work (pure).

A scheduled run makes way for training: the queue suspends its Job, and every pod gets SIGTERM. What it did
not measure accuses no node: such a run is SKIPPED, unless something had been measured before that fails on
its own evidence.
"""

import dataclasses
import signal
from collections.abc import Iterator

from smoke_training.evidence import Evidence
from smoke_training.evidence.world import Ended, Failure, Finished, Unrecorded
from smoke_training.model import Cause, Check, Culprit, Verdict
from smoke_training.plan import Plan

# What a run that is being stopped says about its own processes: ranks vanish and nodes never join because
# they are taken away.
_OWN_PROCESSES = ("run.", "preflight.")


def completed(found: Evidence) -> Check | None:
    """An ERROR when the run did not reach its end or left something unreadable or unwritten, else None."""
    failures = found.all_of(Failure)
    reasons = list(found.unreadable)
    reasons += [f"rank {item.rank} broke in phase {item.phase}: {item.message}" for item in failures]
    reasons += [f"{item.path} could not be written: {item.reason}" for item in found.all_of(Unrecorded)]
    if found.of(Finished) is None:
        ended = found.of(Ended)
        reasons.append(ended.reason if ended else "the ranks ended before they had delivered everything")
    if not reasons:
        return None
    culprits = tuple(_full_disks(found))
    action = "Read torchrun.log in the node's scratch folder."
    if culprits:
        action = "Make room where the run writes, or give it another work folder."
    elif stopped(found):
        action = "Run it again: it was stopped from outside, and that says nothing about the machines."
    return Check(
        id="run.completed",
        status=Verdict.ERROR,
        message="; ".join(reasons)[:2000],
        culprits=culprits,
        next_action=action,
    )


def stopped(found: Evidence) -> str | None:
    """By which signal a run was stopped before its end, in words; None for every other run."""
    ended = found.of(Ended) if found.of(Finished) is None else None
    return ended.reason if ended is not None and ended.reason.startswith("stopped by SIG") else None


def _full_disks(found: Evidence) -> Iterator[Culprit]:
    """The places that had no room left, as far as a failure says so."""
    full = [(item.path, item.reason) for item in found.all_of(Unrecorded)]
    full += [(f"work folder of rank {item.rank}", item.message) for item in found.all_of(Failure)]
    for place, reason in full:
        if "No space left on device" in reason or "Disk quota exceeded" in reason:
            yield Culprit("storage", place, Cause.DISK_FULL, (reason[:300],))


def preempted(plan: Plan, found: Evidence) -> str | None:
    """Why a preemptible run ended before its end; None for every other run."""
    if not plan.preemptible or found.of(Finished) is not None:
        return None
    stopped = [item.reason for item in found.all_of(Ended) if signal.SIGTERM.name in item.reason]
    return f"preempted: the run made way for other work ({stopped[0]})" if stopped else None


def excused(check: Check, why: str) -> Check:
    """The check of a run that made way: a measured failure stays, everything unfinished is SKIPPED."""
    unfinished = check.status in (Verdict.ERROR, Verdict.INCONCLUSIVE)
    if unfinished or (check.status is Verdict.FAIL and check.id.startswith(_OWN_PROCESSES)):
        return dataclasses.replace(
            check, status=Verdict.SKIPPED, message=f"Not judged: {why}.", culprits=(), next_action=None
        )
    return check
