"""A checkpoint policy that cannot hold is refused, with the arithmetic."""

from typing import Any

import pytest

from tests.infra.stackspec.stack_files import Values, problems

PATH = "data.checkpoints"
LUSTRE = {"capacity_gib": 4800, "throughput_mb_s_per_tib": 125, "zone": "us-east-1b"}
BROKEN: dict[str, tuple[dict[str, Any], str, str]] = {
    "nothing kept": ({"keep_last": 0}, "keep_last", "1"),
    "the next comes after the last is gone": (
        {"interval_minutes": 2880, "expire_days": 1},
        "interval_minutes",
        "deletes a checkpoint after 1440 minutes",
    ),
    "kept longer than the bucket keeps": (
        {"interval_minutes": 1440, "expire_days": 7, "keep_last": 30},
        "keep_last",
        "30 x 1440 minutes are 30.0 days, and the bucket deletes after 7",
    ),
    "milestones beyond the end": (
        {"keep_every_hours": 200, "expire_days": 7},
        "keep_every_hours",
        "deletes after 168 hours",
    ),
    "too early for the class": (
        {"cool_after_days": 30, "expire_days": 90},
        "cool_after_days",
        "STANDARD_IA takes no object before day 31",
    ),
    "billed longer than it is there": (
        {"cool_after_days": 31, "expire_days": 60},
        "cool_after_days",
        "31 + 30 = day 61, and the bucket deletes after 60",
    ),
    "cold before cool": (
        {"cool_after_days": 60, "cold_after_days": 50, "expire_days": 365},
        "cold_after_days",
        "60 + 30 days in STANDARD_IA end on day 90",
    ),
    "cold for too short": (
        {"cold_after_days": 30, "expire_days": 119},
        "cold_after_days",
        "30 + 90 = day 120, and the bucket deletes after 119",
    ),
    "moved what is deleted": (
        {"in_bucket": "kept", "cool_after_days": 40, "expire_days": 365},
        "cool_after_days",
        "deletes its checkpoints long before",
    ),
    "no size of a model": ({"model_params_b": 0}, "model_params_b", "greater than 0"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_what_cannot_hold_is_refused_with_the_arithmetic(values: Values, case: str) -> None:
    policy, key, words = BROKEN[case]
    values["spec"]["data"]["checkpoints"] = policy
    (problem,) = [one for one in problems(values) if one.path == f"{PATH}.{key}"]
    assert words in str(problem)
    assert problem.fix


def test_a_file_system_too_small_for_what_is_kept_is_refused(values: Values) -> None:
    values["spec"]["data"] = {"shared_fs": LUSTRE, "checkpoints": {"model_params_b": 70}}
    (problem,) = problems(values)
    assert problem.path == f"{PATH}.keep_last" and problem.against == "data.shared_fs.capacity_gib"
    # 31 x 420 GB against 4800 GiB.
    assert "13,020 GB" in problem.rule and "5,154 GB" in problem.rule
    assert "Set 11 or less" in problem.fix


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
