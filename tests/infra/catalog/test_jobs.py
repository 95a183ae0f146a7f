"""Machines of managed jobs, held against the service's own list and the hardware of EC2."""

import botocore.session
import pytest

from infra.catalog.aws import facts
from infra.catalog.aws.jobs import jobs, quota_name

MODEL = botocore.session.get_session().get_service_model("sagemaker")


def test_every_machine_is_one_of_the_service() -> None:
    training, apps = (MODEL.shape_for(name).enum for name in ("TrainingInstanceType", "AppInstanceType"))
    assert set(jobs.machines) <= set(training)
    assert {name for name, one in jobs.machines.items() if one.notebook} <= set(apps)


def test_no_machine_is_left_out_whose_hardware_is_known() -> None:
    known = {f"ml.{name}" for name in (*facts.instance_types, *facts.cpu_types)}
    assert set(jobs.machines) == known & set(MODEL.shape_for("TrainingInstanceType").enum)


@pytest.mark.parametrize(
    ("machine", "gpus", "nvme"),
    [("ml.g6.xlarge", 1, True), ("ml.g6.12xlarge", 4, True), ("ml.m5.large", 0, False)],
)
def test_hardware_is_that_of_ec2(machine: str, gpus: int, nvme: bool) -> None:
    found = jobs.machines[machine]
    assert (found.gpus, found.has_nvme) == (gpus, nvme)


def test_prices_are_of_machines_that_exist_and_above_those_of_ec2() -> None:
    for price in jobs.prices.values():
        assert price.machine in jobs.machines
        bare = facts.price(price.machine.removeprefix("ml."), price.region, "on_demand")
        if bare is not None:
            assert 1.0 < price.usd / bare.usd_per_hour_expected < 1.5, price.machine


def test_a_price_that_no_source_gives_is_unknown() -> None:
    assert jobs.price("ml.p5.48xlarge", "us-west-2") is None
    assert jobs.price("ml.g6.xlarge", "eu-west-1") is None


def test_spot_has_a_quota_of_its_own() -> None:
    assert quota_name("ml.g6.xlarge", "spot") == "ml.g6.xlarge for spot training job usage"
    assert quota_name("ml.g6.xlarge", "on_demand") == "ml.g6.xlarge for training job usage"
