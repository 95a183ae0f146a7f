"""Judges of checkpoints: cost, integrity, interval (pure)."""

import statistics

from smoke_training.evidence import Evidence
from smoke_training.evidence.state import Checkpoint, Integrity, Resume
from smoke_training.formulae import youngdaly
from smoke_training.judges.common import host_name
from smoke_training.judges.storage.throughput import WARM_SHARE, refused
from smoke_training.model import Cause, Check, Culprit, Expected, Measured, Verdict
from smoke_training.plan import Plan


def commit(_plan: Plan, found: Evidence) -> Check:
    """Asynchronous checkpoints became durable, and came back bit for bit; the figures are reported."""
    stopped = refused("checkpoint", found)
    if stopped is not None:
        return stopped
    run = found.need(Checkpoint)
    wrong = [*run.different, *run.left_behind]
    status = Verdict.FAIL if wrong else Verdict.PASS if run.entries and run.commit_s else Verdict.ERROR
    stall, seconds = statistics.median(run.stall_s), statistics.median(run.commit_s)
    rate = run.bytes / 1e6 / seconds
    warm = run.restore_resident_share is None or run.restore_resident_share > WARM_SHARE
    text = (
        f"{run.bytes} bytes durable after {seconds:.3f} s ({rate:.0f} MB/s), training stalled {stall:.3f} s, "
    )
    text += f"restored in {run.restore_s:.3f} s; {len(run.different)} of {run.entries} entries differ"
    return Check(
        status=status,
        measured=Measured(
            value=seconds,
            unit="s",
            n=len(run.commit_s),
            estimator="median until `.result()`, maximum over ranks, fsync included",
            detail={
                "bytes": run.bytes,
                "mb_s": rate,
                "stall_s": stall,
                "mark_s": statistics.median(run.mark_s),
                "restore_s": run.restore_s,
                "restore_cache": "warm" if warm else "cold",
                "entries": run.entries,
                "different": list(run.different),
                "left_behind": list(run.left_behind),
            },
        ),
        expected=Expected.exactly(0.0, "entries that differ after the restore"),
        culprits=(Culprit("storage", run.name, Cause.STATE_LOST, tuple(wrong[:5])),) if wrong else (),
        message=text + (f"; left behind: {', '.join(run.left_behind)}" if run.left_behind else ""),
        next_action="Do not train on this storage: it returns other bytes than were saved."
        if wrong
        else None,
    )


def torn_refused(_plan: Plan, found: Evidence) -> Check:
    """Damaged copies of real checkpoints were all refused, on every rank."""
    outcome, asynchronous = found.need(Resume), found.of(Checkpoint)
    offered = sum(len(rank.torn_offered) for rank in outcome.ranks)
    accepted = [f"rank {rank.rank}: {name}" for rank in outcome.ranks for name in rank.torn_accepted]
    if asynchronous is not None:
        offered += len(asynchronous.torn_offered)
        accepted += asynchronous.torn_accepted
    status = Verdict.FAIL if accepted else Verdict.PASS if offered else Verdict.ERROR
    return Check(
        status=status,
        measured=Measured.count(len(accepted), "torn checkpoints accepted", offered),
        expected=Expected.exactly(0.0, "copies of this run's checkpoints, damaged on purpose"),
        message="; ".join([f"{len(accepted)} of {offered} torn checkpoints were accepted", *accepted[:10]]),
        next_action="Do not resume from this storage." if accepted else None,
    )


def integrity(_plan: Plan, found: Evidence) -> Check:
    """Check that every committed checkpoint was still complete when the restarted ranks read it."""
    stopped = refused("resume", found)
    if stopped is not None:
        return stopped
    state = found.need(Integrity)
    status, action = Verdict.PASS, None
    if state.unreadable or state.resumed_from is None:
        where = state.unreadable[0].path if state.unreadable else state.path
        status, action = Verdict.ERROR, f"Check permissions and mount of {where}."
    if state.damaged:
        where = state.damaged[0].path
        status = Verdict.FAIL
        action = f"Find what changed {where} after it was committed; test that storage."
    detail = {name: getattr(state, name) for name in ("path", "committed", "resumed_from")}
    detail["unreadable"] = [item.path for item in state.unreadable]
    return Check(
        status=status,
        measured=Measured.count(len(state.damaged), "damaged shards", 1, **detail),
        expected=Expected.exactly(0.0, "SHA-256 in manifests of committed checkpoints"),
        culprits=_torn_culprits(state, found),
        message=_integrity_message(state),
        next_action=action,
    )


def _integrity_message(state: Integrity) -> str:
    parts = [
        f"rank {d.rank}'s part of committed step {d.step} is damaged: {d.fault}" for d in state.damaged[:4]
    ]
    parts += [f"rank {d.rank} cannot read step {d.step}: {d.fault}" for d in state.unreadable[:4]]
    if state.resumed_from is None:
        parts.append(f"no step in {state.path} is complete on all ranks")
    elif parts:
        parts.append(f"training resumed from step {state.resumed_from}")
    return "; ".join(parts) or f"step {state.resumed_from} and all before it are complete on all ranks"


def _torn_culprits(state: Integrity, found: Evidence) -> tuple[Culprit, ...]:
    """The storage of each node that holds a damaged or unreadable part, newest step first in the evidence."""
    culprits = []
    for items, cause in ((state.damaged, Cause.TORN_CHECKPOINT), (state.unreadable, Cause.UNKNOWN)):
        for node in sorted({item.node for item in items}):
            here = [item for item in items if item.node == node]
            text = tuple(f"rank {d.rank}, step {d.step}, {d.path}: {d.fault}" for d in here[:5])
            name, host = f"{state.name}@{node}", host_name(node, found)
            culprits.append(Culprit("storage", name, cause, text, node=host))
    return tuple(culprits)


def advice(plan: Plan, found: Evidence) -> Check:
    """Recommend an interval for checkpoints of a Llama 3 8B at the measured rates; never judged."""
    if found.of(Checkpoint) is None and refused("checkpoint", found):
        return _advice(None, "no checkpoint", {}, 0)
    run = found.need(Checkpoint)
    gpus = plan.nodes * plan.gpus_per_node
    if gpus == 0:
        return _advice(None, "the prior for failures is per GPU, and the plan has none", {}, 0)
    scale = youngdaly.LLAMA3_8B_BYTES / run.bytes
    recovered = found.of(Resume)
    restart = (recovered.mttr_seconds if recovered else 0.0) + run.restore_s * scale
    commit_s, stall_s = statistics.median(run.commit_s) * scale, statistics.median(run.stall_s) * scale
    mtbf = youngdaly.prior_mtbf_s(gpus)
    best = youngdaly.advise(stall_s=stall_s, commit_s=commit_s, mtbf_s=mtbf, restart_s=restart)
    detail: dict[str, object] = {
        "state_bytes": youngdaly.LLAMA3_8B_BYTES,
        "state_source": youngdaly.LLAMA3_8B_SOURCE,
        "gpus": gpus,
        "mtbf_s": mtbf,
        "mtbf_source": youngdaly.LLAMA3_SOURCE,
        "stall_s": stall_s,
        "commit_s": commit_s,
        "restart_s": restart,
        "young_s": best.young_s,
        "daly_s": best.daly_s,
        "waste": best.waste,
    }
    text = (
        f"a checkpoint of 105 GB every {best.interval_s / 60:.0f} min loses {best.waste:.2%} of the time on "
        f"{gpus} GPUs (an interruption every {mtbf / 3600:.0f} h expected, {commit_s:.0f} s until durable)"
    )
    return _advice(best.interval_s, text, detail, len(run.commit_s))


def _advice(value: float | None, text: str, detail: dict[str, object], count: int) -> Check:
    estimator, reason = "Daly's interval, at least the time of one commit", text if value is None else None
    measured = Measured(value=value, unit="s", n=count, estimator=estimator, reason=reason, detail=detail)
    return Check.reported(text, "advice", measured)
