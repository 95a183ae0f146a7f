"""Judge of the data loader: accelerator utilisation under an emulated load (pure)."""

import statistics
from collections.abc import Sequence

from smoke_training.evidence import Evidence
from smoke_training.evidence.storage import Loader
from smoke_training.judges.common import RUN_AGAIN, against_floor, finite, host_name
from smoke_training.judges.storage.throughput import NOISY_QUEUE_SHARE, refused
from smoke_training.model import Cause, Check, Culprit, Expected, Measured, Verdict
from smoke_training.plan import Plan
from smoke_training.statistics import slowness
from smoke_training.statistics.estimators import Z_ACQUIT, Z_REPORTED, decision_z, trimmed_interval

UTILISATION = 0.90
RULE = "mlcommons/storage Submission_guidelines.md asks 90 % of U-Net3D and ResNet50 (2026)"


def utilisation(_plan: Plan, found: Evidence) -> Check | None:
    """Share of its time that the emulated accelerator computed instead of waiting for data."""
    stopped = refused(("loader",), found)
    if stopped is not None:
        return stopped
    run = found.of(Loader)
    if run is None:
        return None
    ranks = range(len(run.compute))
    shares = [_utilisation(run, rank) for rank in ranks]
    worst = min(ranks, key=lambda rank: statistics.fmean(shares[rank]))
    # An interval of the log of the waiting share would break at no waiting at all; utilisations are fine.
    decisive = trimmed_interval(shares[worst], decision_z(comparisons=len(ranks)))
    reported = trimmed_interval(shares[worst], Z_REPORTED)
    acquitting = trimmed_interval(shares[worst], Z_ACQUIT)
    status = against_floor(acquitting.low, decisive.high, UTILISATION)
    queue = _loader_queue_share(run)
    if status is Verdict.FAIL and (queue or 0.0) > NOISY_QUEUE_SHARE:
        status = Verdict.INCONCLUSIVE
    batches = len(run.compute[0])
    seconds = [sum(run.compute[r]) + sum(run.stall[r]) for r in ranks]
    samples = sum(batches * run.batch_samples / s for s in seconds)
    nodes = {run.nodes[rank] for rank in ranks if statistics.fmean(shares[rank]) < UTILISATION}
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
        culprits=tuple(_loader_culprits(run, nodes, shares, found)) if status is Verdict.FAIL else (),
        message=f"rank {worst} computes {decisive.estimate:.1%} of its time (at least {UTILISATION:.0%}), "
        f"all ranks load {samples:.0f} samples/s with {run.workers} workers each",
        next_action=_loader_action(status, run, worst),
    )


def _utilisation(run: Loader, rank: int) -> list[float]:
    """Utilisation per block of batches: single batches come in bursts of as many as there are workers."""
    compute, stall = run.compute[rank], run.stall[rank]
    length = slowness.block_length(len(compute))
    starts = range(0, len(compute) - length + 1, length)
    parts = [(sum(compute[s : s + length]), sum(stall[s : s + length])) for s in starts]
    return [busy / (busy + waiting) for busy, waiting in parts]


def _loader_queue_share(run: Loader) -> float | None:
    if run.stall_queue is None:
        return None
    rows = zip(run.stall_queue, run.compute, run.stall, strict=True)
    return max(sum(waits) / (sum(busy) + sum(idle)) for waits, busy, idle in rows)


def _reads_dominate(run: Loader, rank: int) -> bool:
    """Whether the workers spent most of the run inside reads; otherwise their own work is too slow."""
    wall = sum(run.compute[rank]) + sum(run.stall[rank])
    return run.read_seconds[rank] > 0.5 * run.workers * wall


def _loader_culprits(
    run: Loader, nodes: set[int], shares: Sequence[Sequence[float]], found: Evidence
) -> list[Culprit]:
    if nodes == set(run.nodes):
        return [_loader_culprit(run, None, range(len(shares)), shares, None)]
    return [
        _loader_culprit(
            run,
            node,
            [rank for rank in range(len(shares)) if run.nodes[rank] == node],
            shares,
            host_name(node, found),
        )
        for node in sorted(nodes)
    ]


def _loader_culprit(
    run: Loader, node: int | None, ranks: Sequence[int], shares: Sequence[Sequence[float]], host: str | None
) -> Culprit:
    """The storage where its reads fill the workers' time; otherwise the node's (or all nodes') processors."""
    worst = min(ranks, key=lambda rank: statistics.fmean(shares[rank]))
    wall = sum(run.compute[worst]) + sum(run.stall[worst])
    reading = _reads_dominate(run, worst)
    if reading:
        kind, name = "storage", run.name if node is None else f"{run.name}@{node}"
    else:
        kind, name = ("stack", "loader") if node is None else ("node", str(node))
    spent = f"{run.read_seconds[worst]:.1f} s inside reads during {wall:.1f} s"
    return Culprit(
        kind=kind,
        id=name,
        node=host,
        score=statistics.fmean(shares[worst]),
        cause=Cause.SLOW_STORAGE if reading else Cause.SLOW_COMPUTE,
        evidence=(f"rank {worst}'s {run.workers} workers spent {spent}",),
    )


def _loader_action(status: Verdict, run: Loader, worst: int) -> str | None:
    if status is Verdict.PASS:
        return None
    if status is Verdict.INCONCLUSIVE:
        return RUN_AGAIN
    if _reads_dominate(run, worst):
        return f"Raise the read throughput of {run.name} ({run.path}), or cache the data on the nodes."
    return "Give the loader more worker processes and CPUs."
