"""Successive halving: many settings for a few steps, the better half for twice as many, and so on (pure).

Jamieson and Talwalkar, "Non-stochastic Best Arm Identification and Hyperparameter Optimization",
arXiv:1502.07943.
"""

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

Settings = dict[str, float]


@dataclass(frozen=True)
class Rung:
    """One round: this many trials, each trained up to this many steps in all."""

    trials: int
    steps: int


def rungs(trials: int, steps: int, factor: int = 2) -> list[Rung]:
    """The rounds; `steps` is what the last one trains up to. ValueError for less than one trial or step."""
    if trials < 1 or steps < 1:
        raise ValueError(f"got {trials} trials of {steps} steps; must be at least 1 each")
    count = int(math.log(trials, factor) + 1e-9) + 1
    return [
        Rung(trials=max(1, trials // factor**at), steps=max(1, steps // factor ** (count - 1 - at)))
        for at in range(count)
    ]


def drawn(trial: int, seed: int) -> Settings:
    """Settings of a trial, from the seed and its number alone: learning rate log-uniform, rank and scale."""
    dice = random.Random(seed * 1_000_003 + trial)  # noqa: S311 - settings, not secrets
    rank = dice.choice((2, 4, 8, 16))
    return {"lr": 10 ** dice.uniform(-4, -1.5), "rank": rank, "alpha": float(rank * dice.choice((1, 2, 4)))}


def survivors(losses: Mapping[int, float], count: int) -> Sequence[int]:
    """The best trials of a round, the best first; one without a finite loss is the worst."""
    return sorted(losses, key=lambda trial: (not math.isfinite(losses[trial]), losses[trial], trial))[:count]
