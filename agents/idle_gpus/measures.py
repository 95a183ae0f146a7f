"""Activity of the GPUs of pods in a window (pure); standard library only."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from agents.shared.dcgm import SHARES, STEP_S, PodKey, points

QUERIES = tuple(f"max_over_time({metric}[2m]){scale}" for metric, scale in SHARES)


@dataclass(frozen=True)
class Activity:
    """Activity of the GPUs of one pod in a window."""

    gpus: int
    """GPUs with any figure."""
    coverage: float
    """Share of the window's minutes with a figure, of the GPU with the fewest figures."""
    busiest: float
    """Largest share of a minute in which any of them worked, 0 to 1."""


def activities(answers: Iterable[Mapping[str, Any]], begin: float, end: float) -> dict[PodKey, Activity]:
    """The activity of each pod, from responses to `QUERIES` over a range of `STEP_S`."""
    minutes = int((end - begin) // STEP_S) + 1
    found: dict[PodKey, Activity] = {}
    for (pod, _), of_gpu in points(answers).items():
        if of_gpu:
            before = found.get(pod, Activity(gpus=0, coverage=1.0, busiest=0.0))
            found[pod] = Activity(
                gpus=before.gpus + 1,
                coverage=min(before.coverage, len(of_gpu) / minutes),
                busiest=max(before.busiest, *of_gpu.values()),
            )
    return found
