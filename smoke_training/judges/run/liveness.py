"""Judge of the ranks' liveness (pure)."""

import signal

from smoke_training.evidence import Evidence
from smoke_training.evidence.liveness import Hung, Killed, Liveness, NeverStarted
from smoke_training.judges.common import host_name, next_step
from smoke_training.model import Cause, Check, Culprit, Expected, Measured, Verdict
from smoke_training.plan import Plan

WATCH = "heartbeats of every rank, watched from outside its process"
OUT_OF_MEMORY = "Give the pods more memory, or the ranks less to hold: the kernel killed one: out of memory."
REMEDIES = {
    "stack": "Check the network between the nodes: all ranks wait for data and none is behind.",
    Cause.KILLED: "Read the node's kernel log (dmesg) and events: something outside this run ended the "
    "process.",
    Cause.HUNG: "Take the node out and read the process's stack (py-spy dump, /proc/PID/stack) before "
    "ending it.",
    Cause.NEVER_JOINED: "Read torchrun.log in the node's scratch folder.",
}

Incident = Killed | Hung | NeverStarted


def alive(plan: Plan, found: Evidence) -> Check:
    """Check that no rank hung, none was killed except by plan, all started."""
    hung, killed, watch = found.all_of(Hung), found.all_of(Killed), found.of(Liveness)
    incidents: list[Incident] = [*killed, *hung, *found.all_of(NeverStarted)]
    if not incidents:
        return _healthy(plan, found.need(Liveness))
    culprits = tuple(_culprit(item, found) for item in incidents)
    idle = max((item.idle_s for item in hung), default=None)
    memory = {Cause.KILLED: OUT_OF_MEMORY} if any(item.oom_kills for item in killed) else {}
    return Check(
        status=Verdict.FAIL,
        measured=Measured(
            value=idle,
            unit="s",
            n=watch.looks if watch else len(culprits),
            estimator="longest time without a heartbeat",
            reason=None if idle is not None else "it ended before a heartbeat was due",
            detail={"incidents": len(culprits)},
        ),
        expected=Expected(value=0.0, kind="declared", source=WATCH, floor=plan.hang_timeout_s),
        message="; ".join(_text(item) for item in incidents),
        culprits=culprits,
        next_action=next_step(Verdict.FAIL, culprits, REMEDIES | memory),
    )


def _healthy(plan: Plan, watch: Liveness) -> Check:
    longest = max(watch.ranks, key=lambda rank: rank.longest_idle_s, default=None)
    cut = [rank.rank for rank in watch.ranks if rank.status != "DONE"]
    text = f"{len(watch.ranks)} ranks sent heartbeats"
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
            estimator="longest time without a heartbeat",
            reason=None if longest else "no rank was started",
            detail={"ranks": len(watch.ranks), "watched_s": watch.watched_s},
        ),
        expected=Expected(value=0.0, kind="declared", source=WATCH, floor=plan.hang_timeout_s),
        message=text,
    )


def _culprit(item: Incident, found: Evidence) -> Culprit:
    """Accuse the rank, else its launcher or node, else the transport if no rank is behind."""
    evidence = [_text(item)]
    cause = Cause.NEVER_JOINED
    if isinstance(item, Killed):
        cause = Cause.KILLED
        evidence += [f"process {item.pid}"] if item.pid is not None else []
        if item.oom_kills:
            what = f"{item.oom_kills} processes of the node's group"
            evidence.append(f"the kernel killed {what}: out of memory")
    elif isinstance(item, Hung):
        if item.node is None:
            busy = f"busy for {item.busy_s:.1f} s of it at most"
            return Culprit("stack", "transport", Cause.HUNG, (*evidence, busy))
        cause = Cause.HUNG
        evidence.append(f"process state {item.state or 'unknown'}, busy for {item.busy_s:.1f} s of it")
    kind, number = ("node", item.node) if item.rank is None else ("rank", item.rank)
    return Culprit(kind, str(number), cause, tuple(evidence), node=host_name(item.node, found))


def _text(item: Incident) -> str:
    if isinstance(item, Hung):
        return _hung_words(item)
    if isinstance(item, NeverStarted):
        return f"rank {item.rank} on node {item.node} never started (waited {item.waited_s:.1f} s)"
    if item.what == "launcher":
        return f"the launcher of node {item.node} vanished without a report"
    by = "by a signal that was not recorded"
    if item.signal is not None:
        known = item.signal in set(signal.Signals)
        by = f"by {signal.Signals(item.signal).name}" if known else f"by signal {item.signal}"
    if item.what == "torchrun":
        return f"torchrun of node {item.node} was killed {by}"
    where = f"in phase {item.phase or 'start'} after exchange {item.sequence}"
    return f"rank {item.rank} on node {item.node} was killed {by} {where}"


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
