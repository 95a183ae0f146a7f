"""The estimate adds up from dated prices, and what has no price is named instead of counted as nothing."""

import datetime
from typing import Any

import pytest

from infra import cost, stackspec
from infra.catalog.aws import facts
from infra.catalog.aws.jobs import jobs
from infra.cost.aws.jobs import job_hour_usd
from infra.stackspec import StackSpec
from infra.stackspec.aws.cloud import AwsSpec, LoadBalancerSpec
from infra.stackspec.aws.purchases import TrainingPlan
from infra.stackspec.layouts import ClusterLayout, SmallLayout
from infra.stackspec.purchases import OnDemand, Reserved, Spot
from tests.stacks.stack_files import LOAD_BALANCER

TODAY = datetime.date(2026, 11, 21)


@pytest.fixture(scope="module")
def dev() -> StackSpec:
    return stackspec.load_file("dev-aws").spec


def changed(stack: StackSpec, **pool: Any) -> StackSpec:
    """The stack with its first pool changed, and no other pool."""
    layout = medium(stack)
    return with_layout(stack, pools=(layout.pools[0].model_copy(update=pool),))


def medium(stack: StackSpec) -> ClusterLayout:
    assert isinstance(stack.layout, ClusterLayout)
    return stack.layout


def with_layout(stack: StackSpec, **changes: Any) -> StackSpec:
    return stack.model_copy(update={"layout": stack.layout.model_copy(update=changes)})


@pytest.mark.parametrize(("name", "most"), [("small-eks-aws", 300), ("small-gke-gcp", 300), ("dev-gcp", 450)])
def test_a_stack_without_a_job_costs_what_is_always_there(name: str, most: float) -> None:
    idle = {item.name: item.minimum for item in cost.estimate(stackspec.load_file(name).spec, TODAY).items}
    assert [value for name, value in idle.items() if "GPU pool" in name] == [0, 0]
    assert 0 < sum(value or 0 for value in idle.values()) < most


def test_without_a_cluster_an_idle_stack_costs_its_way_out_and_its_keys() -> None:
    estimate = cost.estimate(stackspec.load_file("small-aws").spec, TODAY)
    standing = {item.name: item.minimum for item in estimate.known if item.minimum}
    assert standing == {
        "NAT gateways (1)": pytest.approx(0.045 * 730),
        "public addresses (1)": pytest.approx(0.005 * 730),
        "KMS keys (3)": 3,
    }
    assert estimate.minimum < 60


def test_jobs_cost_what_their_machines_do_while_they_run() -> None:
    found = items(stackspec.load_file("small-aws").spec)["jobs on l4 (ml.g6.xlarge, spot, at most)"]
    hours = 730 * 2  # two machines
    assert found.minimum == 0
    assert found.expected == pytest.approx(0.1 * hours * 1.127)
    assert found.maximum == pytest.approx(hours * 1.127)


def test_a_validation_on_a_planned_machine_adds_nothing() -> None:
    """A training plan is paid in advance, used or not."""
    stack = stackspec.load_file("small-aws").spec
    plan = TrainingPlan(kind="training_plan", arn="arn:aws:sagemaker:us-west-2:123456789012:training-plan/p")
    assert isinstance(stack.layout, SmallLayout)
    planned = [one.model_copy(update={"purchase": plan}) for one in stack.layout.machines]
    bought, reserved = (
        next(use for use in cost.estimate(one, TODAY).uses if use.name.startswith("validations"))
        for one in (stack, with_layout(stack, machines=planned))
    )
    assert bought.usd is not None and bought.usd > 1
    assert (reserved.name, reserved.usd) == (bought.name, 0.0)


def items(stack: StackSpec) -> dict[str, cost.CostItem]:
    return {item.name: item for item in cost.estimate(stack, TODAY).items}


def pool_item(stack: StackSpec) -> cost.CostItem:
    return next(item for name, item in items(stack).items() if name.startswith("GPU pool"))


def test_a_pool_costs_its_nodes_times_hours_times_price(dev: StackSpec) -> None:
    price = facts.price("p4d.24xlarge", "us-east-1", "on_demand")
    assert price is not None
    item = pool_item(changed(dev, min_nodes=1, max_nodes=4, expected_utilization=0.5))
    assert item.minimum == pytest.approx(730 * price.usd_per_hour_min)
    assert item.expected == pytest.approx(2 * 730 * price.usd_per_hour_expected)
    assert item.maximum == pytest.approx(4 * 730 * price.usd_per_hour_max)
    assert item.date == price.date


def test_reserved_capacity_is_paid_whether_it_runs_or_not(dev: StackSpec) -> None:
    reserved = changed(dev, purchase=Reserved(kind="reserved", id="cr-0123456789abcdef0"), min_nodes=0)
    item = pool_item(reserved)
    assert item.minimum == item.maximum and item.minimum
    assert items(reserved)["root disks of pool a100 (500 GiB)"].minimum == 0  # no node runs yet


def test_every_node_has_a_root_disk(dev: StackSpec) -> None:
    gp3 = facts.service_price("ebs_gp3", "us-east-1")
    assert gp3 is not None
    found = items(changed(dev, min_nodes=1, max_nodes=4, expected_utilization=0.5))
    pool = found["root disks of pool a100 (500 GiB)"]
    assert (pool.minimum, pool.expected, pool.maximum) == tuple(nodes * 500 * gp3.usd for nodes in (1, 2, 4))
    system = found["root disks of the system pool (50 GiB)"]
    assert (system.minimum, system.maximum) == (2 * 50 * gp3.usd, 6 * 50 * gp3.usd)


def test_spot_uses_spot_prices(dev: StackSpec) -> None:
    spot, on_demand = (
        pool_item(changed(dev, purchase=Spot(kind="spot"))),
        pool_item(changed(dev, purchase=OnDemand(kind="on_demand"))),
    )
    assert spot.expected and on_demand.expected and spot.expected < on_demand.expected


def test_an_unknown_price_is_listed_and_not_zero(dev: StackSpec) -> None:
    # The catalog has no on-demand price of p5e: it is sold in Capacity Blocks.
    estimate = cost.estimate(changed(dev, machine="p5e.48xlarge"), TODAY)
    assert "p5e.48xlarge" in estimate.not_priced[0].name
    assert estimate.maximum == pytest.approx(sum(item.maximum or 0 for item in estimate.known))


def test_what_costs_by_use_is_named_with_its_rate(dev: StackSpec) -> None:
    reported = {use.name: use for use in cost.estimate(dev, TODAY).not_priced}
    rates = {name: use.usd for name, use in reported.items() if use.usd is not None}
    assert rates == {
        "NAT traffic": 0.045,
        "endpoint traffic": 0.01,
        "logs": 0.5,
        "bucket contents": 0.023,
        "home directories": 0.3,
        "reads of home directories": 0.03,
        "writes of home directories": 0.06,
        "traffic of Lustre to other zones": 0.01,
        "database storage": 0.1,
    }
    assert all(use.assumed and use.assumed.units > 0 for use in reported.values() if use.usd is not None)
    assert "data transfer" in reported
    elsewhere = dev.model_copy(
        update={"region": "eu-west-1", "data": dev.data.model_copy(update={"homes": False})}
    )
    estimate = cost.estimate(elsewhere, TODAY)
    names = [use.name for use in estimate.not_priced]
    assert "home directories" not in names
    # No source gives what these cost there; what the sum has is only what is known.
    assert names[:4] == [
        "GPU pool l4 (g6.2xlarge, spot)",
        "CPU pool cpu (m6i.4xlarge, on_demand)",
        "system pool (m6i.xlarge)",
        "FSx for Lustre (4800 GiB, 125 MB/s per TiB)",
    ]
    assert 0 < estimate.minimum < estimate.maximum


def test_lustre_is_read_across_zones_by_the_nodes_that_are_elsewhere(dev: StackSpec) -> None:
    def crossing(stack: StackSpec) -> float:
        found = {use.name: use.assumed for use in cost.estimate(stack, TODAY).uses}
        assumed = found.get("traffic of Lustre to other zones")
        return assumed.units if assumed else 0.0

    lustre = dev.data.shared_fs
    assert lustre is not None
    half = changed(dev, zones=("us-east-1a", lustre.zone), expected_utilization=0.5, max_nodes=4, min_nodes=0)
    outside = changed(dev, zones=("us-east-1a",), expected_utilization=0.5, max_nodes=4, min_nodes=0)
    inside = changed(dev, zones=(lustre.zone,), expected_utilization=0.5, max_nodes=4, min_nodes=0)
    assert crossing(inside) == 0
    assert crossing(outside) == 2 * crossing(half) == 2 * 30 * 100 * 2


def test_a_job_pays_for_the_volume_of_a_machine_without_local_disks() -> None:
    stack = stackspec.load_file("small-aws").spec
    assert isinstance(stack.layout, SmallLayout)
    one = stack.layout.machines[0].model_copy(update={"purchase": OnDemand(kind="on_demand")})
    cpu, local = (one.model_copy(update={"machine": name}) for name in ("ml.m5.large", "ml.g5.2xlarge"))
    for machine, gb in ((cpu, 200), (local, 0)):
        price = jobs.price(machine.machine, "us-east-1")
        assert price is not None
        assert job_hour_usd(machine, "us-east-1") == pytest.approx(price.usd + 0.14 * gb / 730)
    elsewhere = with_layout(stack, machines=(cpu,))  # no source gives the price of volumes in us-west-2
    assert any(use.name.startswith("disks of jobs") for use in cost.estimate(elsewhere, TODAY).not_priced)


def test_a_load_balancer_is_paid_by_the_hour_and_by_what_it_carries(dev: StackSpec) -> None:
    assert isinstance(dev.on, AwsSpec)
    on = dev.on.model_copy(update={"load_balancer": LoadBalancerSpec.model_validate(LOAD_BALANCER)})
    estimate = cost.estimate(dev.model_copy(update={"on": on}), TODAY)
    (item,) = (item for item in estimate.items if item.name == "load balancer (MLflow)")
    assert item.minimum == item.maximum == pytest.approx(0.0225 * 730)
    assert "load balancer capacity" in {use.name for use in estimate.not_priced}


def test_a_kubernetes_version_in_extended_support_costs_more(dev: StackSpec) -> None:
    old = with_layout(dev, kubernetes_version="1.33")
    control_plane, current = items(old)["EKS control plane"], items(dev)["EKS control plane"]
    assert control_plane.expected and current.expected and control_plane.expected > 5 * current.expected


def test_the_totals_are_ordered(dev: StackSpec) -> None:
    estimate = cost.estimate(dev, TODAY)
    assert estimate.minimum < estimate.expected < estimate.maximum


def test_prices_that_are_older_than_their_sources_allow_are_named(dev: StackSpec) -> None:
    estimate = cost.estimate(dev, TODAY)
    assert estimate.old(datetime.date(1999, 1, 1)) == ()
    assert estimate.old(TODAY) == ()
    # A season later the crawl with the spot prices is old, ten years later everything is.
    spring = estimate.old(TODAY + datetime.timedelta(days=91))
    assert [item.name for item in spring] == ["GPU pool l4 (g6.2xlarge, spot)"]
    much_later = estimate.old(datetime.date(2036, 1, 1))
    assert set(much_later) == set(estimate.known)
    assert [item.date for item in much_later] == sorted(item.date for item in much_later if item.date)
