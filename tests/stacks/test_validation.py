"""The smoke plan of a stack is valid for its validation."""

from typing import Any

import pytest

from infra.catalog.aws import facts
from smoke_training import plan as plans
from tests.stacks.composition.composed import composed, stack_spec

PAIR = ("medium", "aws")


def plan_of(change: Any = None) -> plans.Plan:
    graph = composed(PAIR, change)
    return plans.parse(graph.find("ConfigMap", "smoke-a100-code")["data"]["plan.json"])


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


@pytest.mark.parametrize(("timeout_s", "join_s"), [(1140, 120), (1800, 780), (21600, 1200)])
def test_a_burn_has_its_whole_time_after_the_last_node_joins(timeout_s: int, join_s: int) -> None:
    plan = plan_of(lambda spec: spec["smoke"].update(depth="burn", burn="15m", timeout_s=timeout_s))
    assert (plan.burn_s, plan.timeout_s, plan.join_timeout_s) == (900, timeout_s, join_s)


def test_a_stack_without_a_shared_file_system_names_none() -> None:
    assert plan_of(without_shared_file_system).storage == ()


def larger(spec: Any) -> None:
    """The second pool has two nodes more than the teams are promised."""
    spec["layout"]["pools"][1]["max_nodes"] = 10


def every_pool(spec: Any) -> None:
    larger(spec)
    spec["smoke"]["pools"] = ["a100", "l4"]


def test_each_pool_has_a_run_of_its_own_and_nodes_for_it() -> None:
    graph = composed(PAIR, every_pool)
    reported = {run["pool"]: run for run in graph.outputs["smoke"]}
    assert list(reported) == ["a100", "l4"]
    plan = plans.parse(graph.find("ConfigMap", "smoke-l4-code")["data"]["plan.json"])
    assert (plan.instance_type, plan.gpus_per_node, plan.fabric) == ("g6.2xlarge", 1, "tcp")
    assert reported["l4"]["job"] != reported["a100"]["job"] == composed(PAIR).outputs["smoke"][0]["job"]
    queues = {name: graph.find("ClusterQueue", f"clusterqueue-smoke--{name}")["spec"] for name in reported}
    flavors = {name: spec["resourceGroups"][0]["flavors"] for name, spec in queues.items()}
    assert {name: [flavor["name"] for flavor in found] for name, found in flavors.items()} == {
        "a100": ["a100"],
        "l4": ["l4"],
    }
    gpus = {
        name: row["nominalQuota"]
        for name, (flavor,) in flavors.items()
        for row in flavor["resources"]
        if row["name"] == "nvidia.com/gpu"
    }
    assert gpus == {"a100": "16", "l4": "2"}
    assert reported["l4"]["schedule"] == "smoke-schedule-l4"


@pytest.mark.parametrize(
    ("purposes", "validated"),
    [
        (("training", "interactive"), ["a100"]),
        (("fine_tuning", "training"), ["a100", "l4"]),
        (("interactive", "fine_tuning"), ["l4"]),
    ],
)
def test_pools_that_people_train_on_are_validated(purposes: tuple[str, ...], validated: list[str]) -> None:
    def change(spec: Any) -> None:
        larger(spec)
        for pool, purpose in zip(spec["layout"]["pools"][:2], purposes, strict=True):
            pool["purpose"] = purpose

    assert list(stack_spec(PAIR, change).validated) == validated
