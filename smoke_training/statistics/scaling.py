"""From per-iteration seconds to scaling efficiency and straggler scores (pure).

Time a rank spends runnable but waiting for a CPU that something else holds is the host's noise, not the
rank's speed: where the kernel reports it, it is taken out of a rank's own compute and shown as noise. A CPU
quota hides in the same counter: as much of the waiting as the quota caused stays in.
"""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from smoke_training.evidence.training import Training, Window
from smoke_training.formulae.efficiency import scaling_efficiency
from smoke_training.statistics import changepoint, straggler
from smoke_training.statistics.changepoint import Change
from smoke_training.statistics.estimators import (
    Z_REPORTED,
    Interval,
    bounded_exp,
    decision_z,
    trimmed_interval,
)
from smoke_training.statistics.noise import without_queue
from smoke_training.statistics.straggler import BLOCK, LOOKS, StragglerFinding

# One-sided 1 % that a run below the minimum passes; a false FAIL (`decision_z`) must be far rarer.
Z_PASS = 2.326

Rows = Sequence[Sequence[float]]


@dataclass(frozen=True)
class Efficiency:
    """T_nocomm(N) / T(N): `low` decides PASS, `high` decides FAIL, `ci95` is for readers; median factors."""

    value: float
    low: float
    high: float
    ci95: tuple[float, float]
    blocks: int
    communication: float
    balance: float


def own_compute(training: Training) -> list[list[float]]:
    """[rank][iteration] seconds of compute, without waiting for CPUs held by others where that is known."""
    if training.compute_queue is None:
        return [list(row) for row in training.compute]
    return [
        without_queue(walls, queues, share=_foreign_share(training.windows[rank], math.fsum(queues)))
        for rank, (walls, queues) in enumerate(zip(training.compute, training.compute_queue, strict=True))
    ]


def _foreign_share(window: Window, waited: float) -> float:
    """Share of a rank's waiting that its own CPU quota did not cause."""
    if not window.throttled_periods:
        return 1.0
    if window.throttled_seconds is None or waited <= 0:
        return 0.0
    return max(0.0, 1 - window.throttled_seconds / waited)


def straggler_finding(training: Training, max_slowdown: float) -> StragglerFinding:
    """The straggler rule on the ranks' own compute time."""
    return straggler.judge(own_compute(training), max_slowdown)


@dataclass(frozen=True)
class Drift:
    """A lasting change of at least 10 % inside the run: of one rank against its peers, or of all (None)."""

    rank: int | None
    iteration: int
    ratio: float


def drifts(training: Training) -> list[Drift]:
    """Changes of level inside the run, of the slowest step and of every rank's own compute."""
    own = own_compute(training)
    series = straggler.block_medians(own)
    slowest = _slowest(training.step)
    common = [
        math.log(statistics.median(slowest[i : i + BLOCK])) for i in range(0, len(slowest) - BLOCK + 1, BLOCK)
    ]
    every: list[tuple[int | None, list[float]]] = [(None, common), *enumerate(series)]
    found = [(rank, changepoint.find(blocks, series=len(every))) for rank, blocks in every]
    return [_drift(rank, change) for rank, change in found if change is not None]


def _drift(rank: int | None, change: Change) -> Drift:
    return Drift(rank, change.block * BLOCK, change.ratio)


def slowdown_since(training: Training, rank: int, iteration: int) -> float:
    """A rank's slowdown against its peers from an iteration on: the median of its blocks."""
    blocks = straggler.block_medians(own_compute(training))[rank]
    return math.exp(statistics.median(blocks[iteration // BLOCK :]))


def cpu_slowdown(training: Training, rank: int) -> float | None:
    """The same score on CPU time alone: 1.0 for a rank that is slow only because it is not running."""
    if any(value <= 0 for row in training.compute_cpu for value in row):
        return None
    blocks = straggler.block_totals(training.compute_cpu)[rank]
    return math.exp(trimmed_interval(blocks, Z_REPORTED).estimate)


def efficiency(training: Training) -> Efficiency:
    """Co-loaded scaling efficiency T_nocomm(N) / T(N), block by block, as the product of two factors.

    Communication: the slowest rank's compute-only time over the slowest rank's step, iteration by
    iteration; both carry whatever else the machines do, so a busy neighbour does not read as a slow fabric.
    Balance: a typical rank's compute over the slowest's (low median: of two ranks the faster), so that a
    slow rank shows as the efficiency it costs all others.
    """
    factors = [(c, b) for c, b in zip(_communication(training), _balance(training), strict=True)]
    logs = [math.log(communication * balance) for communication, balance in factors]
    decisive, reported = trimmed_interval(logs, decision_z(looks=LOOKS)), trimmed_interval(logs, Z_REPORTED)
    shown = _exp(reported)
    return Efficiency(
        value=shown.estimate,
        low=_exp(trimmed_interval(logs, Z_PASS)).low,
        high=_exp(decisive).high,
        ci95=(shown.low, shown.high),
        blocks=reported.n,
        communication=statistics.median(c for c, _ in factors),
        balance=statistics.median(b for _, b in factors),
    )


def weak_scaling(training: Training) -> float:
    """Classic weak scaling T(1) / T(N): medians, rank 0 alone over the slowest rank's step."""
    return statistics.median(training.alone) / statistics.median(_slowest(training.step))


def _communication(training: Training) -> list[float]:
    """Per block: the slowest rank's time without over its time with the gradient all-reduce."""
    without, having = _slowest(training.compute), _slowest(training.step)
    return [
        scaling_efficiency(math.fsum(without[i : i + BLOCK]), math.fsum(having[i : i + BLOCK]))
        for i in range(0, len(having) - BLOCK + 1, BLOCK)
    ]


def _balance(training: Training) -> list[float]:
    """Per block: a typical rank's own compute over the slowest rank's.

    Who is typical and who is slowest is settled once, by the straggler statistic over all blocks: choosing
    anew in every block would read the noise between equal ranks as lost efficiency.
    """
    own = own_compute(training)
    scores = [trimmed_interval(series, Z_REPORTED).estimate for series in straggler.block_totals(own)]
    order = sorted(range(len(own)), key=scores.__getitem__)
    typical, slowest = own[order[(len(order) - 1) // 2]], own[order[-1]]
    return [
        math.fsum(typical[start : start + BLOCK]) / math.fsum(slowest[start : start + BLOCK])
        for start in range(0, len(typical) - BLOCK + 1, BLOCK)
    ]


def _slowest(rows: Rows) -> list[float]:
    return [max(column) for column in zip(*rows, strict=True)]


def _exp(logs: Interval) -> Interval:
    return Interval(math.exp(logs.estimate), math.exp(logs.low), bounded_exp(logs.high), logs.n)
