"""Judging sweeps and contents of collectives."""

import random
from functools import partial
from typing import Any

import pytest

from smoke_training.evidence import UndeliveredError, parse
from smoke_training.evidence.fabric import Collective
from smoke_training.expected.reference import RunSetting, setting_of
from smoke_training.formulae.bandwidth import COLLECTIVES
from smoke_training.formulae.bounds import ClusterShape
from smoke_training.judges.network import collectives, payload
from smoke_training.model import Check, Verdict
from tests.smoke_training.samples import lines, parsed, payloads, plan, sweeps

GIB = 1 << 30
LAB: dict[str, Any] = {
    "nodes": 2, "gpus_per_node": 0, "instance_type": "namespace", "fabric": "tcp",
    "rails": ["eth0"], "rail_gbit_s": 0.5,
}  # fmt: skip
WIRE = 0.0625  # GB/s


def times(rate_gb_s: float, size: int, count: int = 25, sigma: float = 0.01, seed: int = 3) -> list[float]:
    """Seconds of an all-reduce over two ranks (factor 1) at a bus bandwidth."""
    dice = random.Random(seed)
    return [size / rate_gb_s / 1e9 * dice.lognormvariate(0, sigma) for _ in range(count)]


def world(backend: str = "gloo", nodes: int = 2, per_node: int = 1) -> dict[str, Any]:
    found = lines()[0]
    ranks = [
        {**found["ranks"][0], "rank": rank, "node": rank // per_node, "backend": backend}
        for rank in range(nodes * per_node)
    ]
    return {**found, "wanted": len(ranks), "ranks": ranks}


def sweep(name: str = "all_reduce", **changes: Any) -> dict[str, Any]:
    return {
        "kind": "collective", "name": name, "sizes": [1024, 4 << 20], "queue_share": 0.01, "steal_share": 0.0,
        "seconds": [[1e-3] * 15, times(0.94 * WIRE, 4 << 20)], **changes,
    }  # fmt: skip


def judged(line: dict[str, Any], cluster: dict[str, Any] | None = None, **changes: Any) -> Check:
    found = collectives.bandwidth(
        "all_reduce", plan(**{**LAB, **changes}), parsed([cluster or world(), line])
    )
    assert found is not None
    return found


def test_a_wire_that_is_filled_passes() -> None:
    found = judged(sweep())
    assert (found.status, found.required) == (Verdict.PASS, True)
    assert found.expected is not None
    assert found.expected.kind == "declared"


def test_half_a_wire_fails_and_accuses_no_node_by_itself() -> None:
    found = judged(sweep(seconds=[[1e-3] * 15, times(0.47 * WIRE, 4 << 20)]))
    assert found.status is Verdict.FAIL
    assert found.culprits == ()
    assert found.zone == pytest.approx((0.6 * WIRE, 0.81 * WIRE))
    assert ">= 0.051, declared" in found.message
    assert found.next_action


@pytest.mark.parametrize("noise", [{"queue_share": 0.8}, {"steal_share": 0.3}])
def test_a_starved_machine_proves_no_fault_and_does_not_gate(noise: dict[str, Any]) -> None:
    found = judged(sweep(seconds=[[1e-3] * 15, times(0.47 * WIRE, 4 << 20)], **noise))
    assert (found.status, found.required) == (Verdict.INCONCLUSIVE, False)
    assert "waited for CPUs" in found.message


def test_a_starved_machine_that_fills_its_wire_passes() -> None:
    assert judged(sweep(queue_share=0.9)).status is Verdict.PASS


def test_between_a_fault_and_a_pass_nothing_is_decided() -> None:
    found = judged(sweep(seconds=[[1e-3] * 15, times(0.7 * WIRE, 4 << 20)]))
    assert (found.status, found.required) == (Verdict.INCONCLUSIVE, True)


def test_one_fast_sample_in_five_is_no_fault_yet() -> None:
    slow = times(0.47 * WIRE, 4 << 20)
    mixed = [fast if index % 5 == 0 else seconds for index, (seconds, fast) in enumerate(zip(
        slow, times(0.94 * WIRE, 4 << 20), strict=True))]  # fmt: skip
    found = judged(sweep(seconds=[[1e-3] * 15, mixed]))
    assert (found.status, found.required) == (Verdict.INCONCLUSIVE, True)


def test_many_samples_do_not_make_a_fault_of_a_wire_that_is_fast_now_and_then() -> None:
    slow, fast = times(0.47 * WIRE, 4 << 20, 60), times(0.94 * WIRE, 4 << 20, 60)
    one_in_seven = [fast[i] if i % 7 == 0 else slow[i] for i in range(60)]
    one_in_thirty = [fast[i] if i % 30 == 0 else slow[i] for i in range(60)]
    assert judged(sweep(seconds=[[1e-3] * 15, one_in_seven])).status is Verdict.INCONCLUSIVE
    assert judged(sweep(seconds=[[1e-3] * 15, one_in_thirty])).status is Verdict.FAIL


def test_too_few_samples_decide_nothing() -> None:
    few = [[1e-3] * 9, times(0.47 * WIRE, 4 << 20, 9)]
    assert judged(sweep(seconds=few)).status is Verdict.INCONCLUSIVE
    assert judged(sweep(seconds=[[1e-3] * 9, times(2 * WIRE, 4 << 20, 9)])).status is Verdict.INCONCLUSIVE


def test_a_slow_start_is_not_held_against_the_wire() -> None:
    warm = times(0.94 * WIRE, 4 << 20)
    found = judged(sweep(seconds=[[1e-3] * 15, [1.0, 0.5, *warm[2:]]]))
    assert found.status is Verdict.PASS
    assert found.measured is not None
    row = found.measured.detail["sweep"][1]  # type: ignore[index]
    assert (row["warm_up"], row["n"]) == (2, 23)


def test_bytes_that_outrun_the_declared_wire_did_not_cross_it() -> None:
    found = judged(sweep(seconds=[[1e-3] * 15, times(4 * WIRE, 4 << 20)]))
    assert found.status is Verdict.INCONCLUSIVE
    assert "declared wire's bound" in found.message
    assert "declared rate" in str(found.next_action)


def test_more_samples_are_asked_for_only_while_they_can_decide() -> None:
    def asked(**changes: Any) -> int | None:
        line = sweep(**changes)
        record = parsed([line]).of(Collective)
        assert record is not None
        return collectives.open_size(plan(**LAB), setting_of([0, 1], "gloo"), record)

    torn = times(0.81 * WIRE, 4 << 20, sigma=0.1)
    assert asked() is None
    assert asked(seconds=[[1e-3] * 15, times(0.47 * WIRE, 4 << 20)]) is None
    assert asked(seconds=[[1e-3] * 15, torn]) == 4 << 20
    assert asked(seconds=[[1e-3] * 15, torn], queue_share=0.9) is None


def test_the_detail_has_bound_wire_rate_and_fit() -> None:
    found = judged(sweep())
    assert found.measured is not None
    detail: Any = found.measured.detail
    assert detail["bounds"][0] == {
        "algorithm": "ring", "busbw_gb_s": WIRE, "limit": "the network", "complete": True,
    }  # fmt: skip
    row = detail["sweep"][1]
    assert row["wire_gb_s_per_rank"]["ring"] == pytest.approx(row["busbw_gb_s"])
    assert row["algbw_gb_s"] == pytest.approx(row["busbw_gb_s"])
    assert detail["slope_gb_s"] == pytest.approx(0.94 * WIRE, rel=0.05)
    assert detail["robust_slope_gb_s"] == pytest.approx(detail["slope_gb_s"], rel=0.05)
    assert detail["half_size_bytes"] > 0


def nccl(rate: float, size: int = GIB, **changes: Any) -> Check:
    """Two p4d nodes (factor 2 * 15/16) at a bus bandwidth."""
    seconds = [t * 2 * 15 / 16 for t in times(rate, size)]
    line = sweep(sizes=[1024, size], seconds=[[1e-4] * 15, seconds], **changes)
    settings = {"gpus_per_node": 8, "instance_type": "p4d.24xlarge", "fabric": "efa"}
    return judged(line, world("nccl", 2, 8), **settings)


def test_a_published_figure_passes_and_fails_on_accelerators() -> None:
    assert nccl(75.0).status is Verdict.PASS
    slow = nccl(45.0)
    assert (slow.status, slow.culprits) == (Verdict.FAIL, ())
    between = nccl(60.0)
    assert (between.status, between.required) == (Verdict.INCONCLUSIVE, True)
    assert between.zone == pytest.approx((2 / 3 * 75.34, 0.9 * 75.34))
    assert "accepted run" in str(between.next_action)


def test_a_proven_fault_in_means_of_another_program_accuses_the_fabric_and_has_its_own_action() -> None:
    p5 = plan(instance_type="p5.48xlarge", fabric="efa", gpus_per_node=8)
    setting = RunSetting(ranks=16, shape=ClusterShape(2, 8), backend="nccl")

    def found(rate: float) -> Check:
        seconds = 2 * 15 / 16 * 8 * GIB / rate / 1e9
        return collectives.of_means(p5, setting, "all_reduce", 8 * GIB, [seconds, seconds])

    slow, doubt = found(200.0), found(400.0)
    assert (slow.status, doubt.status) == (Verdict.FAIL, Verdict.INCONCLUSIVE)
    assert ([item.id for item in slow.culprits], doubt.culprits) == (["fabric"], ())
    assert slow.next_action != doubt.next_action


def test_a_busy_host_excuses_no_accelerator() -> None:
    assert nccl(45.0, queue_share=0.8).status is Verdict.FAIL
    assert nccl(45.0, steal_share=0.3).status is Verdict.FAIL


def test_the_figure_of_a_known_fault_names_it() -> None:
    rail = nccl(20.2)
    assert rail.status is Verdict.FAIL
    assert (rail.culprits[0].cause, rail.culprits[0].id) == ("dead_rail", "fabric")
    assert "EFA devices" in rail.message
    fallback = nccl(4.1).culprits[0]
    assert (fallback.kind, fallback.id, fallback.cause) == ("stack", "transport", "tcp_fallback")


def test_a_size_without_a_figure_is_reported_as_one() -> None:
    found = nccl(3.0, size=64 << 20)
    assert (found.status, found.required) == (Verdict.INCONCLUSIVE, True)
    assert "no_reference" in found.message
    assert "trusted" in found.message


def test_an_accelerator_that_nothing_bounds_is_no_pass_and_asks_for_no_more_samples() -> None:
    seconds = [t * 2 * 15 / 16 for t in times(0.5, GIB)]
    line = sweep(sizes=[1024, GIB], seconds=[[1e-4] * 15, seconds])
    changes = {**LAB, "gpus_per_node": 8, "instance_type": "g5.48xlarge", "fabric": "efa"}
    cluster = world("nccl", 2, 8)
    found = judged(line, cluster, **changes)
    assert (found.status, found.required) == (Verdict.INCONCLUSIVE, True)
    assert "declare expected_busbw_gb_s" in str(found.next_action)
    record = parsed([line]).of(Collective)
    assert record is not None
    nodes = [rank["node"] for rank in cluster["ranks"]]
    assert collectives.open_size(plan(**changes), setting_of(nodes, "nccl"), record) is None
    gather = {**line, "name": "all_gather"}
    other = collectives.bandwidth("all_gather", plan(**changes), parsed([cluster, gather]))
    assert (other.status, other.required) == (Verdict.INCONCLUSIVE, False)


def test_gloo_without_a_declared_wire_is_only_reported() -> None:
    found = judged(sweep(), rails=[], rail_gbit_s=None)
    assert (found.status, found.required) == (Verdict.SKIPPED, False)
    assert "no_reference" in found.message


def test_a_provisional_figure_fails_only_far_below() -> None:
    def six(rate: float) -> Check:
        seconds = [t * 2 * 47 / 48 for t in times(rate, 4 * GIB)]
        line = sweep(sizes=[1024, 4 * GIB], seconds=[[1e-4] * 15, seconds])
        changes = {"nodes": 6, "gpus_per_node": 8, "instance_type": "p5.48xlarge", "fabric": "efa"}
        return judged(line, world("nccl", 6, 8), **changes)

    assert six(300.0).status is Verdict.PASS
    half = six(230.0)
    assert (half.status, half.required) == (Verdict.INCONCLUSIVE, True)
    assert "provisional" in half.message
    assert "declare expected_busbw_gb_s" in str(half.next_action)
    assert six(180.0).status is Verdict.FAIL


def test_a_collective_that_the_backend_lacks_is_skipped_by_name() -> None:
    line = {
        "kind": "collective",
        "name": "reduce_scatter",
        "skipped": "gloo of torch 2.1 has no reduce_scatter",
    }
    found = collectives.bandwidth("reduce_scatter", plan(**LAB), parsed([world(), line]))
    assert found is not None
    assert (found.status, found.required) == (Verdict.SKIPPED, False)
    assert "has no reduce_scatter" in found.message


@pytest.mark.parametrize("name", COLLECTIVES)
def test_no_sweep_is_no_check(name: str) -> None:
    judge = partial(collectives.bandwidth, name)
    others = [line for line in sweeps() if line["name"] != name]
    with pytest.raises(UndeliveredError):
        judge(plan(**LAB), parsed([world(), *others]))
    assert judge(plan(**LAB), parsed([world(), *sweeps()])).measured is not None


def contents(*wrong: dict[str, Any], name: str = "all_reduce", ranks: int = 3, **changes: Any) -> Check:
    items = [{**line, "wrong": list(wrong)} if line["name"] == name else line for line in payloads()]
    found = payload.payload(plan(**LAB), parsed([world(nodes=ranks), *items]))
    assert found is not None
    return found


def wrong(rank: int, accused: list[int], chunks: list[int], size: int = 1024) -> dict[str, Any]:
    return {"rank": rank, "size": size, "elements": 2, "accused": accused, "chunks": chunks}


def test_right_contents_pass_and_count_what_was_compared() -> None:
    found = contents()
    words = "0 of 4000 exact elements in messages of up to 1024 bytes are wrong"
    assert (found.status, found.message) == (Verdict.PASS, words)


def test_a_corrupting_rank_is_accused_with_sizes_and_chunk() -> None:
    found = contents(*(wrong(rank, [1], [2], size) for rank in range(3) for size in (1024, 4096)))
    assert found.status is Verdict.FAIL
    (culprit,) = found.culprits
    assert (culprit.kind, culprit.id, culprit.cause, culprit.node) == (
        "rank",
        "1",
        "corruption",
        "smoke-ab-0",
    )
    assert "4096 bytes, chunk 2" in culprit.evidence[0]
    assert found.message.startswith("12 of 4000")
    assert "all_reduce of 1024" in found.message


def test_sums_that_fit_several_ranks_accuse_none_and_name_them() -> None:
    found = contents(wrong(0, [0, 2], [1]), wrong(1, [0, 2], [1]))
    assert (found.status, found.culprits) == (Verdict.FAIL, ())
    assert "ranks 0, 2" in found.message


def test_two_senders_of_wrong_parts_are_both_accused() -> None:
    found = contents(wrong(0, [1, 2], [1, 2]), wrong(1, [2], [2]), name="all_gather")
    assert [culprit.id for culprit in found.culprits] == ["1", "2"]


def test_the_only_receiver_of_errors_is_accused_without_a_common_sender() -> None:
    found = contents(wrong(2, [0, 1], [0, 1]), name="all_gather")
    assert [culprit.id for culprit in found.culprits] == ["2"]
    assert [culprit.id for culprit in contents(wrong(1, [], [0])).culprits] == ["1"]
    assert contents(wrong(2, [0, 1], [2]), name="reduce_scatter").culprits == ()


def test_missing_contents_are_an_error_and_skipped_ones_are_named() -> None:
    some = [line for line in payloads() if line["name"] != "all_to_all"]
    found = payload.payload(plan(**LAB), parsed([world(), *some]))
    assert found is not None
    assert found.status is Verdict.ERROR
    assert "for all_to_all" in found.message
    without = {"kind": "payload", "name": "all_to_all", "skipped": "gloo has none"}
    skipped = payload.payload(plan(**LAB), parsed([world(), *some, without]))
    assert skipped is not None
    assert skipped.status is Verdict.PASS
    assert "gloo has none" in skipped.message
    with pytest.raises(UndeliveredError):
        payload.payload(plan(**LAB), parse([]))
