"""What pools take of a project's quotas, by how they are bought."""

import pytest

from infra.catalog.gcp import facts
from infra.catalog.gcp.quotas import demands, exceeded, gpu_quota, request


def taken(machine: str, bought: str, nodes: int) -> dict[str, float]:
    return {one.key: one.amount for one in demands("pool", machine, bought, nodes)}


@pytest.mark.parametrize(
    ("accelerator", "bought", "quota_id"),
    [
        ("nvidia-l4", "on_demand", "NVIDIA-L4-GPUS-per-project-region"),
        ("nvidia-l4", "spot", "PREEMPTIBLE-NVIDIA-L4-GPUS-per-project-region"),
        ("nvidia-h100-mega-80gb", "flex_start", "PREEMPTIBLE-NVIDIA-H100-MEGA-GPUS-per-project-region"),
        ("nvidia-h100-mega-80gb", "queued", "PREEMPTIBLE-NVIDIA-H100-MEGA-GPUS-per-project-region"),
        ("nvidia-h200-141gb", "on_demand", "GPUS-PER-GPU-FAMILY-per-project-region"),
        ("nvidia-h200-141gb", "reserved", None),
        ("nvidia-gb200", "on_demand", None),  # no source names one
    ],
)
def test_flex_start_counts_as_spot_and_a_reservation_not_at_all(
    accelerator: str, bought: str, quota_id: str | None
) -> None:
    row = gpu_quota(accelerator, bought)
    assert (row.quota_id if row else None) == quota_id


def test_a_pool_takes_processors_and_gpus() -> None:
    assert taken("a2-highgpu-8g", "spot", 4) == {
        "cpus_all_regions": 384,
        "gpus_all_regions": 32,
        "a2_cpus": 384,
        "preemptible_a100": 32,
    }
    assert taken("n2-standard-16", "on_demand", 2) == {"cpus_all_regions": 32}
    assert (
        taken("a3-megagpu-8g", "reserved", 8)
        == taken("a2-highgpu-8g", "spot", 0)
        == taken("x", "spot", 3)
        == {}
    )


def test_all_shortfalls_are_told_the_worst_first() -> None:
    wanted = [*demands("train", "a3-highgpu-8g", "on_demand", 2), *demands("l4", "g2-standard-8", "spot", 8)]
    found = exceeded(wanted, {"gpus_all_regions": 16, "h100": 1, "preemptible_l4": 64})
    assert [(one.quota.key, one.limit, one.wanted) for one in found] == [
        ("h100", 1, 16),
        ("gpus_all_regions", 16, 24),
    ]
    assert str(found[0]) == "H100 GPUs: 16 GPU wanted, 1 allowed (train)"
    assert exceeded(wanted, {}) == []


def test_gpus_that_share_an_id_are_told_apart() -> None:
    keys = [(row.quota_id, row.gpu_family) for row in facts.quotas.values()]
    assert len(set(keys)) == len(keys)
    assert {row.accelerator for row in facts.quotas.values()} - {None} <= set(facts.accelerators)


def test_a_request_is_a_command_to_paste() -> None:
    assert request("h100_mega", 15.5, "research-1", "us-central1") == (
        "gcloud alpha quotas preferences create --service=compute.googleapis.com --project=research-1 "
        "--quota-id=GPUS-PER-GPU-FAMILY-per-project-region --preferred-value=16 "
        "--dimensions=region=us-central1,gpu_family=NVIDIA_H100_MEGA"
    )
    assert request("gpus_all_regions", 8, "research-1", "us-central1").endswith("--preferred-value=8")
