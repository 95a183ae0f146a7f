"""Reports of a launcher on its torchrun."""

import os
import signal
import sys
from pathlib import Path

import pytest

from smoke_training.evidence.world import LauncherPreflight
from smoke_training.plan import local_plan
from smoke_training.runtime import processes
from smoke_training.runtime.facts import NodeSettings
from smoke_training.runtime.launch import LocalRanks
from tests.smoke_training.jobs import until

# The state of a killed process until its last thread has ended: a zombie that cannot be collected.
MAIN_THREAD_ENDS = f"""#!{sys.executable}
import ctypes, os, threading, time
threading.Thread(target=time.sleep, args=(600,)).start()
print(os.getpid(), flush=True)
ctypes.CDLL(None).pthread_exit(None)
"""


def test_a_torchrun_whose_main_thread_has_ended_is_over_though_another_one_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    torchrun, scratch = tmp_path / "python", tmp_path / "work"
    torchrun.write_text(MAIN_THREAD_ENDS)
    torchrun.chmod(0o700)
    monkeypatch.setattr(sys, "executable", str(torchrun))
    environment = {"NODE_RANK": "0", "MASTER_ADDR": "127.0.0.1", "WORK_DIR": str(scratch)}
    found = LauncherPreflight(device="cpu", devices_found=0, device_forced=True, ranks=1)
    ranks = LocalRanks(local_plan(1), NodeSettings.from_environment(environment, 1), found)
    ranks.prepare()
    ranks.start()
    log = scratch / "node-0" / "torchrun.log"
    until(lambda: log.read_text().endswith("\n"))
    pid = int(log.read_text())
    try:
        until(lambda: (state := processes.state_of(pid)) and state.ended)
        assert ranks.poll() is None
        assert ranks.report(0.0).torchrun == 0
    finally:
        os.kill(pid, signal.SIGKILL)
        ranks.end()
