"""Judges of how the ranks lived and died, and of whether the run reached its end (pure)."""

import signal
from collections.abc import Iterator

from smoke_training.evidence import Evidence
from smoke_training.evidence.liveness import Hung, Killed, Liveness, NeverStarted
from smoke_training.evidence.world import Ended, Failure, Finished, Unrecorded
from smoke_training.judges.common import host_name
from smoke_training.model import Cause, Check, Culprit, Expected, Measured, Verdict
from smoke_training.plan import Plan

WATCH = "signs of life of every rank, watched from outside its process"


def alive(plan: Plan, found: Evidence) -> Check | None:
    """No rank hung, none was killed except by plan, all started."""
    hung, killed = found.all_of(Hung), found.all_of(Killed)
    absent, watch = found.all_of(NeverStarted), found.of(Liveness)
    culprits = [
        *(_killed(item, found) for item in killed),
        *(_hung(item, found) for item in hung),
        *(_absent(item, found) for item in absent),
    ]
    if not culprits:
        return None if watch is None else _healthy(plan, watch)
    words = [*map(_killed_words, killed), *map(_hung_words, hung), *map(_absent_words, absent)]
    idle = max((item.idle_s for item in hung), default=None)
    return Check(
        status=Verdict.FAIL,
        measured=Measured(
            value=idle,
            unit="s",
            n=watch.looks if watch else len(culprits),
            estimator="longest time without a sign of life",
            reason=None if idle is not None else "it ended before it could be silent",
            detail={"incidents": len(culprits)},
        ),
        expected=Expected(value=0.0, kind="declared", source=WATCH, floor=plan.hang_timeout_s),
        message="; ".join(words),
        culprits=tuple(culprits),
        next_action=_action(hung, killed),
    )


def _healthy(plan: Plan, watch: Liveness) -> Check:
    longest = max(watch.ranks, key=lambda rank: rank.longest_idle_s, default=None)
    cut = [rank.rank for rank in watch.ranks if rank.status != "DONE"]
    text = f"{len(watch.ranks)} ranks gave signs of life"
    if longest:
        text += f", the longest silence was {longest.longest_idle_s:.1f} s (rank {longest.rank})"
    if cut:
        text += f"; the run ended before {len(cut)} of them were done"
    return Check(
        status=Verdict.INCONCLUSIVE if cut or not watch.ranks else Verdict.PASS,
        measured=Measured(
            value=longest.longest_idle_s if longest else None,
            unit="s",
            n=watch.looks,
            estimator="longest time without a sign of life",
            reason=None if longest else "no rank was started",
            detail={"ranks": len(watch.ranks), "watched_s": watch.watched_s},
        ),
        expected=Expected(value=0.0, kind="declared", source=WATCH, floor=plan.hang_timeout_s),
        message=text,
    )


def _action(hung: tuple[Hung, ...], killed: tuple[Killed, ...]) -> str:
    if any(item.oom_kills for item in killed):
        return (
            "Give the pods more memory, or the ranks less to hold: the kernel ended one for want of memory."
        )
    if killed:
        return "Read the node's kernel log (dmesg) and events: something outside this run ended the process."
    if any(item.how == "stalled" for item in hung):
        return "Check the network between the nodes: all ranks wait for data and none is behind."
    if hung:
        return (
            "Take the node out and read the process's stack (py-spy dump, /proc/PID/stack) before ending it."
        )
    return "Read torchrun.log in the node's scratch folder."


def _named(number: int | None) -> str:
    if number is None:
        return "by a signal that was not recorded"
    try:
        return f"by {signal.Signals(number).name}"
    except ValueError:
        return f"by signal {number}"


def _killed_words(item: Killed) -> str:
    if item.what == "rank":
        where = f"in phase {item.phase or 'start'} after exchange {item.sequence}"
        return f"rank {item.rank} on node {item.node} was killed {_named(item.signal)} {where}"
    if item.what == "launcher":
        return f"the launcher of node {item.node} vanished without a word"
    return f"torchrun of node {item.node} was killed {_named(item.signal)}"


def _hung_words(item: Hung) -> str:
    after = f"for {item.idle_s:.1f} s (limit {item.limit_s:.1f} s)"
    if item.how == "silent":
        return f"the launcher of node {item.node} has been silent {after}"
    if item.how == "stalled":
        where = f"exchange {item.sequence} in phase {item.phase}"
        return f"all ranks wait in {where} {after} and none is behind"
    if item.what == "torchrun":
        return f"torchrun of node {item.node} has been stopped by a signal {after}"
    what = "has been stopped by a signal" if item.how == "stopped" else "has done nothing"
    where = f"in phase {item.phase or 'start'} at exchange {item.sequence}"
    return f"rank {item.rank} on node {item.node} {what} {where} {after}; the others are at {item.foremost}"


def _absent_words(item: NeverStarted) -> str:
    return f"rank {item.rank} on node {item.node} never started (waited {item.waited_s:.1f} s)"


def _killed(item: Killed, found: Evidence) -> Culprit:
    evidence = [_killed_words(item)]
    evidence += [f"process {item.pid}"] if item.pid is not None else []
    if item.oom_kills:
        evidence.append(f"the kernel ended {item.oom_kills} processes of the node's group for want of memory")
    return _culprit(item.rank, item.node, Cause.KILLED, evidence, found)


def _hung(item: Hung, found: Evidence) -> Culprit:
    if item.node is None:
        return Culprit(
            kind="stack", id="transport", cause=Cause.HUNG,
            evidence=(_hung_words(item), f"busy for {item.busy_s:.1f} s of it at most"),
        )  # fmt: skip
    evidence = [
        _hung_words(item),
        f"process state {item.state or 'unknown'}, busy for {item.busy_s:.1f} s of it",
    ]
    return _culprit(item.rank, item.node, Cause.HUNG, evidence, found)


def _absent(item: NeverStarted, found: Evidence) -> Culprit:
    return _culprit(item.rank, item.node, Cause.NEVER_JOINED, [_absent_words(item)], found)


def _culprit(rank: int | None, node: int, cause: Cause, evidence: list[str], found: Evidence) -> Culprit:
    return Culprit(
        kind="node" if rank is None else "rank",
        id=str(node if rank is None else rank),
        node=host_name(node, found),
        cause=cause,
        evidence=tuple(evidence),
    )


def completed(_plan: Plan, found: Evidence) -> Check | None:
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
    return Check(
        id="run.completed",
        status=Verdict.ERROR,
        message="; ".join(reasons)[:2000],
        culprits=culprits,
        next_action="Make room where the run writes, or give it another work folder."
        if culprits
        else "Read torchrun.log in the node's scratch folder.",
    )


def _full_disks(found: Evidence) -> Iterator[Culprit]:
    """The places that had no room left, as far as a failure says so."""
    full = [(item.path, item.reason) for item in found.all_of(Unrecorded)]
    full += [(f"work folder of rank {item.rank}", item.message) for item in found.all_of(Failure)]
    for place, reason in full:
        if "No space left on device" in reason or "Disk quota exceeded" in reason:
            yield Culprit(
                kind="storage", id=place, cause=Cause.DISK_FULL,
                evidence=(reason[:300],),
            )  # fmt: skip
