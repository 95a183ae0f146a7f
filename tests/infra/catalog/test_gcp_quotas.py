"""Demand of pools for a project's quotas, by purchase."""

import pytest

from infra.catalog.demand import Demand
from infra.catalog.gcp import facts
from infra.catalog.gcp.quotas import cpu_key, demands, exceeded, gpu_key, request, vcpus


def taken(machine: str, bought: str, nodes: int) -> dict[str, float]:
    return {one.key: one.amount for one in demands("pool", machine, bought, nodes)}


@pytest.mark.parametrize(
    ("machine", "bought", "quota_id"),
    [
        ("g2-standard-8", "on_demand", "NVIDIA-L4-GPUS-per-project-region"),
        ("g2-standard-8", "spot", "PREEMPTIBLE-NVIDIA-L4-GPUS-per-project-region"),
        ("a3-megagpu-8g", "flex_start", "PREEMPTIBLE-NVIDIA-H100-MEGA-GPUS-per-project-region"),
        ("a3-megagpu-8g", "queued", "PREEMPTIBLE-NVIDIA-H100-MEGA-GPUS-per-project-region"),
        ("a3-ultragpu-8g", "on_demand", "GPUS-PER-GPU-FAMILY-per-project-region"),
        ("a3-ultragpu-8g", "reserved", None),
        ("a3-ultragpu-8g", "block", None),
        ("a4x-highgpu-4g", "on_demand", None),  # no source names one
    ],
)
def test_flex_start_counts_as_spot_and_a_reservation_not_at_all(
    machine: str, bought: str, quota_id: str | None
) -> None:
    found = {facts.quotas[key].quota_id for key in taken(machine, bought, 1) if key != "gpus_all_regions"}
    assert found == ({quota_id} if quota_id else set())


def test_a_pool_takes_processors_and_gpus() -> None:
    assert taken("a2-highgpu-8g", "spot", 4) == {
        "gpus_all_regions": 32,
        "a2_cpus": 384,
        "preemptible_a100": 32,
    }
    assert taken("n2-standard-16", "on_demand", 2) == {"cpus_all_regions": 32, "n2_cpus": 32}
    assert taken("n2-standard-16", "spot", 2) == {"cpus_all_regions": 32}
    for nothing in (("a3-megagpu-8g", "reserved", 8), ("a2-highgpu-8g", "spot", 0), ("x", "spot", 3)):
        assert taken(*nothing) == {}


@pytest.mark.parametrize(
    ("type", "key", "each"),
    [
        ("e2-standard-4", "cpus", 4),
        ("n2-highmem-32", "n2_cpus", 32),
        ("c9-standard-8", None, 8),  # only its name says so
        ("a3-megagpu-8g", None, 208),
        ("a2-highgpu-1g", "a2_cpus", 12),
        ("x9-metal", None, None),
    ],
)
def test_processors_of_a_machine_and_their_quota(type: str, key: str | None, each: int | None) -> None:
    assert (cpu_key(type), vcpus(type)) == (key, each)


def test_every_gpu_of_the_tables_has_a_quota_once() -> None:
    rows = [(row.accelerator, row.preemptible) for row in facts.quotas.values() if row.accelerator]
    assert len(rows) == len(set(rows))
    assert gpu_key("nvidia-b200", preemptible=True) == "preemptible_b200"
    assert gpu_key("nvidia-gb200", preemptible=False) is None


def test_all_shortfalls_are_reported_the_worst_first() -> None:
    wanted = [*demands("train", "a3-highgpu-8g", "on_demand", 2), *demands("l4", "g2-standard-8", "spot", 8)]
    found = exceeded(wanted, {"gpus_all_regions": 16, "h100": 1, "preemptible_l4": 64})
    assert [(one.quota.key, one.limit, one.wanted) for one in found] == [
        ("h100", 1, 16),
        ("gpus_all_regions", 16, 24),
    ]
    assert "H100 GPUs" in str(found[0]) and "(train)" in str(found[0])
    assert exceeded(wanted, {}) == []


def test_what_takes_a_quota_twice_is_named_once() -> None:
    (short,) = exceeded([Demand("networks", 1, "a"), Demand("networks", 2, "a")], {"networks": 2})
    assert short.names == ("a",) and short.wanted == 3


def test_gpus_that_share_an_id_are_reported_apart() -> None:
    keys = [(row.quota_id, row.gpu_family) for row in facts.quotas.values()]
    assert len(set(keys)) == len(keys)
    assert {row.accelerator for row in facts.quotas.values()} - {None} <= set(facts.accelerators)


def test_a_request_is_a_command_to_paste() -> None:
    assert request("h100_mega", 15.5, "research-1", "us-central1") == (
        "gcloud beta quotas preferences create --project=research-1 --service=compute.googleapis.com "
        "--quota-id=GPUS-PER-GPU-FAMILY-per-project-region --preferred-value=16 "
        "--dimensions=region=us-central1,gpu_family=NVIDIA_H100_MEGA"
    )
    assert request("gpus_all_regions", 8, "research-1", "us-central1").endswith("--preferred-value=8")
