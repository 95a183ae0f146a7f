"""What a stack states about itself is what its validation understands."""

from typing import Any

import pytest

from infra.catalog.aws import facts
from smoke_training import plan as plans
from tests.stacks.composition.composed import composed

PAIR = ("medium", "aws")


def plan_of(change: Any = None) -> plans.Plan:
    graph = composed(PAIR, change)
    return plans.parse(graph.find("ConfigMap", "smoke-code")["data"]["plan.json"])


def without_shared_file_system(spec: Any) -> None:
    spec["data"]["shared_fs"] = None


def over_tcp(spec: Any) -> None:
    spec["layout"]["pools"][0]["rdma"] = False


def test_the_shipped_environment_declares_links_peak_price_and_storage() -> None:
    plan = plan_of()
    assert plan.fabric == "efa"
    assert (plan.network_gbit_s, plan.rail_gbit_s, plan.rails) == (400.0, 100.0, ())
    assert plan.peak_tflops is not None
    assert (plan.peak_tflops.value, plan.peak_tflops.dtype) == (312.0, "bfloat16")
    (target,) = plan.storage
    assert (target.name, target.path, target.write_mb_s) == ("checkpoints", "$WORK_DIR", None)
    price = facts.price("p4d.24xlarge", "us-east-1", "on_demand")
    assert price is not None and plan.hourly_cost_usd == pytest.approx(2 * price.usd_per_hour_expected)
    assert 120 <= plan.join_timeout_s < plan.timeout_s


def test_over_tcp_no_rails_are_declared() -> None:
    plan = plan_of(over_tcp)
    assert (plan.fabric, plan.network_gbit_s, plan.rail_gbit_s) == ("tcp", None, None)


def test_a_stack_without_a_shared_file_system_names_none() -> None:
    assert plan_of(without_shared_file_system).storage == ()
