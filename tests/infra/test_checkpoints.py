"""Interval and price of checkpoints, from the spec."""

import datetime
from typing import Any

import pytest

from infra import cost, stackspec
from infra.catalog.aws import facts as aws
from infra.catalog.gcp import facts as gcp
from infra.checkpoints import checkpoints
from infra.stackspec import StackSpec
from infra.stackspec.layouts import ClusterLayout
from infra.stackspec.purchases import OnDemand, Spot
from smoke_training.formulae import youngdaly

TODAY = datetime.date(2026, 11, 25)
# R19: 140 GB of weights and 280 GB of optimizer.
LLAMA = {"model_params_b": 70.0, "weight_bytes": 2.0, "optimizer_bytes": 4.0}


@pytest.fixture(scope="module")
def stacks() -> dict[str, StackSpec]:
    return {name: stackspec.load_file(name).spec for name in ("dev-aws", "dev-gcp", "prod-gcp")}


def with_policy(spec: StackSpec, **policy: Any) -> StackSpec:
    changed = {"checkpoints": spec.data.checkpoints.model_copy(update=policy)}
    return spec.model_copy(update={"data": spec.data.model_copy(update=changed)})


def bought(spec: StackSpec, purchase: OnDemand | Spot) -> StackSpec:
    assert isinstance(spec.layout, ClusterLayout)
    pools = tuple(pool.model_copy(update={"purchase": purchase}) for pool in spec.layout.pools)
    return spec.model_copy(update={"layout": spec.layout.model_copy(update={"pools": pools})})


def items(spec: StackSpec) -> dict[str, cost.CostItem]:
    return {item.name: item for item in cost.estimate(spec, TODAY).items if "checkpoints" in item.name}


@pytest.mark.parametrize(
    ("stack", "usd_per_gb", "usd"), [("dev-gcp", 0.02, 252.0), ("dev-aws", 0.023, 289.8)]
)
def test_thirty_checkpoints_of_llama_70b_cost_about_250_dollars_a_month(
    stacks: dict[str, StackSpec], stack: str, usd_per_gb: float, usd: float
) -> None:
    spec = with_policy(stacks[stack], **LLAMA, keep_last=30, in_bucket="kept")
    found = checkpoints(spec)
    assert (found.size_gb, found.kept) == (420.0, 30)
    assert found.size_gb is not None and found.kept * found.size_gb == 12_600  # 12.6 TB
    item = items(spec)["checkpoints of one run (30 x 420 GB)"]
    price = (aws if spec.cloud == "aws" else gcp).service_price(
        "s3_standard" if spec.cloud == "aws" else "gcs_standard", spec.region
    )
    assert price is not None and price.usd == usd_per_gb
    assert item.minimum == 0.0 and item.expected == item.maximum == pytest.approx(usd)
    assert item.date == price.date


def test_what_a_run_deleted_is_paid_for_until_it_is_really_gone(stacks: dict[str, StackSpec]) -> None:
    spec = with_policy(stacks["dev-aws"], **LLAMA, in_bucket="kept", interval_minutes=60)
    item = items(spec)["deleted checkpoints, for 7 days (168 x 420 GB)"]
    assert item.maximum == pytest.approx(7 * 24 * 420 * 0.023)


def test_a_bucket_that_keeps_all_holds_whatever_is_written_until_it_expires(
    stacks: dict[str, StackSpec],
) -> None:
    spec = with_policy(stacks["dev-aws"], **LLAMA, interval_minutes=120)
    item = items(spec)["checkpoints of one run to day 30, STANDARD (360 x 420 GB)"]
    assert item.maximum == pytest.approx(30 * 12 * 420 * 0.023)
    assert item.expected is not None and item.maximum is not None and 0 < item.expected < item.maximum


def test_what_is_moved_costs_less_and_nothing_is_counted_twice(stacks: dict[str, StackSpec]) -> None:
    life = {"interval_minutes": 120, "expire_days": 300}
    whole = items(with_policy(stacks["dev-aws"], **LLAMA, **life))
    moved = items(with_policy(stacks["dev-aws"], **LLAMA, **life, cool_after_days=40, cold_after_days=100))
    days = [(40, 0.023), (60, 0.0125), (200, 0.004)]
    assert [item.maximum for item in moved.values()] == [
        pytest.approx(span * 12 * 420 * usd) for span, usd in days
    ]
    assert sum(item.maximum or 0 for item in moved.values()) < sum(
        item.maximum or 0 for item in whole.values()
    )


def test_a_class_without_a_price_is_unknown_and_never_free(stacks: dict[str, StackSpec]) -> None:
    spec = with_policy(stacks["dev-aws"], **LLAMA, expire_days=300, cool_after_days=40)
    elsewhere = spec.model_copy(update={"region": "eu-west-1"})
    cool = next(item for name, item in items(elsewhere).items() if "STANDARD_IA" in name)
    assert (cool.minimum, cool.expected, cool.maximum) == (None, None, None)


def test_without_a_model_there_is_no_price_and_the_preview_says_how_to_get_one(
    stacks: dict[str, StackSpec],
) -> None:
    assert items(stacks["dev-aws"]) == {}
    assert "set data.checkpoints.model_params_b" in checkpoints(stacks["dev-aws"]).line


def test_the_interval_is_the_optimum_of_young_and_daly(stacks: dict[str, StackSpec]) -> None:
    found = checkpoints(with_policy(stacks["dev-aws"], **LLAMA))
    # 420 GB at 4800 GiB x 125 MB/s per TiB; 32 GPUs; once a day the queue wants nodes back.
    write, mtbf = 420_000 / (4800 / 1024 * 125), 1 / (1 / youngdaly.prior_mtbf_s(32) + 1 / 86_400)
    assert found.write_s == pytest.approx(write)
    assert found.interval_s == pytest.approx(youngdaly.daly_interval_s(write, mtbf), abs=31)
    best = youngdaly.waste(found.interval_s, write, mtbf, 0)
    for other in (found.interval_s / 2, found.interval_s * 2):
        assert youngdaly.waste(other, write, mtbf, 0) > best


def test_larger_models_are_written_less_often_and_more_gpus_more_often(stacks: dict[str, StackSpec]) -> None:
    def interval(params: float) -> int:
        return checkpoints(with_policy(stacks["dev-aws"], **{**LLAMA, "model_params_b": params})).interval_s

    assert interval(7) < interval(70) < interval(405)
    assert youngdaly.prior_mtbf_s(64) < youngdaly.prior_mtbf_s(32)


def test_with_unknown_interruption_rate_the_default_holds(stacks: dict[str, StackSpec]) -> None:
    plain = stacks["dev-aws"]
    assert checkpoints(bought(plain, OnDemand(kind="on_demand"))).interval_s == 1800
    assert checkpoints(bought(plain, Spot(kind="spot"))).interval_s == 900


def test_but_writing_never_takes_more_than_a_tenth_of_the_time(stacks: dict[str, StackSpec]) -> None:
    found = checkpoints(with_policy(bought(stacks["dev-aws"], Spot(kind="spot")), **LLAMA))
    assert found.write_s is not None and found.interval_s >= 10 * found.write_s
    assert "a tenth" in found.why


def test_a_spec_that_names_an_interval_gets_it(stacks: dict[str, StackSpec]) -> None:
    found = checkpoints(with_policy(stacks["dev-aws"], **LLAMA, interval_minutes=17, keep_every_hours=24))
    assert (found.interval_s, found.why) == (17 * 60, "set in the spec")
    assert (found.milestones, found.kept) == (30, 60)


def test_a_run_keeps_no_more_than_it_writes(stacks: dict[str, StackSpec]) -> None:
    found = checkpoints(with_policy(stacks["dev-aws"], interval_minutes=1440, expire_days=3, keep_last=3))
    assert (found.written, found.kept) == (3, 3)
