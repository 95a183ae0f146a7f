"""Optimal interval between checkpoints and its cost (pure). Times in seconds.

J. W. Young, "A first order approximation to the optimum checkpoint interval", CACM 17(9), 1974; J. T. Daly,
"A higher order estimate of the optimum checkpoint interval for restart dumps", FGCS 22(3), 2006, equation 37.
"""

import math
from dataclasses import dataclass

LLAMA3_GPUS = 16_384
LLAMA3_DAYS = 54
LLAMA3_UNEXPECTED = 419
LLAMA3_SOURCE = (
    "419 unexpected interruptions of 16384 H100 in 54 days: The Llama 3 Herd of Models, arXiv 2407.21783, "
    "section 3.3.4 (2024-07)"
)
PRIOR_GPU_HOURS = LLAMA3_DAYS * 24 * LLAMA3_GPUS / LLAMA3_UNEXPECTED  # 50.7 thousand per interruption

LLAMA3_8B_BYTES = 105e9
LLAMA3_8B_SOURCE = (
    "checkpoint of Llama 3 8B with optimizer, 105 GB: mlcommons/storage Submission_guidelines.md (2026)"
)


@dataclass(frozen=True, kw_only=True)
class CheckpointInterval:
    """An interval between checkpoints and the share of the machine's time that is lost with it."""

    young_s: float
    daly_s: float
    interval_s: float  # Daly's, but never shorter than one commit takes
    waste: float  # share of time, 0 .. 1: checkpoints, repeated work and restarts


def prior_mtbf_s(gpus: int) -> float:
    """Mean time between unexpected interruptions of a job on `gpus` GPUs, from the Llama 3 figures.

    Failures are taken as independent, so the time shrinks as 1/gpus. ValueError below one GPU.
    """
    if gpus < 1:
        raise ValueError(f"{gpus} GPUs: the prior is per GPU, so at least one is needed")
    return PRIOR_GPU_HOURS * 3600 / gpus


def young_interval_s(cost_s: float, mtbf_s: float) -> float:
    """Young: sqrt(2 C M)."""
    _positive(cost_s, mtbf_s)
    return math.sqrt(2 * cost_s * mtbf_s)


def daly_interval_s(cost_s: float, mtbf_s: float) -> float:
    """Daly: sqrt(2CM) (1 + sqrt(C/2M)/3 + C/(18M)) - C for C < 2M, else M."""
    _positive(cost_s, mtbf_s)
    if cost_s >= 2 * mtbf_s:
        return mtbf_s
    ratio = cost_s / (2 * mtbf_s)
    return math.sqrt(2 * cost_s * mtbf_s) * (1 + math.sqrt(ratio) / 3 + ratio / 9) - cost_s


def waste(interval_s: float, cost_s: float, mtbf_s: float, restart_s: float) -> float:
    """First-order share of lost time, at most 1: C/tau to write, tau/2M to repeat work, R/M to restart."""
    _positive(interval_s, cost_s, mtbf_s)
    if restart_s < 0:
        raise ValueError(f"a restart cannot take {restart_s} s")
    return min(1.0, cost_s / interval_s + interval_s / (2 * mtbf_s) + restart_s / mtbf_s)


def advise(*, stall_s: float, commit_s: float, mtbf_s: float, restart_s: float) -> CheckpointInterval:
    """The interval for checkpoints that stall training `stall_s` and are durable after `commit_s`.

    Only the stall costs training time, but a checkpoint cannot begin before the last one is durable. For
    synchronous checkpoints pass the commit time as the stall.
    """
    daly = daly_interval_s(stall_s, mtbf_s)
    interval = max(daly, commit_s, stall_s)
    return CheckpointInterval(
        young_s=young_interval_s(stall_s, mtbf_s),
        daly_s=daly,
        interval_s=interval,
        waste=waste(interval, stall_s, mtbf_s, restart_s),
    )


def _positive(*times: float) -> None:
    for value in times:
        if not (math.isfinite(value) and value > 0):
            raise ValueError(f"times must be positive and finite, got {value} s")
