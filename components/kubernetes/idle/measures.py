"""What Prometheus says about the GPUs that pods hold (pure); standard library only.

The names are those of NVIDIA's DCGM exporter (NVIDIA/dcgm-exporter d5e5f51 of 2026-05-12,
`etc/default-counters.csv`).
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

QUERIES = (
    # Share of the time that any engine worked. Off on GPUs that DCGM cannot profile.
    "max_over_time(DCGM_FI_PROF_GR_ENGINE_ACTIVE[2m])",
    "max_over_time(DCGM_FI_DEV_GPU_UTIL[2m]) / 100",
)
STEP_S = 60
# Far above any share: what DCGM writes where a GPU has no such counter (9223372036854775794).
_NO_FIGURE = 1e6

PodKey = tuple[str, str]
"""Namespace and name of a pod."""


@dataclass(frozen=True)
class Activity:
    """What the GPUs of one pod did in a window."""

    gpus: int
    """GPUs of which there is any figure."""
    coverage: float
    """Share of the window's minutes with a figure, of the GPU with the fewest."""
    busiest: float
    """Largest share of a minute in which any of them worked, 0 to 1."""


def activities(answers: Iterable[Mapping[str, Any]], begin: float, end: float) -> dict[PodKey, Activity]:
    """The activity of each pod, from answers to `QUERIES` over a range of `STEP_S`.

    A GPU counts once, whatever metrics it has: its larger figure of a minute counts.
    """
    minutes = int((end - begin) // STEP_S) + 1
    gpus: dict[tuple[PodKey, str], dict[float, float]] = {}
    for answer in answers:
        for series in (answer.get("data") or {}).get("result") or ():
            labels = series["metric"]
            pod = _pod(labels)
            if pod is None:
                continue
            gpu = f"{labels.get('UUID', labels.get('gpu', ''))}/{labels.get('GPU_I_ID', '')}"
            points = gpus.setdefault((pod, gpu), {})
            for at, text in series["values"]:
                value = float(text)
                if math.isfinite(value) and 0 <= value < _NO_FIGURE:
                    points[at] = max(value, points.get(at, 0.0))
    found: dict[PodKey, Activity] = {}
    for (pod, _), points in gpus.items():
        if points:
            before = found.get(pod, Activity(gpus=0, coverage=1.0, busiest=0.0))
            found[pod] = Activity(
                gpus=before.gpus + 1,
                coverage=min(before.coverage, len(points) / minutes),
                busiest=max(before.busiest, *points.values()),
            )
    return found


def _pod(labels: Mapping[str, str]) -> PodKey | None:
    """Who holds the GPU. Without `honorLabels` the scrape's own labels take the place of the exporter's."""
    for prefix in ("exported_", ""):
        namespace, pod = labels.get(f"{prefix}namespace"), labels.get(f"{prefix}pod")
        if namespace and pod:
            return namespace, pod
    return None
