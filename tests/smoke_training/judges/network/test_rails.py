"""Rails that are dead or starved, judged from recorded series."""

import random
from collections.abc import Sequence
from typing import Any

import pytest

from smoke_training.judges.network import rails, wires
from smoke_training.model import Cause, Verdict
from tests.smoke_training.judges.network.wires import accused, judge, line, tournament


def end(node: int, nodes: int, silent: Sequence[int] = (), **changes: Any) -> dict[str, Any]:
    reached = {str(n): n not in silent and node not in silent for n in range(nodes) if n != node}
    return {
        "node": node, "exists": True, "up": True, "running": True, "carrier": 1, "operstate": "up",
        "speed_mbit_s": 1000, "carrier_changes": 2, "address": f"10.0.0.{node}", "reached": reached,
        "tx_bytes": 1 << 20, "rx_bytes": 1 << 20, **changes,
    }  # fmt: skip


def rail(name: str, ends: Sequence[dict[str, Any]], seconds: float | None = 0.05) -> dict[str, Any]:
    size = 4 << 20
    return {"name": name, "ends": list(ends), "size_bytes": size if seconds else None,
            "seconds": [seconds] * 6 if seconds else [],
            "error": None if seconds else "not every node answers every other"}  # fmt: skip


def both(second: dict[str, Any], nodes: int = 3) -> dict[str, Any]:
    first = rail("eth0", [end(node, nodes) for node in range(nodes)])
    return {"kind": "rails", "backend": "gloo", "rails": [first, second]}


RAILS = {"nodes": 3, "rails": ["eth0", "eth1"], "rail_gbit_s": 1.0}


def test_rails_that_answer_and_carry_pass() -> None:
    found = judge(rails.rails, both(rail("eth1", [end(node, 3) for node in range(3)])), **RAILS)
    assert found.status is Verdict.PASS
    assert found.measured is not None
    assert found.measured.value == pytest.approx(4 / 3 * (4 << 20) * 8 / 0.05 / 1e9)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"exists": False, "address": None}, "does not exist"),
        ({"running": False, "carrier": 0}, "no carrier"),
        ({"up": False}, "switched off"),
        ({"address": None}, "no IPv4 address"),
        ({}, "reaches none of"),
    ],
)
def test_a_dead_rail_names_node_and_interface(changes: dict[str, Any], words: str) -> None:
    ends = [end(node, 3, silent=[1], **(changes if node == 1 else {})) for node in range(3)]
    found = judge(rails.rails, both(rail("eth1", ends, None)), **RAILS)
    assert accused(found) == [("nic", "1/eth1", Cause.DEAD_RAIL)]
    assert words in found.culprits[0].evidence[0]


def test_two_live_ends_that_do_not_meet_blame_what_is_between_them() -> None:
    ends = [end(node, 3) for node in range(3)]
    ends[0]["reached"]["2"] = False
    found = judge(rails.rails, both(rail("eth1", ends, None)), **RAILS)
    assert accused(found) == [("link", "0-2", Cause.DEAD_RAIL)]


@pytest.mark.parametrize(
    ("dropped", "who"),
    [
        ([(0, 2), (1, 2)], ("nic", "2/eth1")),  # on the way into node 2
        ([(2, 0), (2, 1)], ("nic", "2/eth1")),  # out of it
        ([(0, 2), (1, 2), (2, 0), (2, 1)], ("nic", "2/eth1")),
        ([(0, 2), (2, 0)], ("link", "0-2")),
        ([(0, 2)], ("link", "0-2")),
    ],
)
def test_dropped_frames_of_full_size_name_node_or_link(
    dropped: Sequence[tuple[int, int]], who: tuple[str, str]
) -> None:
    ends = [end(node, 3) for node in range(3)]
    for a, b in dropped:
        ends[a]["reached"][str(b)] = False
        ends[a]["short"] = [*ends[a].get("short", []), b]
    found = judge(rails.rails, both(rail("eth1", ends, None)), **RAILS)
    assert accused(found) == [(*who, Cause.DEAD_RAIL)]
    assert "full size" in found.message


def test_between_two_nodes_dropped_frames_name_the_link() -> None:
    ends = [end(node, 2) for node in range(2)]
    ends[1]["reached"]["0"], ends[1]["short"] = False, [0]
    met = both(rail("eth1", ends, None), nodes=2)
    found = judge(rails.rails, met, **{**RAILS, "nodes": 2})
    assert accused(found) == [("link", "0-1", Cause.DEAD_RAIL)]
    assert "(1 to 0)" in found.message


def test_a_rail_that_failed_without_a_culprit_is_an_error() -> None:
    found = judge(rails.rails, both(rail("eth1", [end(node, 3) for node in range(3)], None)), **RAILS)
    assert found.status is Verdict.ERROR


def test_a_starved_rail_is_accused_by_its_pairs() -> None:
    slow = both(rail("eth1", [end(node, 3) for node in range(3)], 2.0))
    assert judge(rails.rails, slow, **RAILS).status is Verdict.INCONCLUSIVE
    met = tournament(3, line(1, 3, 0.01) | line(1, 3, 0.01, sends=False), phase="rails", interface="eth1")
    assert accused(judge(rails.rails, slow, met, **RAILS)) == [("nic", "1/eth1", Cause.SLOW_LINK)]
    fine = tournament(3, phase="rails", interface="eth1")
    assert judge(rails.rails, slow, fine, **RAILS).status is Verdict.PASS


def test_groups_of_local_ranks_are_compared_with_each_other() -> None:
    ends = [end(node, 2) for node in range(2)]
    dice = random.Random(1)
    items = [rail(f"local rank {index}", ends) for index in range(4)]
    for item in items:
        item["seconds"] = [0.05 * dice.uniform(1, 1.02) for _ in range(9)]
    record = {"kind": "rails", "backend": "nccl", "rails": items}
    assert judge(rails.rails, record, nodes=2).status is Verdict.PASS
    items[2]["seconds"] = [2 * value for value in items[2]["seconds"]]
    found = judge(rails.rails, record, nodes=2)
    assert accused(found) == [("stack", "local rank 2", Cause.SLOW_LINK)]
    assert not found.required
    assert wires.UNCALIBRATED in found.message


def test_the_adapter_that_slows_the_group_of_its_local_rank_is_named_with_its_node() -> None:
    dice = random.Random(2)
    items = [rail(f"local rank {index}", [end(node, 3) for node in range(3)]) for index in range(4)]
    for index, item in enumerate(items):
        item["seconds"] = [(0.1 if index == 2 else 0.05) * dice.uniform(1, 1.02) for _ in range(9)]
    met = tournament(3, backend="nccl", counter="efa", interface=None, streams=4)
    for cell in met["cells"]:
        slow = 1 in (cell["sender"], cell["receiver"])
        cell["lanes_gbit_s"] = [
            [(0.5 if slow and lane == 2 else 1.0) * dice.uniform(0.98, 1.0) for _ in cell["gbit_s"]]
            for lane in range(4)
        ]
    record = {"kind": "rails", "backend": "nccl", "rails": items}
    found = judge(rails.rails, record, met, nodes=3)
    assert accused(found) == [("nic", "1/local rank 2", Cause.SLOW_LINK)]
