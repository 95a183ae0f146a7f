"""Devices of GPU nodes, healthy and degraded, through the whole verdict: no healthy one may fail."""

from dataclasses import replace
from typing import Any

import pytest

from smoke_training.model import Judgement, Verdict
from tests.smoke_training.corpus.clusters import Cluster, judged, lines
from tests.smoke_training.judges.training import test_burn, test_gpus

H100, H200, B200 = "NVIDIA H100 80GB HBM3", "NVIDIA H200", "NVIDIA B200"
GB200, A100, L4 = "NVIDIA GB200", "NVIDIA A100-SXM4-80GB", "NVIDIA L4"
MIG = f"{A100} MIG 1g.10gb"
CARRIED = {"port/mlx5_0/1/port_xmit_data": 10**12}
USUAL = {**test_gpus.HEALTHY, "nvlinks": 18}


def verdict(
    device: str, tflops: list[float], changed: dict[str, int], spoiled: dict[str, Any], burnt: dict[str, Any]
) -> Judgement:
    """One node: a product on every GPU, counters over five minutes, a burn; `spoiled` is of the last GPU."""
    count = len(tflops)
    plain = Cluster(
        machine="hgx", fabric="infiniband", nodes=1, busbw={}, gpus=count, phases=("world", "gpus", "burn")
    )
    world = next(line for line in lines(plain) if line["kind"] == "world")
    states = [USUAL] * (count - 1) + [{**USUAL, **spoiled}]
    copies = {
        "memory": [2700.0 if device == H100 else 0.9 * tflops[0]] * count,
        "to_peer": [372.0 if device == H100 else None] * count,
    }
    extra = (
        {**world, "ranks": [{**rank, "device": device} for rank in world["ranks"]]},
        test_gpus.record(*tflops, states=states),
        test_burn.record(count, rates=[[0.96 * rate] * 60 for rate in tflops], copies=copies, **burnt),
        {"kind": "devices", "node": 0, "seconds": 300.0, "counted": 400, "changed": {**CARRIED, **changed}},
    )
    return judged(replace(plain, extra=extra))


def spread(tflops: float, count: int = 8) -> list[float]:
    """GPUs at their power limits: 681 to 718 TFLOPS on one H100 is 2.6 % around the middle."""
    return [tflops * (0.974 + 0.052 * (n % 8) / 7) for n in range(count)]


HEALTHY: dict[str, tuple[str, list[float], dict[str, int]]] = {
    "h100": (H100, spread(700.0), {}),
    "h100 on a fabric with adaptive routing": (H100, spread(700.0), {
        "port/mlx5_0/1/out_of_sequence": 900_000, "port/mlx5_0/1/packet_seq_err": 40}),
    "h100 with symbol errors that are corrected": (H100, spread(700.0), {"port/mlx5_0/1/symbol_error": 30}),
    "h100 with replays of a fast link": (H100, spread(700.0), {
        "gpu/0000:3b:00.0/pcie_replay": 300, "gpu/0000:3b:00.0/pcie_bits_s": 512 * 10**9}),
    "h100 at its power limit": (H100, spread(700.0), {"gpu/0000:3b:00.0/power_ns": 250 * 10**9}),
    "h100 with heat for a moment": (H100, spread(700.0), {"gpu/0000:3b:00.0/heat_ns": 10**7}),
    "h100 with a storage port that is not used": (H100, spread(700.0), {"port/mlx5_9/1/link_downed": 4}),
    "h200": (H200, spread(720.0), {}),
    "b200": (B200, spread(1500.0), {}),
    "gb200, 4 of a tray": (GB200, spread(1580.0, 4), {"kernel/0008:01:00/xid 145": 1}),
    "gb200, 72 in one node": (GB200, spread(1580.0, 72), {}),
    "a100": (A100, spread(240.0), {"gpu/0000:10:1c.0/corrected": 12, "port/efa_0/1/rx_drops": 3}),
    "l4, without any figure": (L4, spread(55.0, 4), {}),
    "slices of an a100": (MIG, spread(30.0, 7), {}),
    "an application that failed before": (H100, spread(700.0), {"kernel/0000:3b:00/xid 13": 1}),
}  # fmt: skip


@pytest.mark.parametrize("case", HEALTHY)
def test_no_check_fails_on_a_healthy_node(case: str) -> None:
    device, tflops, changed = HEALTHY[case]
    found = verdict(device, tflops, changed, {}, {})
    reasons = [check.message for check in found.checks if check.required and check.status is not Verdict.PASS]
    assert (found.verdict, reasons) == (Verdict.PASS, [])


def test_memory_that_replaces_a_row_in_the_run_is_neither_healthy_nor_faulty() -> None:
    found = verdict(H100, spread(700.0), {"gpu/0000:3b:00.0/remapped": 1}, {}, {})
    assert found.verdict is Verdict.INCONCLUSIVE
    (check,) = [check for check in found.checks if check.status is Verdict.INCONCLUSIVE]
    assert "remapped +1" in check.message


SLOW = [*spread(700.0, 7), 585.0]
DEGRADED: dict[str, tuple[str, list[float], dict[str, int], dict[str, Any], dict[str, Any]]] = {
    "h100, one slow": (H100, SLOW, {}, {}, {}),
    "h200, one slow": (H200, SLOW, {}, {}, {}),
    "b200, one slow": (B200, [*spread(1500.0, 7), 1260.0], {}, {}, {}),
    "gb200, one of 72 slow": (GB200, [*spread(1580.0, 71), 1320.0], {}, {}, {}),
    "l4, one slow": (L4, [*spread(55.0, 3), 45.0], {}, {}, {}),
    "a100, a lane lost": (A100, spread(240.0), {}, {"link": [4, 8]}, {}),
    "h100, an nvlink lost": (H100, spread(700.0), {}, {"nvlinks": 17}, {}),
    "h100, memory that lost data in the run": (H100, spread(700.0), {
        "gpu/0000:3b:00.0/uncorrected": 3, "gpu/0000:3b:00.0/remapped": 1}, {}, {}),
    "h100, memory worn out": (H100, spread(700.0), {}, {"remap_failed": True}, {}),
    "h100, a flapping port": (H100, spread(700.0), {"port/mlx5_0/1/link_downed": 1}, {}, {}),
    "h100, a bad cable": (H100, spread(700.0), {"port/mlx5_0/1/symbol_error": 90_000}, {}, {}),
    "h100, lost acknowledgements": (H100, spread(700.0), {
        "port/mlx5_0/1/local_ack_timeout_err": 2_000}, {}, {}),
    "h100, a bad riser": (H100, spread(700.0), {
        "gpu/0000:3b:00.0/pcie_replay": 4_000, "gpu/0000:3b:00.0/pcie_bits_s": 512 * 10**9}, {}, {}),
    "h100, off the bus": (H100, spread(700.0), {"kernel/0000:3b:00/xid 79": 1}, {}, {}),
    "gb200, a fatal switch error": (GB200, spread(1580.0, 4), {
        "kernel/0000:c1:00.0/sxid 12028 fatal": 1}, {}, {}),
    "b200, a dead nvlink": (B200, spread(1500.0), {"kernel/0000:87:00/xid 149 fatal": 1}, {}, {}),
    "a100, one wrong step in fifteen minutes": (A100, spread(240.0), {}, {}, {"wrong": [0] * 7 + [1]}),
}  # fmt: skip


@pytest.mark.parametrize("case", DEGRADED)
def test_a_degraded_node_fails_and_a_culprit_is_named(case: str) -> None:
    found = verdict(*DEGRADED[case])
    assert found.verdict is Verdict.FAIL
    failed = [check for check in found.checks if check.status is Verdict.FAIL]
    assert all(check.culprits and check.next_action for check in failed)
