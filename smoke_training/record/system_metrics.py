"""From the kernel's counters to MLflow's system metrics (pure).

Names and units are those of `mlflow.system_metrics.metrics` (MLflow 3.17): percentages, megabytes of 10^6
bytes, watts. With a node id they are logged as `system/<node id>/<name>`, as MLflow itself does.
"""

from collections.abc import Mapping, Sequence

from smoke_training.runtime.nvml import GpuReading

MEGA = 1e6


def node_id(node: int) -> str:
    """What a node is called in metric keys."""
    return f"node_{node}"


def metric_key(node: int, name: str) -> str:
    """The full key of one system metric."""
    return f"system/{node_id(node)}/{name}"


def memory(meminfo: str) -> dict[str, float]:
    """Memory in use (all that is not available) from `/proc/meminfo`; empty where it does not say."""
    fields = {key: value.split() for key, _, value in (line.partition(":") for line in meminfo.splitlines())}
    try:
        total, available = (int(fields[key][0]) * 1024 for key in ("MemTotal", "MemAvailable"))
    except (KeyError, IndexError, ValueError):
        return {}
    used = total - available
    return {
        "system_memory_usage_megabytes": used / MEGA,
        "system_memory_usage_percentage": 100.0 * used / total,
    }


def network_bytes(net_dev: str) -> tuple[int, int] | None:
    """(received, sent) bytes of all interfaces together, loopback too, from `/proc/net/dev`."""
    received = sent = 0
    seen = False
    for line in net_dev.splitlines():
        name, colon, counters = line.partition(":")
        parts = counters.split()
        if colon and name.strip() and len(parts) >= 16:
            received, sent, seen = received + int(parts[0]), sent + int(parts[8]), True
    return (received, sent) if seen else None


def network(first: tuple[int, int] | None, now: tuple[int, int] | None) -> dict[str, float]:
    """Traffic since the first reading; empty when a counter is missing or was reset."""
    if first is None or now is None or now[0] < first[0] or now[1] < first[1]:
        return {}
    return {
        "network_receive_megabytes": (now[0] - first[0]) / MEGA,
        "network_transmit_megabytes": (now[1] - first[1]) / MEGA,
    }


def disk(total: int, free: int, available: int) -> dict[str, float]:
    """Use of the root file system, from its sizes in bytes."""
    used = total - free
    return {
        "disk_usage_percentage": 100.0 * used / (used + available) if used + available else 0.0,
        "disk_usage_megabytes": used / MEGA,
        "disk_available_megabytes": available / MEGA,
    }


def gpus(readings: Sequence[GpuReading]) -> dict[str, float | None]:
    """All accelerators of a node by index."""
    found: dict[str, float | None] = {}
    for index, gpu in enumerate(readings):
        prefix = f"gpu_{index}"
        used, total = gpu.memory_used, gpu.memory_total
        found[f"{prefix}_memory_usage_megabytes"] = None if used is None else used / MEGA
        found[f"{prefix}_memory_usage_percentage"] = _percent(used, total)
        found[f"{prefix}_utilization_percentage"] = gpu.utilization
        found[f"{prefix}_power_usage_watts"] = gpu.power
        found[f"{prefix}_power_usage_percentage"] = _percent(gpu.power, gpu.power_limit)
    return found


def thinned(samples: Sequence[Mapping[str, float | None]], most: int) -> list[int]:
    """Indices of at most `most` samples, evenly spread, first and last kept."""
    count = len(samples)
    if count <= most:
        return list(range(count))
    return sorted({round(index * (count - 1) / (most - 1)) for index in range(most)})


def _percent(part: float | None, whole: float | None) -> float | None:
    return None if part is None or not whole else 100.0 * part / whole
