"""The injectors do what they say and prove it; a laboratory leaves nothing behind. No product code runs."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.faults import clock, network, probes, system
from tests.faults.clock import ClockJump
from tests.faults.ebpf_loss import Loss
from tests.faults.fallback import Fallback
from tests.faults.injector import Injector, InjectorError, plugin_path
from tests.faults.lab import REPOSITORY, Lab, Run
from tests.faults.neighbour import NoisyNeighbour
from tests.faults.network import Wires
from tests.faults.payload import Corruption, NotANumber, Plugin
from tests.faults.quota import Quota
from tests.faults.rails import DeadRail
from tests.faults.shaper import SlowLink
from tests.faults.stopkill import Signal
from tests.faults.storage_fault import DiskFull, Disks
from tests.faults.system import LabError
from tests.faults.torn import TornCheckpoint
from tests.faults.world import MissingNode, OtherPlan

REASON = system.missing()
pytestmark = [pytest.mark.alone, pytest.mark.skipif(REASON is not None, reason=str(REASON))]

TWO_RAILS = Wires(rails=("eth0", "eth1"))


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    with Lab(2, TWO_RAILS) as found:
        yield found


def run_of(lab: Lab) -> Run:
    """A run in which the product has not been started."""
    return Run(lab=lab, began=time.monotonic(), launchers={})


@contextlib.contextmanager
def injected(lab: Lab, injector: Injector) -> Iterator[Run]:
    try:
        injector.install(lab)
        yield run_of(lab)
    finally:
        injector.remove(lab)


def stand_in(lab: Lab, node: int, script: str, **environment: str | None) -> "subprocess.Popen[bytes]":
    """A process on a node in the place of a rank or a launcher."""
    words = lab.nodes[node].argv(sys.executable, "-c", script)
    changed = {**lab.environment(lab.nodes[node]), **environment}
    return subprocess.Popen(words, env={key: value for key, value in changed.items() if value is not None})


def test_nodes_have_names_interfaces_and_shaped_wires_of_their_own(lab: Lab) -> None:
    for node in lab.nodes:
        assert node.command("hostname").strip() == node.host
        assert node.command("ls", "/sys/class/net").split() == ["eth0", "eth1", "lo", "mgmt0"]
        assert f"cpu:/{lab.name}/n{node.index}" in node.command("cat", "/proc/self/cgroup")
    assert lab.nodes[1].command("getent", "hosts", "smoke-0").split() == ["10.77.2.1", "smoke-0"]
    for rail in lab.wires.rails:
        assert 0.9 * 0.5 < probes.transfer_gbit_s(lab, 0, 1, rail, 10) < 1.1 * 0.5
    assert Path("/sys/class/net").exists()
    assert not Path("/sys/class/net/mgmt0").exists()


def test_two_laboratories_do_not_meet(lab: Lab) -> None:
    with Lab(2, TWO_RAILS) as other:
        assert other.name != lab.name
        before = network.counters(lab.nodes[1].place, "eth0")["rx_bytes"]
        probes.transfer_gbit_s(other, 0, 1, "eth0", 2)
        assert network.counters(lab.nodes[1].place, "eth0")["rx_bytes"] - before < 10_000


def traces(name: str) -> list[str]:
    """Whatever exists of a laboratory."""
    places = [system.HOMES / name, *(system.CGROUPS / c / name for c in system.CONTROLLERS)]
    found = [str(path) for path in places if path.exists()]
    found += [line for line in Path("/proc/self/mounts").read_text().splitlines() if name in line]
    found += system.loops_of(system.HOMES / name)
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdigit() and name.encode() in (entry / "cmdline").read_bytes():
                found.append(f"process {entry.name}")
    return found


def test_a_laboratory_leaves_nothing_behind_even_when_its_test_breaks() -> None:
    name = ""
    with contextlib.suppress(ZeroDivisionError), Lab(2) as broken:
        name = broken.name
        Disks(size_mb=64, mb_s=20).install(broken)
        Loss().install(broken)
        stopped = stand_in(broken, 1, "import time; time.sleep(99)")
        while stopped.pid not in broken.nodes[1].group.pids():
            time.sleep(0.01)
        stopped.send_signal(signal.SIGSTOP)
        assert traces(name)
        _ = 1 / 0
    stopped.wait(5)
    assert traces(name) == []


KILLED = """
import sys, time
from tests.faults.lab import Lab
from tests.faults.storage_fault import Disks
import subprocess
with Lab(2) as lab:
    Disks(size_mb=64, mb_s=20).install(lab)
    subprocess.Popen(lab.nodes[0].argv("sleep", "98"))
    print(lab.name, flush=True)
    time.sleep(99)
"""


def test_the_next_laboratory_removes_what_a_killed_one_left() -> None:
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    owner = subprocess.Popen(
        [sys.executable, "-c", KILLED], stdout=subprocess.PIPE, text=True, env=environment
    )
    assert owner.stdout is not None
    name = owner.stdout.readline().strip()
    assert system.owner_lives(name)
    assert name not in system.sweep(), "a living laboratory was swept away"
    owner.kill()
    owner.wait()
    assert traces(name), "nothing was left to sweep"
    assert name in system.sweep()
    assert traces(name) == []


def test_a_recycled_pid_owns_no_laboratory() -> None:
    start = system.started_at(os.getpid())
    assert start is not None
    assert system.owner_lives(f"tslab-{os.getpid()}-{start}-1")
    assert not system.owner_lives(f"tslab-{os.getpid()}-{start - 1}-1")
    assert not system.owner_lives("tslab-x")


@pytest.mark.parametrize("both", [False, True])
def test_a_slow_link_is_slow_in_the_directions_asked_for(lab: Lab, both: bool) -> None:
    link = SlowLink(node=1, rail="eth0", share=0.5, both=both)
    with injected(lab, link) as run:
        back = probes.transfer_gbit_s(lab, 0, 1, "eth0", 10)
        assert (back < 0.3) is both
        with pytest.raises(InjectorError, match="bytes went over the slow link"):
            link.prove(run)
        probes.transfer_gbit_s(lab, 1, 0, "eth0", 5)
        assert "0.2" in link.prove(run)
    assert probes.transfer_gbit_s(lab, 1, 0, "eth0", 10) > 0.4


def test_a_slow_link_that_is_not_slow_is_refused(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(network, "shape", lambda *arguments: None)
    with pytest.raises(InjectorError, match=r"0\.4\d+ Gb/s measured, 0\.25 wanted"):
        SlowLink(share=0.5).install(lab)


@pytest.mark.parametrize("both", [False, True])
def test_lost_packets_are_dropped_by_the_kernel_and_sent_again_by_tcp(lab: Lab, both: bool) -> None:
    loss = Loss(node=1, rail="eth0", share=0.01, both=both)
    with injected(lab, loss) as run:
        assert 0.006 < loss.measured < 0.014
        with pytest.raises(InjectorError, match="packets of the run were lost"):
            loss.prove(run)
        before = [network.tcp_segments(node.place) for node in lab.nodes]
        probes.transfer_gbit_s(lab, 0, 1, "eth0", 20)
        probes.transfer_gbit_s(lab, 1, 0, "eth0", 20)
        after = [network.tcp_segments(node.place) for node in lab.nodes]
        shares = [(b[1] - a[1]) / (b[0] - a[0]) for a, b in zip(before, after, strict=True)]
        # The receiver's cable loses on the way in; the other way only if both ends do.
        assert 0.004 < shares[0] < 0.03
        assert (shares[1] > 0.004) is both
        assert "segments sent again" in loss.prove(run)
    clean = network.tcp_segments(lab.nodes[0].place)
    probes.transfer_gbit_s(lab, 0, 1, "eth0", 20)
    now = network.tcp_segments(lab.nodes[0].place)
    assert (now[1] - clean[1]) / (now[0] - clean[0]) < 0.001


def test_a_loss_that_loses_nothing_is_refused(lab: Lab) -> None:
    loss = Loss(share=0.01)
    real = probes.send_datagrams
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(
                probes, "send_datagrams", lambda lab, a, b, rail, n: real(lab, a, b, "eth1", n)
            )  # another cable
            with pytest.raises(InjectorError, match=r"0\.000% of 20000 datagrams were lost"):
                loss.install(lab)
    finally:
        loss.remove(lab)


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
        with pytest.raises(InjectorError, match=r"work in bursts takes only 1\.0"):
            quota.install(lab)
    finally:
        quota.remove(lab)


RANK = """
import time
print('{"event": "measured", "what": "world"}', flush=True)
time.sleep(60)
"""


@pytest.mark.parametrize("number", [signal.SIGSTOP, signal.SIGKILL])
def test_a_signal_reaches_the_rank_it_is_meant_for(lab: Lab, number: signal.Signals) -> None:
    fault = Signal(rank=1, number=number, after="world", delay_s=0.1)
    lab.output_of(0).write_text("")
    ranks = [stand_in(lab, n, RANK, RANK=str(n), TORCHELASTIC_RESTART_COUNT="0") for n in range(lab.size)]
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
            with pytest.raises(InjectorError, match="node 1 wrote only"):
                disks.prove(run)
            probes.write_mb_s(own.nodes[1], disks.path(own), 8)
            assert "disks measured at" in disks.prove(run)
        assert not list(own.home.glob("disk-*"))


def test_a_disk_that_is_not_slow_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with Lab(1) as own:
        monkeypatch.setattr(system.Group, "write", lambda *arguments: None)
        with pytest.raises(InjectorError, match=r"node 0 writes .* MB/s, 20\.0 wanted"):
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


@pytest.mark.parametrize("how", ["unplugged", "isolated", "starved"])
def test_a_dead_rail_is_dead_and_its_neighbour_is_not(lab: Lab, how: str) -> None:
    rail = DeadRail(node=1, rail="eth1", how=how)
    with injected(lab, rail) as run:
        assert probes.answers(lab, 0, 1, "eth0")
        assert "eth1 of node 1" in rail.prove(run)
        carrier = lab.nodes[1].command("cat", "/sys/class/net/eth1/carrier").strip()
        assert carrier == ("0" if how == "unplugged" else "1")
    assert probes.answers(lab, 0, 1, "eth1")
    assert probes.transfer_gbit_s(lab, 0, 1, "eth1", 5) > 0.4


def test_a_fallback_is_seen_in_the_bytes_of_the_interfaces(lab: Lab) -> None:
    fault = Fallback()
    with injected(lab, fault) as run:
        assert fault.environment(lab, 0) == {"GLOO_SOCKET_IFNAME": "mgmt0"}
        with pytest.raises(InjectorError, match="bytes went by mgmt0"):
            fault.prove(run)
        probes.transfer_gbit_s(lab, 0, 1, "mgmt0", 3)
        assert "by the rails" in fault.prove(run)
        probes.transfer_gbit_s(lab, 0, 1, "eth0", 3)
        with pytest.raises(InjectorError, match="by the rails"):
            fault.prove(run)


ALL_REDUCE = """
import os, torch, torch.distributed as dist
rank = int(os.environ["RANK"])
dist.init_process_group("gloo", rank=rank, world_size=2)
buffer = torch.full((1000,), 1 << rank, dtype=torch.int64)
dist.all_reduce(buffer)
assert [int(v) for v in buffer[:2]] == [3, 3], buffer
print("wrong", int((buffer != 3).sum()), int(buffer[333]), flush=True)
dist.barrier()
"""
BACKWARD = """
import os, torch, torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
rank = int(os.environ["RANK"])
dist.init_process_group("gloo", rank=rank, world_size=2)
model = DistributedDataParallel(torch.nn.Linear(3, 2))
finite = []
for _ in range(4):
    model.zero_grad()
    with model.no_sync():
        model(torch.ones(1, 3)).sum().backward()
    finite.append(all(bool(p.grad.isfinite().all()) for p in model.parameters()))
print(finite, flush=True)
dist.barrier()
"""


def gang(lab: Lab, fault: Plugin, script: str) -> list[str]:
    """Run a two-rank program under a plugin, as the lab starts a node; what each rank printed."""
    fault.install(lab)
    words, ranks = [sys.executable, "-c", script], []
    for node in lab.nodes:
        changes = {key: str(value) for key, value in fault.environment(lab, node.index).items()}
        environment = {
            **lab.environment(node), **changes, "RANK": str(node.index),
            "TORCHELASTIC_RESTART_COUNT": "0", "OMP_NUM_THREADS": "1",
        }  # fmt: skip
        ranks.append(subprocess.Popen(node.argv(*words), env=environment, stdout=subprocess.PIPE, text=True))
    return [rank.communicate(timeout=60)[0].strip() for rank in ranks]


@pytest.mark.parametrize(("mask", "value"), [(None, 1), (1 << 40, 3 + (1 << 40))])
def test_a_corrupted_contribution_makes_one_wrong_sum(lab: Lab, mask: int | None, value: int) -> None:
    fault = Corruption(rank=1, mask=mask)
    fault.install(lab)
    with pytest.raises(InjectorError, match="never bit"):
        fault.prove(run_of(lab))
    assert gang(lab, fault, ALL_REDUCE) == [f"wrong 1 {value}"] * 2
    assert fault.prove(run_of(lab)) == "rank 1: bit 1 times, first at call 1: element 333 of 1000"


def test_a_nan_is_in_one_ranks_own_gradient_from_the_wanted_pass_on(lab: Lab) -> None:
    fault = NotANumber(rank=1, after=3)
    assert gang(lab, fault, BACKWARD) == ["[True, True, True, True]", "[True, True, False, False]"]
    assert "backward 3: module.bias" in fault.prove(run_of(lab))


def test_the_plugins_do_nothing_outside_the_rank_they_are_meant_for() -> None:
    told = '{"kind": "corrupt", "rank": 1, "proof": "/nowhere", "every": 1, "mask": null}'
    script = "import sys; print([type(f).__name__ for f in sys.meta_path].count('Finder'))"
    counts = []
    for environment in ({"RANK": "0", "TORCHELASTIC_RESTART_COUNT": "0"}, {"RANK": "1"}, {}):
        done = subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, "PYTHONPATH": str(plugin_path("rank")), "TSLAB_FAULT": told, **environment},
            capture_output=True,
            text=True,
            check=True,
        )
        counts.append(done.stdout.strip())
    assert counts == ["0", "0", "0"]


@pytest.mark.skipif(clock.missing() is not None, reason=str(clock.missing()))
def test_a_clock_jumps_on_one_node_in_the_middle_of_a_process(lab: Lab) -> None:
    fault = ClockJump(node=1, by_s=-3600, after_s=0.5)
    script = (
        "import time, datetime\n"
        "a, m = time.time(), time.monotonic(); time.sleep(1.0)\n"
        "d = datetime.datetime.now().timestamp()\n"
        "assert 0.9 < time.monotonic() - m < 9, 'the monotonic clock jumped'\n"
        "assert -3601 < time.time() - a < -3590, time.time() - a\n"
        "assert -3601 < d - a < -3590, d - a\n"
    )
    with injected(lab, fault) as run:
        with pytest.raises(InjectorError, match="read the clock after its jump"):
            fault.prove(run)
        process = stand_in(lab, 1, script, **fault.environment(lab, 1))
        assert process.wait(20) == 0
        assert fault.environment(lab, 0) == {}
        assert "1 processes of node 1" in fault.prove(run)


def test_a_neighbour_takes_a_core_now_and_then(lab: Lab) -> None:
    fault = NoisyNeighbour(on_s=0.2, off_s=0.2)
    with injected(lab, fault) as run:
        time.sleep(2.0)
        assert "of a core" in fault.prove(run)
        os.kill(fault._process.pid, signal.SIGSTOP)
        idle = Run(lab=lab, began=run.began - 60, launchers={})
        with pytest.raises(InjectorError, match="the neighbour had only"):
            fault.prove(idle)
    assert fault._process.poll() is not None


@pytest.mark.parametrize("how", ["truncated", "flipped"])
def test_the_newest_checkpoint_is_damaged_once_and_only_after_the_kill(lab: Lab, how: str) -> None:
    scratch = lab.nodes[1].work_dir / "node-1"
    files = {}
    for step, nodes in {4: (0, 1), 8: (0, 1), 12: (1,)}.items():  # node 0 died before it had committed 12
        for node in nodes:
            folder = lab.nodes[node].work_dir / f"node-{node}" / "checkpoints" / f"step-{step:08d}"
            folder.mkdir(parents=True, exist_ok=True)
            (folder / f"commit-node-{node}.json").write_text("{}")
        files[step] = folder / "__1_0.distcp"
        files[step].write_bytes(bytes(1000))
        (folder / ".metadata").write_text("{}")
    fault, run = TornCheckpoint(node=1, how=how), run_of(lab)
    try:
        fault.watch(run)
        with pytest.raises(InjectorError, match="no rank was killed"):
            fault.prove(run)
        (scratch / "killed.json").write_text("{}")
        fault.watch(run)
        assert "step-00000008/__1_0.distcp (1000 bytes)" in fault.prove(run)
        assert files[4].read_bytes() == files[12].read_bytes() == bytes(1000)
        wanted = bytes(500) if how == "truncated" else bytes(500) + b"\1" + bytes(499)
        assert files[8].read_bytes() == wanted
        fault.watch(run)
        assert files[8].read_bytes() == wanted
    finally:
        (scratch / "killed.json").unlink(missing_ok=True)


def test_other_plans_and_missing_nodes(lab: Lab) -> None:
    document: dict[str, Any] = {"nodes": 2, "seed": 7}
    other, missing = OtherPlan(node=1, changes={"nodes": 3}), MissingNode(node=1)
    assert [other.plan(lab, node, document) for node in (0, 1)] == [document, {"nodes": 3, "seed": 7}]
    assert [missing.plan(lab, node, document) for node in (0, 1)] == [document, None]
    run = run_of(lab)
    assert missing.prove(run) == "node 1 was never started"
    with pytest.raises(InjectorError, match="was started with the plan of all others"):
        other.prove(run)


def test_a_run_that_leaves_a_process_behind_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with Lab(1) as own:
        node = own.nodes[0]
        spawn = "import subprocess; subprocess.Popen(['sleep', '97'], start_new_session=True)"
        argv = node.argv(sys.executable, "-c", spawn)
        monkeypatch.setattr(type(node), "argv", lambda self, *words: argv)
        with pytest.raises(LabError, match=r"left processes behind: node 0: .* sleep 97"):
            own.run({"timeout_s": 30})
        assert node.group.pids() == []
