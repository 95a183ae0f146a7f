"""A laboratory is a cluster of its own and leaves nothing behind."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.faults import network, probes, system
from tests.faults.ebpf_loss import Loss
from tests.faults.lab import REPOSITORY, Lab
from tests.faults.stand_ins import TWO_RAILS, stand_in
from tests.faults.storage_fault import Disks
from tests.faults.system import LabError

REASON = system.missing()
pytestmark = [pytest.mark.alone, pytest.mark.skipif(REASON is not None, reason=str(REASON))]


def test_nodes_have_names_interfaces_and_shaped_wires_of_their_own(lab: Lab) -> None:
    for node in lab.nodes:
        assert node.command("hostname").strip() == node.host
        assert node.command("ls", "/sys/class/net").split() == ["eth0", "eth1", "lo", "mgmt0"]
        assert f"cpu:/{lab.name}/n{node.index}" in node.command("cat", "/proc/self/cgroup")
    assert lab.nodes[1].command("getent", "hosts", "smoke-0").split() == ["10.77.2.1", "smoke-0"]
    for rail in lab.wires.rails:
        # Never faster than declared. A machine whose timers wake late empties the bucket of a wire late, too.
        least, most = 0.75 * 0.5, 1.1 * 0.5
        assert least < probes.fastest_gbit_s(lab, 0, 1, rail, 10, wanted=least) < most
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


def test_a_run_that_leaves_a_process_behind_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with Lab(1) as own:
        node = own.nodes[0]
        spawn = "import subprocess; subprocess.Popen(['sleep', '97'], start_new_session=True)"
        argv = node.argv(sys.executable, "-c", spawn)
        monkeypatch.setattr(type(node), "argv", lambda self, *words: argv)
        with pytest.raises(LabError, match=r"node 0: .* sleep 97"):
            own.run({"timeout_s": 30})
        assert node.group.pids() == []
