"""Faults of wires and interfaces do what they say and prove it; no product code runs."""

import pytest

from tests.faults import network, probes, system
from tests.faults.ebpf_loss import LargeFrames, Loss
from tests.faults.fallback import Fallback
from tests.faults.injector import InjectorError
from tests.faults.lab import Lab
from tests.faults.rails import DeadRail
from tests.faults.shaper import SlowLink
from tests.faults.stand_ins import injected

REASON = system.missing()
pytestmark = [pytest.mark.alone, pytest.mark.more, pytest.mark.skipif(REASON is not None, reason=str(REASON))]


@pytest.mark.parametrize("both", [False, True])
def test_a_slow_link_is_slow_in_the_directions_asked_for(lab: Lab, both: bool) -> None:
    link = SlowLink(node=1, rail="eth0", share=0.5, both=both)
    with injected(lab, link) as run:
        back = probes.fastest_gbit_s(lab, 0, 1, "eth0", 10)
        assert (back < 0.3) is both
        with pytest.raises(InjectorError, match="slow link"):
            link.prove(run)
        probes.transfer_gbit_s(lab, 1, 0, "eth0", 5)
        assert "0.2" in link.prove(run)
    assert probes.fastest_gbit_s(lab, 1, 0, "eth0", 10, wanted=0.35) > 0.35


def test_a_slow_link_that_is_not_slow_is_refused(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(network, "shape", lambda *arguments: None)
    with pytest.raises(InjectorError, match=r"0\.[34]\d+ Gb/s.* 0\.25"):
        SlowLink(share=0.5).install(lab)


@pytest.mark.parametrize("both", [False, True])
def test_lost_packets_are_dropped_by_the_kernel_and_sent_again_by_tcp(lab: Lab, both: bool) -> None:
    loss = Loss(node=1, rail="eth0", share=0.01, both=both)
    with injected(lab, loss) as run:
        assert 0.006 < loss.measured < 0.014
        with pytest.raises(InjectorError, match="packets"):
            loss.prove(run)
        # The receiver's cable loses on the way in; the other way only if both ends do.
        assert 0.004 < sent_again(lab, 0, 1) < 0.03
        assert (sent_again(lab, 1, 0) > 0.004) is both
        assert "segments sent again" in loss.prove(run)
    assert sent_again(lab, 0, 1) < 0.004


def sent_again(lab: Lab, sender: int, receiver: int) -> float:
    """The share of the segments of a transfer that its sender sent twice, at the least of three.

    A full queue and a sender that was paused send segments again, too, but not in every transfer.
    """
    place, shares = lab.nodes[sender].place, list[float]()
    for _ in range(3):
        before = network.tcp_segments(place)
        probes.transfer_gbit_s(lab, sender, receiver, "eth0", 20)
        after = network.tcp_segments(place)
        shares.append((after[1] - before[1]) / (after[0] - before[0]))
    return min(shares)


def test_large_frames_are_dropped_and_small_ones_arrive(lab: Lab) -> None:
    frames = LargeFrames(node=1, rail="eth0")
    with injected(lab, frames) as run:
        assert probes.answers(lab, 0, 1, "eth0")
        with pytest.raises(InjectorError, match="only 0 frames"):
            frames.prove(run)
        probes.send_datagrams(lab, 0, 1, "eth0", 5, size=1400)
        assert "5 frames" in frames.prove(run)
    assert probes.fastest_gbit_s(lab, 0, 1, "eth0", 5, wanted=0.35) > 0.35


def test_a_loss_that_loses_nothing_is_refused(lab: Lab) -> None:
    loss = Loss(share=0.01)
    real = probes.send_datagrams
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(
                probes, "send_datagrams", lambda lab, a, b, rail, n: real(lab, a, b, "eth1", n)
            )  # another cable
            with pytest.raises(InjectorError, match=r"0\.000% of 20000"):
                loss.install(lab)
    finally:
        loss.remove(lab)


@pytest.mark.parametrize("how", ["unplugged", "isolated", "starved"])
def test_a_dead_rail_is_dead_and_its_neighbour_is_not(lab: Lab, how: str) -> None:
    rail = DeadRail(node=1, rail="eth1", how=how)
    with injected(lab, rail) as run:
        assert probes.answers(lab, 0, 1, "eth0")
        assert "eth1" in rail.prove(run)
        carrier = lab.nodes[1].command("cat", "/sys/class/net/eth1/carrier").strip()
        assert carrier == ("0" if how == "unplugged" else "1")
    assert probes.answers(lab, 0, 1, "eth1")
    assert probes.fastest_gbit_s(lab, 0, 1, "eth1", 5, wanted=0.35) > 0.35


def test_a_fallback_is_seen_in_the_bytes_of_the_interfaces(lab: Lab) -> None:
    fault = Fallback()
    with injected(lab, fault) as run:
        assert fault.environment(lab, 0) == {"GLOO_SOCKET_IFNAME": "mgmt0"}
        with pytest.raises(InjectorError, match="by mgmt0"):
            fault.prove(run)
        probes.transfer_gbit_s(lab, 0, 1, "mgmt0", 3)
        assert "by the rails" in fault.prove(run)
        probes.transfer_gbit_s(lab, 0, 1, "eth0", 3)
        with pytest.raises(InjectorError, match="by the rails"):
            fault.prove(run)
