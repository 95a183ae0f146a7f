import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smoke_training.fabric import Fabric
from smoke_training.phases import FULL, PHASES, QUICK
from smoke_training.plan import CHECKPOINT_EVERY, RESUME_STEPS, for_device, kill_schedule, parse, render
from smoke_training.reader import DocumentError
from tests.smoke_training.samples import document, plan


def test_a_plan_reads_back_what_it_renders() -> None:
    busbw = {"value": 77.4, "nodes": 2, "size_bytes": 2**31, "source": "nccl-tests", "kind": "published"}
    found = plan(expected_busbw_gb_s=busbw, git_sha="abc")
    assert parse(render(found)) == found


def test_all_problems_are_reported_at_once() -> None:
    bad = document(nodes=0, min_scaling_efficiency=1.5, accept=["FAIL"], hourly_cost_usd="cheap", timeoutt=3)
    del bad["owner"]
    bad["expected_busbw_gb_s"] = {"value": -1, "nodes": 2}
    with pytest.raises(DocumentError) as caught:
        parse(json.dumps(bad))
    paths = sorted(problem.split(":")[0] for problem in caught.value.problems)
    assert paths == sorted([
        "nodes", "min_scaling_efficiency", "accept", "hourly_cost_usd", "timeoutt", "owner",
        "expected_busbw_gb_s.value", "expected_busbw_gb_s.size_bytes", "expected_busbw_gb_s.source",
        "expected_busbw_gb_s.kind",
    ])  # fmt: skip
    assert "mean timeout_s?" in str(caught.value)
    assert any('hourly_cost_usd: got "cheap"' in one for one in caught.value.problems)


@pytest.mark.parametrize("text", ["", "[1]", "{", "null"])
def test_what_is_no_plan_is_refused(text: str) -> None:
    with pytest.raises(DocumentError):
        parse(text)


@pytest.mark.parametrize(
    "change",
    [{"nodes": True}, {"timeout_s": float("nan")}, {"max_straggler_slowdown": 1.05}, {"schema": "x"}],
)
def test_near_misses_are_refused(change: dict[str, Any]) -> None:
    with pytest.raises(DocumentError):
        plan(**change)


@pytest.mark.parametrize(
    ("written", "fabric"),
    [
        ("tcpxo", Fabric.TCPXO),
        ("gpudirect-tcpxo", Fabric.TCPXO),
        ("roce", Fabric.RDMA),
        ("loopback", Fabric.TCP),
    ],
)
def test_a_fabric_has_one_name_and_older_plans_are_still_read(written: str, fabric: Fabric) -> None:
    assert plan(fabric=written).fabric is fabric


def test_an_unknown_fabric_is_refused_with_those_that_exist() -> None:
    with pytest.raises(DocumentError, match=r'fabric: got "myrinet".* rdma, infini'):
        plan(fabric="myrinet")


def test_the_seed_is_derived_from_the_plan_unless_given() -> None:
    assert plan(seed=7).seed == 7
    assert plan().seed == plan().seed != plan(stack="other").seed


@given(st.integers(0, 2**32), st.integers(1, 64))
def test_the_kill_comes_after_the_first_checkpoint_and_before_the_last(seed: int, world: int) -> None:
    found = kill_schedule(seed, world)
    assert 0 <= found.victim < world
    assert CHECKPOINT_EVERY < found.step < RESUME_STEPS - CHECKPOINT_EVERY + 1


def test_an_unknown_price_stays_unknown() -> None:
    assert plan(hourly_cost_usd=None).cost_usd(60) is None
    assert plan(hourly_cost_usd=36.0).cost_usd(100) == pytest.approx(1.0)


def test_in_place_of_accelerators_cpus_run_no_deeper_than_quick() -> None:
    full = plan(depth=FULL)
    assert for_device(full, {"SMOKE_DEVICE": "cpu"}).depth == QUICK
    assert for_device(full, {}) == full
    own = plan(depth=FULL, gpus_per_node=0)  # a run that is about CPUs
    assert for_device(own, {"SMOKE_DEVICE": "cpu"}) == own


def test_a_full_run_fits_into_four_minutes() -> None:
    assert sum(phase.seconds(FULL) for phase in PHASES) < 240


def test_a_burn_has_its_own_phases_and_its_time_fits_into_the_limit() -> None:
    found = plan(depth="burn", burn_s=900, timeout_s=1200, join_timeout_s=180)
    assert found.chosen_phases == ("world", "fitness", "burn")
    assert found.seconds("burn") == 900
    assert "burn" not in plan(depth="full").chosen_phases + plan().chosen_phases
    short = {"depth": "burn", "burn_s": 900, "timeout_s": 1199, "join_timeout_s": 180}  # a node joins late
    for changes in ({"depth": "burn"}, {"burn_s": 60}, short):
        with pytest.raises(DocumentError):
            plan(**changes)
