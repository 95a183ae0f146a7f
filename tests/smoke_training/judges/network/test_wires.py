"""The checks of what lies between nodes, judged from recorded series as a run would deliver them."""

import itertools
import random
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from smoke_training.judges.network import links, loss, rails, transport
from smoke_training.judges.sampling import Sampling
from smoke_training.model import Cause, Check, Verdict
from smoke_training.statistics.links import Pair
from tests.smoke_training.samples import parsed, plan

LAPS = 8
SEGMENTS = 2200


def cell(pair: Pair, rate: float, seed: int, lost: float = 0.0, **changes: Any) -> dict[str, Any]:
    dice = random.Random(1000 * seed + 31 * pair[0] + pair[1])
    mean = SEGMENTS * lost
    again = [max(0, round(dice.gauss(mean, mean**0.5))) for _ in range(LAPS)]
    sent = [SEGMENTS * 1500] * LAPS
    return {
        "sender": pair[0],
        "receiver": pair[1],
        "gbit_s": [rate * dice.uniform(0.98, 1.0) for _ in range(LAPS)],
        "starved": [dice.uniform(0, 0.2) for _ in range(LAPS)],
        "segments": [SEGMENTS] * LAPS,
        "retransmitted": again,
        "spurious": [0] * LAPS,
        "sent_bytes": sent,
        "received_bytes": sent,
        **changes,
    }


def tournament(
    nodes: int,
    rates: Mapping[Pair, float] | None = None,
    lost: Mapping[Pair, float] | None = None,
    alone: Mapping[Pair, float] | None = None,
    **changes: Any,
) -> dict[str, Any]:
    """All pairs of a 1 Gb/s network; `rates`, `lost` and `alone` (serial visits) for the odd ones."""
    cells = []
    for pair in itertools.permutations(range(nodes), 2):
        serial = {} if pair not in (alone or {}) else {"serial_gbit_s": [(alone or {})[pair] * 0.99] * 10}
        rate = (rates or {}).get(pair, 0.957)
        cells.append(cell(pair, rate, nodes, (lost or {}).get(pair, 0.0), **serial))
    return {
        "kind": "tournament", "phase": "pairs", "nodes": list(range(nodes)), "interface": "eth0",
        "backend": "gloo", "streams": 1, "message_bytes": 1 << 20, "seconds": 3.0, "counter": "tcp",
        "cells": cells, "broken": [], **changes,
    }  # fmt: skip


def judge(rule: Any, *lines: dict[str, Any], **changes: Any) -> Check:
    wanted = {"nodes": 4, "rails": ["eth0"], "rail_gbit_s": 1.0, **changes}
    found = rule(plan(**wanted), parsed(list(lines)))
    assert isinstance(found, Check)
    if found.status is Verdict.FAIL:
        assert found.culprits
        assert found.next_action
    if found.status is not Verdict.PASS and found.status is not Verdict.SKIPPED:
        assert found.next_action
    return found


def accused(found: Check) -> list[tuple[str, str, Cause]]:
    return [(item.kind, item.id, item.cause) for item in found.culprits]


def line(node: int, nodes: int, value: float, sends: bool = True) -> dict[Pair, float]:
    others = [other for other in range(nodes) if other != node]
    return {(node, other) if sends else (other, node): value for other in others}


@pytest.mark.parametrize("nodes", [2, 3, 4])
def test_healthy_wires_pass(nodes: int) -> None:
    met = tournament(nodes)
    assert judge(links.links, met, nodes=nodes).status is Verdict.PASS
    assert judge(loss.loss, met, nodes=nodes).status is Verdict.PASS


def test_a_node_at_half_rate_is_accused_once_it_was_slow_alone() -> None:
    slow = line(1, 4, 0.48)
    found = judge(links.links, tournament(4, slow, alone={(1, 0): 0.48, (1, 2): 0.48, (1, 3): 0.48}))
    assert accused(found) == [("node", "1", Cause.HALF_RATE_LINK)]
    assert "confirmed with nothing else on the wire" in found.culprits[0].evidence[0]
    assert found.measured is not None
    assert found.measured.value == pytest.approx(0.475, abs=0.02)
    assert found.expected is not None
    assert (found.expected.kind, found.expected.value) == ("declared", 1.0)


def test_what_is_slow_only_beside_others_is_nobodys_fault() -> None:
    slow = line(1, 4, 0.48)
    found = judge(links.links, tournament(4, slow, alone=dict.fromkeys(slow, 0.957)))
    assert (found.status, found.culprits) == (Verdict.INCONCLUSIVE, ())
    assert "not alone" in found.message
    unconfirmed = judge(links.links, tournament(4, slow))
    assert unconfirmed.status is Verdict.INCONCLUSIVE
    too_few = tournament(4, slow, alone=dict.fromkeys(slow, 0.48))
    for item in too_few["cells"]:
        item["serial_gbit_s"] = item.get("serial_gbit_s", [])[:2]
    assert judge(links.links, too_few).status is Verdict.INCONCLUSIVE


def test_two_nodes_blame_their_link_and_a_quarter_is_slow_not_half() -> None:
    found = judge(links.links, tournament(2, {(1, 0): 0.48}), nodes=2)
    assert accused(found) == [("link", "0-1", Cause.HALF_RATE_LINK)]
    quarter = judge(links.links, tournament(2, {(1, 0): 0.2, (0, 1): 0.2}), nodes=2)
    assert accused(quarter)[0][2] is Cause.SLOW_LINK


def test_without_a_declared_rate_peers_are_the_measure() -> None:
    slow = line(2, 3, 0.48, sends=False)
    found = judge(links.links, tournament(3, slow), nodes=3, rail_gbit_s=None)
    assert accused(found) == [("node", "2", Cause.HALF_RATE_LINK)]
    assert found.expected is not None
    assert found.expected.kind == "unknown"
    assert judge(links.links, tournament(3), nodes=3, rail_gbit_s=None).status is Verdict.PASS


def test_a_rate_that_one_stream_cannot_fill_is_not_held_against_it() -> None:
    found = judge(links.links, tournament(3), nodes=3, rail_gbit_s=100.0)
    assert found.status is Verdict.PASS
    assert found.expected is not None
    assert "one TCP stream" in str(found.expected.reason)


def test_a_fabric_that_is_slow_everywhere_accuses_no_single_node() -> None:
    everywhere = dict.fromkeys(itertools.permutations(range(4), 2), 0.5)
    found = judge(links.links, tournament(4, everywhere, alone=everywhere))
    assert accused(found) == [("stack", "fabric", Cause.HALF_RATE_LINK)]


def test_starved_visits_end_inconclusive_with_the_share() -> None:
    met = tournament(3, line(1, 3, 0.5))
    for item in met["cells"]:
        item["starved"] = [0.9] * LAPS
    found = judge(links.links, met, nodes=3)
    assert found.status is Verdict.INCONCLUSIVE
    assert found.noise["starved_share"] == pytest.approx(0.9)
    assert "waited for CPUs in up to 90%" in found.message


def test_a_transfer_that_broke_off_names_the_link() -> None:
    broken = [{"node": 1, "sender": 0, "receiver": None, "message": "Timed out waiting 20000ms for recv"}]
    found = judge(links.links, tournament(2, broken=broken), nodes=2)
    assert (found.status, found.culprits[0].id) == (Verdict.FAIL, "0-1")


@pytest.mark.parametrize("rule", [links.links, loss.loss, rails.rails])
def test_one_machine_has_no_wires_and_a_wire_that_cannot_be_connected_is_no_excuse(rule: Any) -> None:
    alone = judge(rule, {"kind": "pairs_skipped", "reason": "all ranks run on one node"})
    assert (alone.status, alone.required) == (Verdict.SKIPPED, False)
    failed = {"kind": "pairs_skipped", "reason": "could not connect: node 1: timed out"}
    if rule is not rails.rails:
        assert (judge(rule, failed).status, judge(rule, failed).required) == (Verdict.ERROR, True)


@pytest.mark.parametrize("rule", [links.links, loss.loss, rails.rails, transport.transport])
def test_without_evidence_there_is_no_check(rule: Any) -> None:
    assert rule(plan(nodes=4, rails=["eth0"]), parsed([])) is None


# Losses


def test_losses_behind_a_receiver_accuse_it_although_senders_count_them() -> None:
    found = judge(loss.loss, tournament(4, lost=line(2, 4, 0.01, sends=False)))
    assert accused(found) == [("nic", "2/eth0", Cause.LOSS)]
    assert found.measured is not None
    assert found.measured.value == pytest.approx(0.01, rel=0.2)
    assert found.measured.unit == "retransmitted per sent segment"


def test_losses_of_a_sender_accuse_the_sender_and_of_a_pair_the_link() -> None:
    assert accused(judge(loss.loss, tournament(4, lost=line(3, 4, 0.01)))) == [("nic", "3/eth0", Cause.LOSS)]
    met = tournament(4, lost={(0, 2): 0.01, (2, 0): 0.01})
    assert accused(judge(loss.loss, met)) == [("link", "0-2", Cause.LOSS)]


def test_between_two_nodes_the_received_bytes_tell_the_receiver_from_the_wire() -> None:
    behind = tournament(2, lost={(0, 1): 0.01})
    assert accused(judge(loss.loss, behind, nodes=2)) == [("nic", "1/eth0", Cause.LOSS)]
    on_the_way = tournament(2, lost={(0, 1): 0.01})
    for item in on_the_way["cells"]:
        if item["sender"] == 0:
            item["received_bytes"] = [int(0.99 * count) for count in item["sent_bytes"]]
    assert accused(judge(loss.loss, on_the_way, nodes=2)) == [("link", "0-1", Cause.LOSS)]


def test_needless_retransmissions_are_no_losses() -> None:
    met = tournament(3, lost=line(1, 3, 0.01))
    for item in met["cells"]:
        item["spurious"] = item["retransmitted"]
    assert judge(loss.loss, met, nodes=3).status is Verdict.PASS


def test_uncounted_retransmissions_are_not_taken_for_a_clean_wire() -> None:
    met = tournament(3, counter="none")
    for item in met["cells"]:
        item["segments"] = None
    found = judge(loss.loss, met, nodes=3)
    assert (found.status, found.required) == (Verdict.SKIPPED, False)


def test_clean_clusters_are_never_accused_of_losing_packets() -> None:
    for seed in range(100):
        met = tournament(3)
        met["cells"] = [cell(pair, 0.957, seed, 0.0001) for pair in itertools.permutations(range(3), 2)]
        assert judge(loss.loss, met, nodes=3).status in (Verdict.PASS, Verdict.INCONCLUSIVE)


# Rails


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
    assert accused(judge(rails.rails, record, nodes=2)) == [("nic", "*/local rank 2", Cause.SLOW_LINK)]


# Transport

NEEDED = 6 * (4 << 20)


def traffic(sent: Sequence[Mapping[str, int]], backend: str = "gloo", **changes: Any) -> dict[str, Any]:
    nodes = [
        {"node": index, "tx_bytes": dict(counts), "rx_bytes": {}, "port_tx_bytes": {}, "port_rx_bytes": {},
         "segments": 1000, "retransmitted": 0, "spurious": 0,
         "environment": {"GLOO_SOCKET_IFNAME": next(iter(counts), "")}, **changes}
        for index, counts in enumerate(sent)
    ]  # fmt: skip
    return {"kind": "traffic", "operations": 6, "size_bytes": 4 << 20, "seconds": 0.4, "backend": backend,
            "nodes": nodes, "nothing_between": None, "phase_seconds": 5.0,
            "phase_tx_bytes": [{}, {}]}  # fmt: skip


def world(backend: str) -> dict[str, Any]:
    facts = {"host": "h", "pid": 1, "device": "cpu", "backend": backend, "python": "3", "torch": "2",
             "kernel": "6", "cpus": 2, "nccl": None, "gpu_memory_bytes": None}  # fmt: skip
    return {"kind": "world", "wanted": 2, "ranks": [{"rank": n, "node": n, **facts} for n in (0, 1)]}


TWO = {"nodes": 2, "fabric": "tcp"}


def test_bytes_on_the_rails_prove_the_transport() -> None:
    found = judge(transport.transport, world("gloo"), traffic([{"eth0": NEEDED + 9}] * 2), **TWO)
    assert found.status is Verdict.PASS
    assert found.measured is not None
    assert found.measured.detail["wire_gbit_s"] == [pytest.approx(0.5, rel=0.02)] * 2


def test_bytes_on_another_interface_are_a_fallback_with_interface_and_setting() -> None:
    sent = [{"mgmt0": NEEDED * 2, "eth0": 4000}] * 2
    found = judge(transport.transport, world("gloo"), traffic(sent), **TWO)
    assert accused(found) == [("stack", "transport", Cause.TCP_FALLBACK)]
    words = " ".join(found.culprits[0].evidence)
    assert f"mgmt0 sent {NEEDED * 2}" in words
    assert 'GLOO_SOCKET_IFNAME: got "mgmt0"; must be "eth0"' in words
    assert "GLOO_SOCKET_IFNAME" in str(found.next_action)


def test_one_node_on_the_wrong_path_is_enough() -> None:
    sent = [{"eth0": NEEDED * 2}, {"mgmt0": NEEDED * 2, "eth0": 10}]
    found = judge(transport.transport, world("gloo"), traffic(sent), **TWO)
    assert found.status is Verdict.FAIL
    assert any(words.startswith("nodes 0 and 1 differ: GLOO") for words in found.culprits[0].evidence)


def test_half_of_the_bytes_settles_nothing() -> None:
    found = judge(transport.transport, world("gloo"), traffic([{"eth0": NEEDED * 7 // 10}] * 2), **TWO)
    assert found.status is Verdict.INCONCLUSIVE


def test_without_rails_gloo_has_nothing_to_prove_and_one_machine_neither() -> None:
    found = judge(transport.transport, world("gloo"), traffic([{}, {}]), **{**TWO, "rails": []})
    assert (found.status, found.required) == (Verdict.SKIPPED, False)
    local = {**traffic([{}, {}]), "nothing_between": "all nodes are on this machine"}
    assert judge(transport.transport, world("gloo"), local, **TWO).status is Verdict.SKIPPED


LOG = {"kind": "nccl_log", "node": 0, "networks": ["AWS Libfabric"], "providers": ["efa"], "adapters": 4,
       "via": {"NET/AWS Libfabric": 8}, "nvls": False, "lines": 99}  # fmt: skip
FABRIC = {"nodes": 2, "fabric": "efa", "rails": []}


def ports(*sent: int) -> dict[str, int]:
    return {f"efa_{index}/1": count for index, count in enumerate(sent)}


def test_on_accelerators_log_and_counters_must_agree() -> None:
    counted = traffic([{}, {}], "nccl", port_tx_bytes=ports(*[NEEDED] * 4))
    good = judge(transport.transport, world("nccl"), counted, LOG, **FABRIC)
    assert (good.status, good.required) == (Verdict.PASS, True)
    silent = judge(transport.transport, world("nccl"), counted, **FABRIC)
    assert "not proven" in " ".join(silent.culprits[0].evidence)
    sockets = {**LOG, "networks": ["Socket"], "via": {"NET/Socket": 8}}
    assert judge(transport.transport, world("nccl"), counted, sockets, **FABRIC).status is Verdict.FAIL
    idle = traffic([{"eth0": NEEDED}] * 2, "nccl", port_tx_bytes=ports(0, 0, 0, 0))
    assert accused(judge(transport.transport, world("nccl"), idle, LOG, **FABRIC))[0][1] == "transport"


def test_a_quiet_adapter_among_busy_ones_is_named() -> None:
    counted = traffic([{}, {}], "nccl", port_tx_bytes=ports(NEEDED, NEEDED, 0, NEEDED))
    found = judge(transport.transport, world("nccl"), counted, LOG, **FABRIC)
    assert accused(found) == [("nic", "0/efa_2/1", Cause.DEAD_RAIL), ("nic", "1/efa_2/1", Cause.DEAD_RAIL)]
    assert transport.balance(ports(NEEDED, NEEDED, 0, NEEDED)) == 0


def test_the_probe_stops_when_the_judge_has_seen_enough() -> None:
    found = parsed([tournament(3)]).records[-1]
    cells = found.cells  # type: ignore[attr-defined]
    sampling = Sampling(plan(nodes=3, rail_gbit_s=1.0))
    assert sampling.links(cells, (0, 1, 2), "gloo").enough
    few = parsed([{**tournament(3), "cells": [cell((0, 1), 0.95, 1, gbit_s=[0.95], starved=None,
                  segments=None, retransmitted=None, spurious=None)]}]).records[-1]  # fmt: skip
    assert not sampling.links(few.cells, (0, 1, 2), "gloo").enough  # type: ignore[attr-defined]
