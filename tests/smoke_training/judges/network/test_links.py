"""Links and nodes that are slow, judged from recorded series."""

import itertools
from typing import Any

import pytest

from smoke_training.evidence import UndeliveredError
from smoke_training.judges.network import links, loss, rails, transport
from smoke_training.model import Cause, Verdict
from tests.smoke_training.judges.network.wires import VISITS, accused, judge, line, tournament
from tests.smoke_training.samples import parsed, plan


@pytest.mark.parametrize("nodes", [2, 3, 4])
def test_healthy_wires_pass(nodes: int) -> None:
    met = tournament(nodes)
    assert judge(links.links, met, nodes=nodes).status is Verdict.PASS
    assert judge(loss.loss, met, nodes=nodes).status is Verdict.PASS


def test_a_node_at_half_rate_is_accused_once_it_was_slow_alone() -> None:
    slow = line(1, 4, 0.48)
    found = judge(links.links, tournament(4, slow, alone={(1, 0): 0.48, (1, 2): 0.48, (1, 3): 0.48}))
    assert accused(found) == [("node", "1", Cause.HALF_RATE_LINK)]
    assert "confirmed" in found.culprits[0].evidence[0]
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
    assert found.expected and found.expected.kind == "unknown"
    assert judge(links.links, tournament(3), nodes=3, rail_gbit_s=None).status is Verdict.PASS


def test_visits_that_reached_the_rate_acquit_and_the_words_say_so() -> None:
    met = tournament(2)
    met["cells"][1]["gbit_s"] = [0.3, 0.95, 0.3, 0.95, 0.3, 0.3, 0.3, 0.95]
    found = judge(links.links, met, nodes=2)
    assert found.status is Verdict.PASS
    assert "must exceed" not in found.message
    assert "reached 0.85" in found.message


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
        item["starved"] = [0.9] * VISITS
    found = judge(links.links, met, nodes=3)
    assert found.status is Verdict.INCONCLUSIVE
    assert found.noise["starved_share"] == pytest.approx(0.9)
    assert "up to 90%" in found.message


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
    with pytest.raises(UndeliveredError):
        rule(plan(nodes=4, rails=["eth0"]), parsed([]))


def test_links_of_accelerators_are_compared_with_their_peers_and_gate_nothing() -> None:
    slow = tournament(3, line(1, 3, 0.3) | line(1, 3, 0.3, sends=False), backend="nccl", interface=None)
    found = judge(links.links, slow, nodes=3, network_gbit_s=100.0)  # no cell reaches 1 % of the line
    assert accused(found) == [("node", "1", Cause.SLOW_LINK)]
    assert (found.status, found.required) == (Verdict.FAIL, False)
    assert found.expected and found.expected.kind == "unknown"
    assert judge(links.links, tournament(4, backend="nccl"), network_gbit_s=100.0).status is Verdict.PASS
