"""Checkpoint policies that cannot hold are refused."""

from typing import Any

import pytest

from tests.infra.stackspec.stack_files import Values, problems

PATH = "data.checkpoints"
LUSTRE = {"capacity_gib": 4800, "throughput_mb_s_per_tib": 125, "zone": "us-east-1b"}
BROKEN: dict[str, tuple[dict[str, Any], str, str]] = {
    "nothing kept": ({"keep_last": 0}, "keep_last", "greater-than-equal"),
    "the next comes after the last is gone": (
        {"interval_minutes": 2880, "expire_days": 1},
        "interval_minutes",
        "interval-exceeds-expiry",
    ),
    "kept longer than the bucket keeps": (
        {"interval_minutes": 1440, "expire_days": 7, "keep_last": 30},
        "keep_last",
        "kept-exceed-expiry",
    ),
    "milestones beyond the end": (
        {"keep_every_hours": 200, "expire_days": 7},
        "keep_every_hours",
        "milestones-exceed-expiry",
    ),
    "too early for the class": (
        {"cool_after_days": 30, "expire_days": 90},
        "cool_after_days",
        "storage-class-too-early",
    ),
    "billed longer than it is there": (
        {"cool_after_days": 31, "expire_days": 60},
        "cool_after_days",
        "storage-class-ends-early",
    ),
    "cold before cool": (
        {"cool_after_days": 60, "cold_after_days": 50, "expire_days": 365},
        "cold_after_days",
        "storage-class-overlap",
    ),
    "cold for too short": (
        {"cold_after_days": 30, "expire_days": 119},
        "cold_after_days",
        "storage-class-ends-early",
    ),
    "moved what is deleted": (
        {"in_bucket": "kept", "cool_after_days": 40, "expire_days": 365},
        "cool_after_days",
        "moved-before-deleted",
    ),
    "no size of a model": ({"model_params_b": 0}, "model_params_b", "greater-than"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_what_cannot_hold_is_refused(values: Values, case: str) -> None:
    policy, key, code = BROKEN[case]
    values["spec"]["data"]["checkpoints"] = policy
    (problem,) = [one for one in problems(values) if one.path == f"{PATH}.{key}"]
    assert problem.code == code and problem.fix


def test_a_file_system_too_small_for_what_is_kept_is_refused(values: Values) -> None:
    values["spec"]["data"] = {"shared_fs": LUSTRE, "checkpoints": {"model_params_b": 70}}
    (problem,) = problems(values)
    assert problem.path == f"{PATH}.keep_last" and problem.against == "data.shared_fs.capacity_gib"
    # 31 x 420 GB against 4800 GiB.
    assert "13,020 GB" in problem.rule and "5,154 GB" in problem.rule
    assert "Set 11" in problem.fix


def test_what_fits_is_taken(values: Values) -> None:
    from infra import stackspec

    policy = {"model_params_b": 70, "keep_last": 11, "interval_minutes": 60, "in_bucket": "kept"}
    values["spec"]["data"] = {"shared_fs": LUSTRE, "checkpoints": policy}
    loaded = stackspec.load("dev", values, "Pulumi.dev.yaml").spec.data.checkpoints
    assert (loaded.size_gb, loaded.keep_last) == (420.0, 11)
    moved = {"cool_after_days": 31, "cold_after_days": 61, "expire_days": 151}
    values["spec"]["data"] = {"shared_fs": None, "checkpoints": moved}
    assert stackspec.load("dev", values, "Pulumi.dev.yaml").spec.data.checkpoints.cold_after_days == 61


def test_managed_lustre_copies_no_deletions(gcp: Values) -> None:
    lustre = {"capacity_gib": 9000, "throughput_mb_s_per_tib": 1000, "zone": "us-central1-a"}
    gcp["spec"]["data"] = {"shared_fs": lustre, "checkpoints": {"in_bucket": "kept"}}
    (problem,) = problems(gcp)
    assert problem.path == f"{PATH}.in_bucket" and "Set all" in problem.fix
