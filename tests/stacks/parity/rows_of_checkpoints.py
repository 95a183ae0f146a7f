"""The part of the table about checkpoints, and about GPUs that do nothing between two of them."""

from typing import Any

from tests.stacks.parity.model import Honoured, Outcome, Refused

_AT = "data.checkpoints"
_LUSTRE = {"capacity_gib": 18000, "throughput_mb_s_per_tib": 500, "zone": "us-central1-b"}
_MODEL = {f"{_AT}.model_params_b": 7}
# On Google Cloud the small stack has spot nodes and no fast file system: its interval depends on no size.
_ALSO: dict[str, dict[str, Any]] = {
    "aws": {},
    "gcp": {"data.shared_fs": _LUSTRE, "layout.pools.0.purchase": {"kind": "on_demand"}},
}


def _size(key: str, value: float, seconds: tuple[int, int]) -> tuple[str, dict[str, Outcome]]:
    """Larger checkpoints have a longer interval, which the runs of teams get."""
    return f"{_AT}.{key}", {
        cloud: Honoured(
            f"{_AT}.{key}",
            value,
            rf'ConfigMap .*INTERVAL_S: "\d+" -> "{after}"',
            f"checkpoint {key}",
            {**({} if key == "model_params_b" else _MODEL), **_ALSO[cloud]},
        )
        for (cloud, after) in zip(("aws", "gcp"), seconds, strict=True)
    }


def _reported(key: str, value: int, seen: str) -> tuple[str, dict[str, Outcome]]:
    """What the runs of teams read in their variables, and what the bucket does."""
    longer = {f"{_AT}.expire_days": 400}
    return f"{_AT}.{key}", {
        cloud: Honoured(f"{_AT}.{key}", value, seen, "checkpoints", longer) for cloud in ("aws", "gcp")
    }


def _idle(key: str, value: Any, seen: str) -> tuple[str, dict[str, Outcome]]:
    at = f"layout.idle_gpus.{key}"
    return at, {
        cloud: Honoured(at, value, rf"Deployment idle-program .*{seen}", "idle") for cloud in ("aws", "gcp")
    }


def _kept(key: str, value: int, seen: str) -> tuple[str, dict[str, Outcome]]:
    """For how long the bucket keeps what was written, or deleted."""
    return f"data.{key}", {cloud: Honoured(f"data.{key}", value, seen, "data") for cloud in ("aws", "gcp")}


ROWS: tuple[tuple[str, dict[str, Outcome]], ...] = (
    _kept("checkpoints.expire_days", 41, r"(expiration.days|condition.age): 30.0 -> 41.0"),
    _kept("noncurrent_days", 21, r"(noncurrentDays|daysSinceNoncurrentTime): 7.0 -> 21.0"),
    _size("model_params_b", 10, (4080, 1080)),
    _size("weight_bytes", 4, (3960, 1020)),
    _size("optimizer_bytes", 12, (5220, 1380)),
    _reported("interval_minutes", 41, r'ConfigMap .*INTERVAL_S: "\d+" -> "2460"'),
    _reported("keep_last", 7, r'ConfigMap .*KEEP_LAST: "30" -> "7"'),
    _reported("keep_every_hours", 9, r'ConfigMap .*KEEP_EVERY_HOURS: nothing -> "9"'),
    _reported("cool_after_days", 45, r"-> .*(STANDARD_IA|NEARLINE)"),
    _reported("cold_after_days", 120, r"-> .*(GLACIER_IR|COLDLINE)"),
    (
        "layout.idle_gpus",
        {
            cloud: Honoured("layout.idle_gpus", None, "^- IdleGpus ", "no idle GPUs")
            for cloud in ("aws", "gcp")
        },
    ),
    _idle("minutes", 31, '"45" -> "31"'),
    _idle("grace_minutes", 29, '"15" -> "29"'),
    _idle("jobs", "stop", '"announce" -> "stop"'),
    (
        f"{_AT}.in_bucket",
        {
            "aws": Honoured(f"{_AT}.in_bucket", "kept", r"xportPolicy.*-> .*DELETED", "data"),
            "gcp": Refused(
                f"{_AT}.in_bucket", "kept", f"{_AT}.in_bucket", "Set all", {"data.shared_fs": _LUSTRE}
            ),
        },
    ),
)
