"""A run that may be stopped at any time, and was: what it did not measure accuses no node (pure).

A scheduled run makes way for training: the queue suspends its Job, and every pod gets SIGTERM. Such a run is
SKIPPED, unless something had been measured before that fails on its own evidence.
"""

import dataclasses
import signal

from smoke_training.evidence import Evidence
from smoke_training.evidence.world import Ended, Finished
from smoke_training.model import Check, Verdict
from smoke_training.plan import Plan

# What a run that is being stopped says about its own processes: ranks vanish and nodes never join because
# they are taken away.
_OWN_PROCESSES = ("run.", "preflight.")


def reason(plan: Plan, found: Evidence) -> str | None:
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
