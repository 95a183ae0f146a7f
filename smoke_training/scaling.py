"""From per-iteration seconds to scaling efficiency and straggler scores (pure).

Time a rank spends runnable but waiting for a CPU that something else holds is the host's noise, not the
rank's speed: where the kernel reports it, it is taken out of a rank's own compute and shown as noise. It is
kept in when the cgroup was throttled meanwhile, because a quota would hide in the same counter.
"""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from smoke_training import straggler
from smoke_training.estimators import Z_DECISION, Z_REPORTED, Interval, trimmed_interval
from smoke_training.evidence import Training
from smoke_training.formulae import scaling_efficiency
from smoke_training.straggler import BLOCK, StragglerFinding

# One-sided 1 % that a run below the minimum passes; a false FAIL (Z_DECISION) must be far rarer.
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


def corrected(training: Training) -> bool:
    """Whether run-queue waiting may be taken out of this sample."""
    return training.compute_queue is not None and not training.throttled_periods


def own_compute(training: Training) -> list[list[float]]:
    """[rank][iteration] seconds of compute, without waiting for CPUs held by others where that is known."""
    if training.compute_queue is None or not corrected(training):
        return [list(row) for row in training.compute]
    return [
        [_remaining(wall, queue) for wall, queue in zip(walls, queues, strict=True)]
        for walls, queues in zip(training.compute, training.compute_queue, strict=True)
    ]


def straggler_finding(training: Training, max_slowdown: float) -> StragglerFinding:
    """The straggler rule on the ranks' own compute time."""
    return straggler.judge(own_compute(training), max_slowdown)


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
    decisive, reported = trimmed_interval(logs, Z_DECISION), trimmed_interval(logs, Z_REPORTED)
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
    """Classic weak scaling T(1) / T(N): medians, rank 0 alone over the gang's step."""
    return statistics.median(training.alone) / statistics.median(_slowest(training.step))


def queue_share(training: Training) -> float | None:
    """Largest share of any rank's compute wall time spent waiting for a CPU held by something else."""
    if training.compute_queue is None:
        return None
    pairs = zip(training.compute, training.compute_queue, strict=True)
    return max(math.fsum(queue) / math.fsum(wall) for wall, queue in pairs)


def _communication(training: Training) -> list[float]:
    """Per block: gang time without over gang time with the gradient all-reduce."""
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


def _remaining(wall: float, waited: float) -> float:
    """Wall minus waiting, never below a hundredth of the wall: two clocks are read one after the other."""
    return max(wall - waited, wall / 100)


def _exp(logs: Interval) -> Interval:
    high = math.inf if logs.high > 700 else math.exp(logs.high)
    return Interval(math.exp(logs.estimate), math.exp(logs.low), high, logs.n)
