"""Answers of Prometheus in its own form (prometheus/docs, querying/api.md, ranges), with DCGM's labels."""

from collections.abc import Sequence
from typing import Any

# Labels of one series of dcgm-exporter 4.5.3 with `honorLabels: true` (NVIDIA/dcgm-exporter, README).
_LABELS = {
    "__name__": "DCGM_FI_PROF_GR_ENGINE_ACTIVE",
    "container": "main",
    "device": "nvidia0",
    "gpu": "0",
    "modelName": "NVIDIA A100-SXM4-40GB",
    "pci_bus_id": "00000000:10:1C.0",
}


def series(
    pod: str,
    values: Sequence[float],
    *,
    end: float,
    namespace: str = "team-vision",
    gpu: int = 0,
    **more: str,
) -> dict[str, Any]:
    """One GPU's figures, a minute apart, the last one at `end`."""
    first = end - 60 * (len(values) - 1)
    own = {"namespace": namespace, "pod": pod, "gpu": str(gpu), "UUID": f"GPU-{namespace}-{pod}-{gpu}"}
    points = [[first + 60 * index, f"{value:g}"] for index, value in enumerate(values)]
    return {"metric": {**_LABELS, **own, **more}, "values": points}


def answer(*found: dict[str, Any]) -> dict[str, Any]:
    """A whole answer."""
    return {"status": "success", "data": {"resultType": "matrix", "result": list(found)}}
