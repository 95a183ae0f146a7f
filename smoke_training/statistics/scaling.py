"""Compute scaling efficiency and straggler scores from per-iteration seconds (pure).

Time in which a rank is runnable but waits for a CPU is the host's noise, not the rank's speed: where the
kernel reports it, it is subtracted from the rank's compute, without that of a CPU quota, and reported.
"""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from smoke_training.evidence.training import MachineWindow, Training
from smoke_training.statistics import changepoint
from smoke_training.statistics.estimators import Z_REPORTED, Ratio, Rows, blocks, decision_z, trimmed_interval
from smoke_training.statistics.noise import without_queue
from smoke_training.statistics.peers import block_medians, block_totals
from smoke_training.statistics.straggler import BLOCK, LOOKS

# One-sided 1 % that a run below the minimum passes; a false FAIL (`decision_z`) must be far rarer.
Z_PASS = 2.326


@dataclass(frozen=True, kw_only=True)
class Efficiency(Ratio):
    """T_nocomm(N) / T(N): `low` decides PASS, `high` decides FAIL; the factors are medians over blocks."""

    communication: float
    balance: float


def own_compute(training: Training) -> list[list[float]]:
    """Return [rank][iteration] seconds of compute, without waiting for CPUs where known.

    On accelerators nothing is subtracted: they compute while their host thread waits for a CPU.
    """
    if training.backend == "nccl":
        return [list(row) for row in training.compute]
    waited = [math.fsum(row) for row in training.compute_queue or ()]
    shares = [_foreign_share(*pair) for pair in zip(training.windows, waited, strict=False)]
    return without_queue(training.compute, training.compute_queue, shares=shares)


def _foreign_share(window: MachineWindow, waited: float) -> float:
    """Return the share of a rank's waiting that its own CPU quota did not cause."""
    if not window.throttled_periods:
        return 1.0
    if window.throttled_seconds is None or waited <= 0:
        return 0.0
    return max(0.0, 1 - window.throttled_seconds / waited)


@dataclass(frozen=True)
class Drift:
    """A lasting change of at least 10 % inside the run: of one rank against its peers, or of all (None)."""

    rank: int | None
    iteration: int
    ratio: float


def drifts(training: Training) -> list[Drift]:
    """Return changes of level inside the run, of the slowest step and of every rank's own compute."""
    slowest = [math.log(statistics.median(block)) for block in blocks(_slowest(training.step), BLOCK)]
    own = block_medians(own_compute(training), BLOCK)
    every: list[tuple[int | None, list[float]]] = [(None, slowest), *enumerate(own)]
    found = [(rank, changepoint.find(logs, series=len(every))) for rank, logs in every]
    return [Drift(rank, change.block * BLOCK, change.ratio) for rank, change in found if change is not None]


def slowdown_since(training: Training, rank: int, iteration: int) -> float:
    """Return a rank's slowdown against its peers from an iteration on: the median of its blocks."""
    logs = block_medians(own_compute(training), BLOCK)[rank]
    return math.exp(statistics.median(logs[iteration // BLOCK :]))


def cpu_slowdown(training: Training, rank: int) -> float | None:
    """Return the score on CPU time alone: 1.0 for a rank that is slow only because it is not running."""
    if any(value <= 0 for row in training.compute_cpu for value in row):
        return None
    logs = block_totals(training.compute_cpu, BLOCK)[rank]
    return math.exp(trimmed_interval(logs, Z_REPORTED).estimate)


def efficiency(training: Training) -> Efficiency:
    """Return the co-loaded efficiency T_nocomm(N) / T(N), block by block, as the product of two factors.

    Both times are taken while all N ranks compute. T(1)/T(N) would also include the effect of shared caches,
    memory bandwidth and turbo clocks on one machine, which is not a property of the fabric.

    Communication: the slowest rank's compute-only time over the slowest rank's step, by iteration, so that a
    busy neighbour does not read as a slow fabric. Balance: a typical rank's compute (low median: of two ranks
    the faster) over the slowest's.
    """
    communication = _per_block(_slowest(training.compute), _slowest(training.step))
    balance = _balance(training)
    return Efficiency.of(
        [math.log(c * b) for c, b in zip(communication, balance, strict=True)],
        Z_PASS,
        decision_z(looks=LOOKS),
        communication=statistics.median(communication),
        balance=statistics.median(balance),
    )


def weak_scaling(training: Training) -> float:
    """Return classic weak scaling T(1) / T(N): medians, rank 0 alone over the slowest rank's step."""
    return statistics.median(training.alone) / statistics.median(_slowest(training.step))


def _per_block(over: Sequence[float], under: Sequence[float]) -> list[float]:
    pairs = zip(blocks(over, BLOCK), blocks(under, BLOCK), strict=True)
    return [math.fsum(a) / math.fsum(b) for a, b in pairs]


def _balance(training: Training) -> list[float]:
    """Per block: a typical rank's own compute over the slowest rank's.

    The typical and the slowest rank are chosen once, by the straggler statistic over all blocks: choosing
    anew in every block would read the noise between equal ranks as lost efficiency.
    """
    own = own_compute(training)
    scores = [trimmed_interval(logs, Z_REPORTED).estimate for logs in block_totals(own, BLOCK)]
    order = sorted(range(len(own)), key=scores.__getitem__)
    return _per_block(own[order[(len(order) - 1) // 2]], own[order[-1]])


def _slowest(rows: Rows) -> list[float]:
    return [max(column) for column in zip(*rows, strict=True)]
