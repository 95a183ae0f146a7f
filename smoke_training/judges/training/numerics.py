"""Judges of gradients and losses: finite, equal, the same on any number of ranks (pure)."""

import math
from collections import Counter
from collections.abc import Sequence

from smoke_training.evidence import Evidence, UndeliveredError
from smoke_training.evidence.training import NonFinite, Numerics, Parity, Sharded
from smoke_training.evidence.world import World
from smoke_training.formulae import rounding
from smoke_training.judges.common import host_of
from smoke_training.model import Cause, Check, Culprit, Expected, Measured, Verdict
from smoke_training.plan import Plan

PARITY_STEPS = 20
NOT_FINITE = "passes with a gradient that is not finite, before the reduction"
DIFFERENT = "steps whose reduced gradients differ between ranks in any bit"


def finite(plan: Plan, found: Evidence) -> Check:
    """Check that no rank's own gradient was NaN or infinite before a reduction, in any phase that trains."""
    records, cluster = _records(plan, found), found.need(World)
    passes = sum(record.passes for record in records)
    bad = {(record.phase, entry.step) for record in records for entry in record.nonfinite}
    message = f"all gradients of {passes} backward passes per rank are finite"
    owners = _owners(records)
    if owners:
        phase, (first, *_) = owners[0]
        message = (
            f"rank {first.rank}: {_what(first)} in the gradient of {first.parameter} at step {first.step} "
            f"of {phase}, before any reduction"
        )
    phases = {record.phase: record.passes for record in records}
    return Check(
        status=Verdict.FAIL if bad else Verdict.PASS if passes else Verdict.ERROR,
        measured=Measured.count(len(bad), "backward passes", passes, NOT_FINITE, phases=phases),
        expected=Expected.exactly(0.0, "gradients are numbers"),
        culprits=tuple(_owner(phase, entries, cluster) for phase, entries in owners),
        message=message,
        next_action="Take the node of that rank out and test its accelerators." if bad else None,
    )


def _records(plan: Plan, found: Evidence) -> tuple[Numerics, ...]:
    """Return all records, once the main phase has delivered; no other phase replaces it."""
    records = found.all_of(Numerics)
    phases = {record.phase for record in records}
    if not phases or ("training" in plan.chosen_phases and "training" not in phases):
        raise UndeliveredError("numerics")
    return records


def _owners(records: Sequence[Numerics]) -> list[tuple[str, list[NonFinite]]]:
    """Return the entries of the first phase with any: of every rank that had one at the earliest step.

    One step later all ranks may have them: the reduction distributes them, and the optimizer writes them into
    the weights.
    """
    for record in records:
        if record.nonfinite:
            earliest = min(entry.step for entry in record.nonfinite)
            entries = [entry for entry in record.nonfinite if entry.step == earliest]
            ranks = sorted({entry.rank for entry in entries})
            return [(record.phase, [e for e in entries if e.rank == rank]) for rank in ranks]
    return []


def _owner(phase: str, entries: list[NonFinite], cluster: World) -> Culprit:
    first = entries[0]
    names = ", ".join(entry.parameter for entry in entries[:5])
    evidence = (
        f"step {first.step} of {phase}: {_what(first)} in the gradient of {first.parameter}",
        f"parameters at that step: {names}" + (" and more" if len(entries) > 5 else ""),
        "seen on this rank before the reduction, and on no other at an earlier step",
    )
    return Culprit("rank", str(first.rank), Cause.NAN, evidence, node=host_of(first.rank, cluster))


def _what(entry: NonFinite) -> str:
    parts = [f"{entry.nan} NaN"] if entry.nan else []
    parts += [f"{entry.infinite} infinite"] if entry.infinite else []
    return " and ".join(parts)


def gradients(plan: Plan, found: Evidence) -> Check:
    """Check that all ranks hold the same bits after the reduction."""
    records, cluster = _records(plan, found), found.need(World)
    samples = sum(len(record.steps) for record in records)
    broken = [(record, index) for record in records for index in _differences(record)]
    culprits: tuple[Culprit, ...] = ()
    named = list(broken[0][0].differing[:10]) if broken else []
    message = f"reduced gradients of {samples} steps are equal on all ranks, bit by bit"
    if broken:
        record, sample = broken[0]
        culprits = _deviants(record, sample, cluster)
        who = "ranks disagree" if culprits[0].kind == "stack" else f"rank {culprits[0].id} differs"
        steps = f"{len(broken)} of {samples} steps"
        message = f"reduced gradients of {steps}: {who}, first at step {record.steps[sample]}"
    return Check(
        status=Verdict.FAIL if broken else Verdict.PASS if samples else Verdict.ERROR,
        measured=Measured.count(len(broken), "steps", samples, DIFFERENT, differing=named),
        expected=Expected.exactly(0.0, "an all-reduce gives every rank the same sum"),
        culprits=culprits,
        message=message,
        next_action=None if not broken else "Take the accused rank's node out and test its memory and NIC.",
    )


def _differences(record: Numerics) -> list[int]:
    """Return samples that differ between ranks; those with a NaN belong to the other check."""
    poisoned = {entry.step for entry in record.nonfinite}
    columns = zip(record.steps, zip(*record.checksums, strict=True), strict=True)
    return [i for i, (step, sums) in enumerate(columns) if len(set(sums)) > 1 and step not in poisoned]


def _deviants(record: Numerics, sample: int, cluster: World) -> tuple[Culprit, ...]:
    """The ranks outside the majority; a tie accuses no rank."""
    sums = [row[sample] for row in record.checksums]
    where = f"step {record.steps[sample]} of {record.phase}"
    (common, count), *rest = Counter(sums).most_common()
    if rest and rest[0][1] == count:
        text = f"{where}: no majority among {len(sums)} ranks"
        return (Culprit("stack", "gradients", Cause.CORRUPTION, (text,)),)
    evidence = (
        f"{where}: its reduced gradients differ from those of {count} other ranks",
        f"parameters: {', '.join(record.differing[:5])}",
    )
    return tuple(
        Culprit("rank", str(rank), Cause.CORRUPTION, evidence, node=host_of(rank, cluster))
        for rank, value in enumerate(sums)
        if value != common
    )


def loss_parity(_plan: Plan, found: Evidence) -> Check:
    """Check for equal losses on N ranks and on one rank with all their batches."""
    losses, ranks = found.need(Parity), len(found.need(World).ranks)
    terms, steps = losses.tokens * ranks, len(losses.many)
    limit = rounding.training(losses.dtype, terms=terms, steps=steps)
    worst, measured = _losses(losses.many, losses.one)
    good = worst <= limit and len(losses.many) >= PARITY_STEPS
    return Check(
        status=Verdict.PASS if good else Verdict.FAIL,
        measured=measured,
        expected=_rounding(losses.dtype, limit, terms, steps),
        message=f"losses of N ranks and of one rank differ by at most {worst:.2e} (rounding: {limit:.0e})",
        next_action=None if good else "Check gradient averaging: batch split, loss scaling, reduction dtype.",
    )


def sharded(_plan: Plan, found: Evidence) -> Check:
    """Check that sharded parameters train like replicated ones."""
    record = found.need(Sharded)
    worst, measured = _losses(record.losses, record.replicated, _step_times(record))
    # Terms of a weight's gradient: over a rank's tokens, then over the ranks.
    terms, steps = record.tokens + len(record.shard_bytes), len(record.losses)
    limit = rounding.training(record.dtype, terms=terms, steps=steps)
    kept = sum(record.shard_bytes)
    spread_out = record.parameter_bytes <= kept < record.parameter_bytes * 1.5
    good = worst <= limit and spread_out
    text = f"losses of sharded and replicated parameters differ by {worst:.1e} (rounding: {limit:.0e})"
    return Check(
        status=Verdict.PASS if good else Verdict.FAIL,
        measured=measured,
        expected=_rounding(record.dtype, limit, terms, steps),
        culprits=() if good else (Culprit("stack", "sharding", Cause.UNKNOWN, (text,)),),
        message=text
        if spread_out
        else f"ranks keep {kept} bytes of {record.parameter_bytes} parameter bytes: they are not sharded",
        next_action=None if good else "Check torch's version on all nodes, and loss parity of the same run.",
    )


def relative_difference(left: float, right: float) -> float:
    """Symmetric relative difference; 0 when both are equal, infinite when one is not finite."""
    if not (math.isfinite(left) and math.isfinite(right)):
        return math.inf
    scale = max(abs(left), abs(right))
    return abs(left - right) / scale if scale else 0.0


def _losses(
    left: Sequence[float], right: Sequence[float], detail: dict[str, object] | None = None
) -> tuple[float, Measured]:
    worst = max(relative_difference(a, b) for a, b in zip(left, right, strict=True))
    return worst, Measured(
        value=worst if math.isfinite(worst) else None,
        unit="relative difference",
        n=len(left),
        estimator="maximum over steps",
        reason=None if math.isfinite(worst) else "a loss is not finite",
        detail=detail or {},
    )


def _rounding(dtype: str, limit: float, terms: int, steps: int) -> Expected:
    source = f"rounding of {dtype} sums of {terms} terms in another order over {steps} steps"
    return Expected(value=0.0, kind="derived", floor=limit, source=source)


def _step_times(record: Sharded) -> dict[str, object]:
    """Step times beside those without communication: those of all ranks, so the slowest rank's."""
    step = sorted(max(column) for column in zip(*record.step, strict=True))
    plain = sorted(max(column) for column in zip(*record.plain, strict=True))
    middle, bare = step[len(step) // 2], plain[len(plain) // 2]
    return {
        "step_s": middle,
        "without_communication_s": bare,
        "efficiency": bare / middle,
        "shard_bytes": list(record.shard_bytes),
        "parameter_bytes": record.parameter_bytes,
    }
