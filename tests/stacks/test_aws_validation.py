"""What a stack tells its validation is what the validation understands."""

import json
from typing import Any

import pytest

from infra import stackspec
from infra.catalog.aws import facts
from infra.stackspec.layouts import MediumLayout, PoolSpec
from smoke_training import plan as plans
from stacks.aws_validation import smoke_plan

PLACE: dict[str, Any] = {
    "schema": plans.SCHEMA,
    "nodes": 2,
    "gpus_per_node": 8,
    "timeout_s": 900,
    "image": "registry.example/pytorch@sha256:00",
    "code_sha256": "00",
}


@pytest.fixture(scope="module")
def dev() -> stackspec.StackSpec:
    return stackspec.load_file("dev-aws").spec


def _pool(dev: stackspec.StackSpec) -> PoolSpec:
    assert isinstance(dev.layout, MediumLayout)
    return dev.layout.pools[0]


def told(dev: stackspec.StackSpec, machine: str | None = None, **changes: Any) -> plans.Plan:
    pool = _pool(dev).model_copy(update={"machine": machine or _pool(dev).machine, **changes})
    return plans.parse(json.dumps({**smoke_plan(dev, pool), **PLACE}))


def test_the_shipped_environment_declares_wires_peak_and_storage(dev: stackspec.StackSpec) -> None:
    plan = told(dev)
    assert (plan.network_gbit_s, plan.rail_gbit_s, plan.rails) == (400.0, 100.0, ())
    assert plan.peak_tflops is not None
    assert (plan.peak_tflops.value, plan.peak_tflops.dtype) == (312.0, "bfloat16")
    (target,) = plan.storage
    assert (target.name, target.path, target.write_mb_s) == ("checkpoints", "$WORK_DIR", None)
    price = facts.price("p4d.24xlarge", "us-east-1", "on_demand")
    assert price is not None and plan.hourly_cost_usd == pytest.approx(2 * price.usd_per_hour_expected)
    assert 120 <= plan.join_timeout_s < plan.timeout_s


def test_rails_of_every_machine_with_efa_add_up_to_its_network(dev: stackspec.StackSpec) -> None:
    for machine in facts.instance_types.values():
        if machine.efa_interfaces:
            plan = told(dev, machine.name, rdma=True)
            assert plan.rail_gbit_s is not None
            assert plan.rail_gbit_s * machine.efa_interfaces == pytest.approx(plan.network_gbit_s)


def test_over_tcp_several_cards_are_not_one_wire(dev: stackspec.StackSpec) -> None:
    assert told(dev, rdma=False).network_gbit_s is None
    assert told(dev, "g6.2xlarge", rdma=False).network_gbit_s == pytest.approx(5.0)
    assert told(dev, rdma=False).rail_gbit_s is None


def test_a_stack_without_a_shared_file_system_names_none(dev: stackspec.StackSpec) -> None:
    bare = dev.model_copy(update={"data": dev.data.model_copy(update={"shared_fs": None})})
    assert told(bare).storage == ()


def test_a_peak_that_no_source_gives_is_left_out(dev: stackspec.StackSpec) -> None:
    unknown = [
        m
        for m in facts.instance_types.values()
        if facts.accelerators[m.accelerator].dense_bf16_tflops is None
    ]
    assert unknown, "some old accelerator has no bf16"
    assert told(dev, unknown[0].name, rdma=False).peak_tflops is None
