"""Machines of custom jobs: prices against bills that were seen, quotas by metric, what notebooks may be."""

import pytest

from infra.catalog.gcp import facts
from infra.catalog.gcp.jobs import jobs, machine_problems, notebook_problems, quota_metric
from infra.catalog.gcp.prices import node_price

REGION = "us-central1"
# Accelerators as the API writes them. Source: Vertex AI API v1, AcceleratorType.
ACCELERATORS = {
    "NVIDIA_L4",
    "NVIDIA_TESLA_A100",
    "NVIDIA_A100_80GB",
    "NVIDIA_H100_80GB",
    "NVIDIA_H100_MEGA_80GB",
    "NVIDIA_H200_141GB",
    "NVIDIA_B200",
}


def test_every_machine_has_the_hardware_of_compute_engine_and_an_accelerator_of_the_api() -> None:
    for name, machine in jobs.machines.items():
        known = facts.machine_types.get(name)
        assert machine.gpus == (known.count if known else 0)
        assert (machine.accelerator in ACCELERATORS) == (known is not None), name


def test_an_hour_of_eight_h100_costs_what_a_bill_had() -> None:
    # $90.128 of GPUs, $6.099 of processors and $4.780 of memory, on a bill of 2025-08-16 without local SSDs.
    price = jobs.price("a3-highgpu-8g", REGION)
    assert price is not None and price.usd == pytest.approx(101.007, rel=0.01)


def test_spot_costs_its_own_price_and_the_fee_of_the_on_demand_one() -> None:
    spot, listed = (node_price("g2-standard-8", REGION, market) for market in ("spot", "on_demand"))
    price = jobs.price("g2-standard-8", REGION, "spot")
    assert spot and listed and price
    assert price.usd == pytest.approx(spot.expected + 0.15 * listed.expected)


def test_a_job_on_a_reservation_adds_the_fee_alone() -> None:
    listed = node_price("g2-standard-8", REGION, "on_demand")
    price = jobs.price("g2-standard-8", REGION, "reserved")
    assert listed and price and price.usd == pytest.approx(0.15 * listed.expected)


@pytest.mark.parametrize(
    ("machine", "region"), [("a3-ultragpu-8g", "europe-west3"), ("g2-standard-8", "mars")]
)
def test_a_price_that_no_source_gives_is_unknown(machine: str, region: str) -> None:
    assert jobs.price(machine, region) is None


def test_the_price_that_ages_first_is_the_one_to_renew() -> None:
    price = jobs.price("g2-standard-8", REGION)
    assert price is not None and price.renew.good_for_days < jobs.fee.good_for_days


@pytest.mark.parametrize(
    ("machine", "spot", "metric"),
    [
        ("g2-standard-8", False, "custom_model_training_nvidia_l4_gpus"),
        ("g2-standard-8", True, "custom_model_training_preemptible_nvidia_l4_gpus"),
        ("a2-ultragpu-1g", False, "custom_model_training_nvidia_a100_80gb_gpus"),
    ],
)
def test_quotas_are_those_of_custom_training(machine: str, spot: bool, metric: str) -> None:
    assert quota_metric(jobs.machines[machine], spot=spot) == f"aiplatform.googleapis.com/{metric}"


def test_a_quota_that_no_source_names_is_unknown() -> None:
    assert quota_metric(jobs.machines["a4-highgpu-8g"], spot=False) is None


def test_a_misspelt_machine_is_refused_with_what_is_near() -> None:
    (problem,) = machine_problems("layout.machines[0].machine", "g2-standrd-8", REGION)
    assert "g2-standard-8" in problem.fix


def test_a_machine_that_the_region_lacks_is_refused_with_where_it_is() -> None:
    (problem,) = machine_problems("m", "a4-highgpu-8g", "europe-west3")
    assert "europe-west3" in problem.rule and "us-central1" in problem.fix


@pytest.mark.parametrize(("minutes", "refused"), [(9, True), (10, False), (1440, False), (1441, True)])
def test_a_notebook_goes_off_after_a_time_that_the_service_takes(minutes: int, refused: bool) -> None:
    assert bool([*notebook_problems("m", "e2-standard-2", "idle", minutes)]) == refused


def test_gpus_belong_to_jobs() -> None:
    (problem,) = notebook_problems("m", "g2-standard-4", "idle", 60)
    assert "end by themselves" in problem.rule
