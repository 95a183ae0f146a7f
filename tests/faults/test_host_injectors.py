"""Faults of processors, disks and processes do what they say and prove it; no product code runs."""

import os
import signal
import subprocess
import sys
import time

import pytest

from tests.faults import probes, system
from tests.faults.injector import InjectorError
from tests.faults.lab import Lab, Run
from tests.faults.neighbour import NoisyNeighbour
from tests.faults.quota import Quota
from tests.faults.stand_ins import injected, run_of, stand_in
from tests.faults.stopkill import Signal
from tests.faults.storage_fault import DiskFull, Disks

REASON = system.missing()
pytestmark = [pytest.mark.alone, pytest.mark.more, pytest.mark.skipif(REASON is not None, reason=str(REASON))]


def test_a_quota_slows_work_that_comes_in_bursts(lab: Lab) -> None:
    quota = Quota(node=1)
    lab.output_of(0).write_text('{"event": "measured", "what": "world"}\n')
    with injected(lab, quota) as run:
        assert quota.measured[0] < 0.75
        with pytest.raises(InjectorError, match="never came together"):
            quota.prove(run)
        quota.watch(run)
        time.sleep(0.1)
        with pytest.raises(InjectorError, match=r"throttled for 0\.0%"):
            quota.prove(run)
        assert probes.slowdown(lab.nodes[1]) > 1.12
        probes.cpu_share(lab.nodes[1], 2.0)
        assert "was throttled for" in quota.prove(run)
        free, had = quota._share, probes.cpu_share(lab.nodes[1], 0.5)
        quota.watch(run)
        assert quota._share != free, "the limit does not follow the need"
        assert had < 0.75
        free = lab.nodes[0].group.counter("cpu", "cpu.stat", "nr_throttled")
        assert free == 0
    assert lab.nodes[1].group.read("cpu", "cpu.cfs_quota_us").strip() == "-1"


def test_a_quota_that_slows_nothing_is_refused(lab: Lab) -> None:
    quota = Quota(node=1, share=0.97)
    try:
        with pytest.raises(InjectorError, match=r"bursts .* 1\.0"):
            quota.install(lab)
    finally:
        quota.remove(lab)


RANK = """
import time
from smoke_training.runtime import heartbeat
heartbeat.own().phase("world")
print('{"event": "measured", "what": "world"}', flush=True)
time.sleep(60)
"""


@pytest.mark.parametrize("number", [signal.SIGSTOP, signal.SIGKILL])
def test_a_signal_reaches_the_rank_it_is_meant_for(lab: Lab, number: signal.Signals) -> None:
    fault = Signal(rank=1, number=number, after="world", delay_s=0.1)
    lab.output_of(0).write_text("")
    hearts = lab.home / f"hearts-{number}"
    hearts.mkdir()
    ranks = [stand_in(lab, n, RANK, RANK=str(n), SMOKE_HEARTBEATS=str(hearts)) for n in range(lab.size)]
    try:
        run = run_of(lab)
        fault.watch(run)
        with pytest.raises(InjectorError, match="no moment came"):
            fault.prove(run)
        lab.output_of(0).write_text('{"event": "measured", "what": "world"}\n')
        deadline = time.monotonic() + 10
        while fault._seen is None and time.monotonic() < deadline:
            fault.watch(run)
            time.sleep(0.02)
        assert number.name in fault.prove(run)
        assert fault.pid == ranks[1].pid
        assert system.state_of(ranks[1].pid) == ("T" if number == signal.SIGSTOP else "Z")
        assert system.state_of(ranks[0].pid) == "S"
    finally:
        for node in lab.nodes:
            assert node.group.kill() == []
        for rank in ranks:
            rank.wait(5)


def test_a_disk_is_as_fast_as_declared_and_a_slow_one_half_of_that() -> None:
    with Lab(2) as own:
        disks = Disks(mb_s=40, slow=(1,), share=0.5, size_mb=128)
        with injected(own, disks) as run:
            assert disks.measured[0] == pytest.approx(40, rel=0.2)
            assert disks.measured[1] == pytest.approx(20, rel=0.2)
            with pytest.raises(InjectorError, match="node 1"):
                disks.prove(run)
            probes.write_mb_s(own.nodes[1], disks.path(own), 8)
            assert "disks measured at" in disks.prove(run)
        assert not list(own.home.glob("disk-*"))


def test_a_disk_that_is_not_slow_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with Lab(1) as own:
        monkeypatch.setattr(system.Group, "write", lambda *arguments: None)
        with pytest.raises(InjectorError, match=r"node 0 .* 20\.0"):
            Disks(mb_s=40, slow=(0,), size_mb=128).install(own)


def test_a_full_disk_is_full(lab: Lab) -> None:
    fault = DiskFull(node=1, megabytes=2)
    with injected(lab, fault) as run:
        fault.watch(run)
        with pytest.raises(InjectorError, match="never ran full"):
            fault.prove(run)
        path = lab.nodes[1].work_dir / "state"
        script = f"open({str(path)!r}, 'wb').write(bytes(9 << 20))"
        done = subprocess.run(
            lab.nodes[1].argv(sys.executable, "-c", script), capture_output=True, text=True, check=False
        )
        assert "No space left on device" in done.stderr
        fault.watch(run)
        assert "bytes were left" in fault.prove(run)


def test_a_neighbour_takes_a_core_now_and_then(lab: Lab) -> None:
    fault = NoisyNeighbour(on_s=0.2, off_s=0.2)
    with injected(lab, fault) as run:
        time.sleep(2.0)
        assert "of a core" in fault.prove(run)
        os.kill(fault._process.pid, signal.SIGSTOP)
        idle = Run(lab=lab, began=run.began - 60, launchers={})
        with pytest.raises(InjectorError, match="neighbour"):
            fault.prove(idle)
    assert fault._process.poll() is not None
