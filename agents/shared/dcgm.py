"""Utilization of the GPUs of pods, from the responses of Prometheus (pure); standard library only.

The names are those of NVIDIA's DCGM exporter (NVIDIA/dcgm-exporter d5e5f51 of 2026-05-12,
`etc/default-counters.csv`).
"""

import math
from collections.abc import Iterable, Mapping
from typing import Any

SHARES = (
    # Share of the time that any engine worked. Absent on GPUs that DCGM cannot profile.
    ('DCGM_FI_PROF_GR_ENGINE_ACTIVE{job="dcgm-exporter"}', ""),
    ('DCGM_FI_DEV_GPU_UTIL{job="dcgm-exporter"}', " / 100"),
)
"""Metrics of the share of time in which a GPU worked, each with the expression that scales it to 0 to 1.

By the job of the scrape of GPUs (`monitoring/scrapes.py`): no other exporter adds to it.
"""
STEP_S = 60
# Far above any share: DCGM writes such a value where a GPU has no such counter (9223372036854775794).
_NO_FIGURE = 1e6

PodKey = tuple[str, str]
"""Namespace and name of a pod."""
Points = dict[float, float]
"""Shares by time, seconds since 1970."""


def points(responses: Iterable[Mapping[str, Any]]) -> dict[tuple[PodKey, str], Points]:
    """The points of each GPU of each pod, from responses to queries of `SHARES` over one range.

    A GPU with several metrics counts once: with the largest value of each time.
    """
    found: dict[tuple[PodKey, str], Points] = {}
    for response in responses:
        for series in (response.get("data") or {}).get("result") or ():
            labels = series["metric"]
            pod = _pod(labels)
            if pod is None:
                continue
            gpu = f"{labels.get('UUID', labels.get('gpu', ''))}/{labels.get('GPU_I_ID', '')}"
            of_gpu = found.setdefault((pod, gpu), {})
            for at, text in series["values"]:
                value = float(text)
                if math.isfinite(value) and 0 <= value < _NO_FIGURE:
                    of_gpu[at] = max(value, of_gpu.get(at, 0.0))
    return found


def _pod(labels: Mapping[str, str]) -> PodKey | None:
    """The pod that holds the GPU. Without `honorLabels` the scrape's own labels replace the exporter's."""
    for prefix in ("exported_", ""):
        namespace, pod = labels.get(f"{prefix}namespace"), labels.get(f"{prefix}pod")
        if namespace and pod:
            return namespace, pod
    return None
