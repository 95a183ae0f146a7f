"""Packets that are lost, judged from recorded series."""

import itertools

import pytest

from smoke_training.judges.network import loss
from smoke_training.model import Cause, Verdict
from tests.smoke_training.judges.network.wires import accused, cell, judge, line, tournament


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


def test_between_two_nodes_the_received_bytes_separate_receiver_and_wire() -> None:
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


def test_retransmissions_of_an_adapters_own_protocol_are_reported_and_gate_nothing() -> None:
    found = judge(loss.loss, tournament(4, lost=line(2, 4, 0.01), backend="nccl", counter="efa"))
    assert (found.status, found.required) == (Verdict.FAIL, False)
    assert "calibrated" in found.message
    assert not judge(loss.loss, tournament(4, backend="nccl", counter="tcp")).required
    assert judge(loss.loss, tournament(4)).required
