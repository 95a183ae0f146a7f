"""Judges of gradients and losses: finite, equal, the same on any number of ranks (pure)."""

from collections import Counter

from smoke_training.evidence import Evidence
from smoke_training.evidence.training import NonFinite, Numerics, Sharded
from smoke_training.evidence.world import World
from smoke_training.formulae.efficiency import relative_difference
from smoke_training.judges.common import host_of
from smoke_training.model import Cause, Check, Culprit, Expected, Measured, Verdict
from smoke_training.plan import Plan

SHARDED_LIMIT = 1e-5  # float32 sums in another order over 20 steps, as for loss parity


def finite(plan: Plan, found: Evidence) -> Check | None:
    """No rank's own gradient was NaN or infinite before a reduction, in any phase that trains."""
    records, cluster = found.all_of(Numerics), found.of(World)
    if cluster is None or not _complete(plan, records):
        return None
    passes = sum(record.passes for record in records)
    bad = [(record.phase, entry) for record in records for entry in record.nonfinite]
    owners = _owners(records)
    first = owners[0] if owners else None
    return Check(
        status=Verdict.FAIL if bad else Verdict.PASS if passes else Verdict.ERROR,
        measured=Measured(
            value=float(len({(phase, entry.step) for phase, entry in bad})),
            unit="backward passes",
            n=passes,
            estimator="count of passes with a gradient that is not finite, before the reduction",
            detail={"phases": {record.phase: record.passes for record in records}},
        ),
        expected=Expected.exactly(0.0, "gradients are numbers"),
        culprits=tuple(_owner(phase, entries, cluster) for phase, entries in owners),
        message=f"all gradients of {passes} backward passes per rank are finite"
        if first is None
        else f"rank {first[1][0].rank}: {_what(first[1][0])} in the gradient of {first[1][0].parameter} "
        f"at step {first[1][0].step} of {first[0]}, before any reduction",
        next_action=None if not bad else "Take the node of that rank out and test its accelerators.",
    )


def _owners(records: tuple[Numerics, ...]) -> list[tuple[str, list[NonFinite]]]:
    """Of the first phase with any: the entries of every rank that had one at the earliest step.

    One step later all ranks may have them: the reduction hands them out, and the optimizer puts them into
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
    return Culprit(
        kind="rank",
        id=str(first.rank),
        node=host_of(first.rank, cluster),
        cause=Cause.NAN,
        evidence=(
            f"step {first.step} of {phase}: {_what(first)} in the gradient of {first.parameter}",
            f"parameters at that step: {names}" + (" and more" if len(entries) > 5 else ""),
            "seen on this rank before the reduction, and on no other at an earlier step",
        ),
    )


def _what(entry: NonFinite) -> str:
    parts = [f"{entry.nan} NaN"] if entry.nan else []
    parts += [f"{entry.infinite} infinite"] if entry.infinite else []
    return " and ".join(parts)


def gradients(plan: Plan, found: Evidence) -> Check | None:
    """After the reduction, all ranks hold the same bits."""
    records, cluster = found.all_of(Numerics), found.of(World)
    if cluster is None or not _complete(plan, records):
        return None
    samples = sum(len(record.steps) for record in records)
    broken = [(record, index) for record in records for index in _differences(record)]
    culprits = _deviants(*broken[0], cluster) if broken else ()
    return Check(
        status=Verdict.FAIL if broken else Verdict.PASS if samples else Verdict.ERROR,
        measured=Measured(
            value=float(len(broken)),
            unit="steps",
            n=samples,
            estimator="count of steps whose reduced gradients differ between ranks in any bit",
            detail={"differing": list(broken[0][0].differing[:10]) if broken else []},
        ),
        expected=Expected.exactly(0.0, "an all-reduce gives every rank the same sum"),
        culprits=culprits,
        message=_gradients_message(broken, culprits, samples),
        next_action=None if not broken else "Take the accused rank's node out and test its memory and NIC.",
    )


def _differences(record: Numerics) -> list[int]:
    """Samples that are not the same on all ranks; one with a NaN is the other check's business."""
    poisoned = {entry.step for entry in record.nonfinite}
    columns = zip(record.steps, zip(*record.checksums, strict=True), strict=True)
    return [i for i, (step, sums) in enumerate(columns) if len(set(sums)) > 1 and step not in poisoned]


def _deviants(record: Numerics, sample: int, cluster: World) -> tuple[Culprit, ...]:
    """The ranks outside the majority; two camps of equal size accuse no rank."""
    sums = [row[sample] for row in record.checksums]
    where = f"step {record.steps[sample]} of {record.phase}"
    (common, count), *rest = Counter(sums).most_common()
    if rest and rest[0][1] == count:
        return (
            Culprit(
                kind="stack",
                id="gradients",
                cause=Cause.CORRUPTION,
                evidence=(f"{where}: no majority among {len(sums)} ranks",),
            ),
        )
    return tuple(
        Culprit(
            kind="rank",
            id=str(rank),
            node=host_of(rank, cluster),
            cause=Cause.CORRUPTION,
            evidence=(
                f"{where}: its reduced gradients differ from those of {count} other ranks",
                f"parameters: {', '.join(record.differing[:5])}",
            ),
        )
        for rank, value in enumerate(sums)
        if value != common
    )


def _gradients_message(
    broken: list[tuple[Numerics, int]], culprits: tuple[Culprit, ...], samples: int
) -> str:
    if not broken:
        return f"reduced gradients of {samples} steps are equal on all ranks, bit by bit"
    record, sample = broken[0]
    who = "ranks disagree" if culprits[0].kind == "stack" else f"rank {culprits[0].id} differs"
    return (
        f"reduced gradients of {len(broken)} of {samples} steps: {who}, first at step {record.steps[sample]}"
    )


def _complete(plan: Plan, records: tuple[Numerics, ...]) -> bool:
    """Whether the phase that this is mainly about has delivered; another one's record does not stand in."""
    phases = {record.phase for record in records}
    return "training" in phases or ("training" not in plan.chosen_phases and bool(phases))


def sharded(_plan: Plan, found: Evidence) -> Check | None:
    """Sharded parameters train like replicated ones."""
    record, cluster = found.of(Sharded), found.of(World)
    if record is None or cluster is None:
        return None
    pairs = list(zip(record.losses, record.replicated, strict=True))
    worst = max(relative_difference(a, b) for a, b in pairs)
    kept = sum(record.shard_bytes)
    spread_out = record.parameter_bytes <= kept < record.parameter_bytes * 1.5
    good = worst <= SHARDED_LIMIT and spread_out
    text = f"losses of sharded and replicated parameters differ by at most {worst:.1e}"
    return Check(
        status=Verdict.PASS if good else Verdict.FAIL,
        measured=Measured(
            value=worst if worst != float("inf") else None,
            unit="relative difference",
            n=len(pairs),
            estimator="maximum over steps",
            reason=None if worst != float("inf") else "a loss is not finite",
            detail=_sharded_detail(record),
        ),
        expected=Expected(
            value=0.0,
            kind="derived",
            floor=SHARDED_LIMIT,
            source=f"rounding of {record.dtype} sums in another order over {len(pairs)} steps",
        ),
        culprits=() if good else (_sharding_culprit(text),),
        message=text
        if spread_out
        else f"ranks keep {kept} bytes of {record.parameter_bytes} parameter bytes: they are not sharded",
        next_action=None if good else "Check torch's version on all nodes, and loss parity of the same run.",
    )


def _sharding_culprit(text: str) -> Culprit:
    return Culprit(kind="stack", id="sharding", cause=Cause.UNKNOWN, evidence=(text,))


def _sharded_detail(record: Sharded) -> dict[str, object]:
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
