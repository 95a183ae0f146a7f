"""Judge of the data loader: accelerator utilisation under an emulated load (pure)."""

import statistics
from collections.abc import Mapping, Sequence

from smoke_training.evidence import Evidence
from smoke_training.evidence.storage import LoaderTimes
from smoke_training.judges.common import RUN_AGAIN, against_floor, finite, host_name
from smoke_training.judges.storage.throughput import refused
from smoke_training.model import Cause, Check, Culprit, Expected, Measured, Verdict
from smoke_training.plan import Plan
from smoke_training.statistics import noise, slowness
from smoke_training.statistics.estimators import Z_ACQUIT, Z_REPORTED, blocks, decision_z, trimmed_interval

UTILISATION = 0.90
RULE = "mlcommons/storage Submission_guidelines.md requires 90 % of U-Net3D and ResNet50 (2026)"


def utilisation(_plan: Plan, found: Evidence) -> Check:
    """Share of its time that the emulated accelerator computed instead of waiting for data."""
    stopped = refused("loader", found)
    if stopped is not None:
        return stopped
    run = found.need(LoaderTimes)
    ranks = range(len(run.compute))
    shares = [_utilisations(run, rank) for rank in ranks]
    worst = min(ranks, key=lambda rank: statistics.fmean(shares[rank]))
    # An interval of the log of the waiting share would break at no waiting at all; utilisations are fine.
    decisive = trimmed_interval(shares[worst], decision_z(comparisons=len(ranks)))
    reported = trimmed_interval(shares[worst], Z_REPORTED)
    acquitting = trimmed_interval(shares[worst], Z_ACQUIT)
    status = against_floor(acquitting.low, decisive.high, UTILISATION)
    walls = [[*busy, *waits] for busy, waits in zip(run.compute, run.stall, strict=True)]
    queue = noise.queue_share(walls, run.stall_queue)
    if status is Verdict.FAIL and (queue or 0.0) > noise.QUEUE_LIMIT:
        status = Verdict.INCONCLUSIVE
    samples = sum(len(run.compute[0]) * run.batch_samples / sum(wall) for wall in walls)
    culprits = _culprits(run, shares, found) if status is Verdict.FAIL else ()
    return Check(
        status=status,
        measured=Measured(
            value=decisive.estimate,
            unit="ratio",
            n=len(shares[worst]),
            ci=finite(max(reported.low, 0.0), min(reported.high, 1.0)),
            estimator="T_compute / (T_compute + T_stall) of the worst rank, 20 % trimmed mean over blocks",
            detail={
                "samples_per_s": samples,
                "mb_s": samples * run.sample_bytes / 1e6,
                "ranks": [statistics.fmean(values) for values in shares],
                "workers": run.workers,
                "read_seconds": list(run.read_seconds),
                "resident_share": list(run.resident_share),
            },
        ),
        expected=Expected(
            value=1.0, kind="declared", source=f"{RULE}; load: {run.source}", floor=UTILISATION
        ),
        noise={"queue_share": queue},
        culprits=culprits,
        message=f"rank {worst} computes {decisive.estimate:.1%} of its time (at least {UTILISATION:.0%}), "
        f"all ranks load {samples:.0f} samples/s with {run.workers} workers each",
        next_action=_next(status, run, worst),
    )


def _utilisations(run: LoaderTimes, rank: int) -> list[float]:
    """Utilisation per block of batches: batches arrive in bursts of one per worker."""
    length = slowness.block_length(len(run.compute[rank]))
    parts = zip(blocks(run.compute[rank], length), blocks(run.stall[rank], length), strict=True)
    return [sum(busy) / (sum(busy) + sum(waiting)) for busy, waiting in parts]


def _culprits(run: LoaderTimes, shares: Sequence[Sequence[float]], found: Evidence) -> tuple[Culprit, ...]:
    """Every node with a rank below the limit; the stack if all are."""
    means = {rank: statistics.fmean(values) for rank, values in enumerate(shares)}
    slow = {run.nodes[rank] for rank, mean in means.items() if mean < UTILISATION}
    if slow == set(run.nodes):
        return (_culprit(run, None, means, found),)
    return tuple(_culprit(run, node, means, found) for node in sorted(slow))


def _culprit(run: LoaderTimes, node: int | None, means: Mapping[int, float], found: Evidence) -> Culprit:
    """Accuse the storage if its reads fill the workers' time, else the node's (or all nodes') processors."""
    here = [rank for rank in means if node in (None, run.nodes[rank])]
    worst, host = min(here, key=means.__getitem__), host_name(node, found)
    wall = sum(run.compute[worst]) + sum(run.stall[worst])
    spent = f"{run.read_seconds[worst]:.1f} s inside reads during {wall:.1f} s"
    text, score = f"rank {worst}'s {run.workers} workers spent {spent}", means[worst]
    if _reads_dominate(run, worst):
        name = run.name if node is None else f"{run.name}@{node}"
        return Culprit("storage", name, Cause.SLOW_STORAGE, (text,), node=host, score=score)
    kind, name = ("stack", "loader") if node is None else ("node", str(node))
    return Culprit(kind, name, Cause.SLOW_COMPUTE, (text,), node=host, score=score)


def _reads_dominate(run: LoaderTimes, rank: int) -> bool:
    """Report whether the workers spent most of the run inside reads; otherwise their own work is too slow."""
    wall = sum(run.compute[rank]) + sum(run.stall[rank])
    return run.read_seconds[rank] > 0.5 * run.workers * wall


def _next(status: Verdict, run: LoaderTimes, worst: int) -> str | None:
    if status is not Verdict.FAIL:
        return RUN_AGAIN if status is Verdict.INCONCLUSIVE else None
    if _reads_dominate(run, worst):
        return f"Raise the read throughput of {run.name} ({run.path}), or cache the data on the nodes."
    return "Give the loader more worker processes and CPUs."
