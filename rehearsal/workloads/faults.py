"""Faults injected into running pods from outside, like a slow machine."""

import contextlib
import os
import select
import signal
import threading
import time
from pathlib import Path

import psutil

from rehearsal.core.faults import SmokeFault, read
from rehearsal.workloads.pod import PodRunner

# On the pods of every training run (infra/launchers/pods.py).
RUN_LABEL = "trainstack.dev/run"
_PERIOD_S = 0.02
_SEARCH_S = 0.05


def inject_faults(runner: PodRunner, home: Path) -> None:
    """Inject the smoke fault of `faults.json`, if any, into a pod of a training run; others have none."""
    if RUN_LABEL in runner.pod.labels and (fault := read(home / "faults.json").smoke):
        SlowRank(runner, fault)


def _is_rank(pid: int, rank: int) -> bool:
    """Return whether a process is this rank: forked (smoke_training/worker.py), or started by torchrun.

    RANK alone is not enough: in a PyTorchJob it is the index of the pod.
    """
    with contextlib.suppress(psutil.Error):
        process = psutil.Process(pid)
        environment = process.environ()
        started = "LOCAL_RANK" in environment and environment.get("RANK") == str(rank)
        return started or process.name() == f"rank {rank}"
    return False


class SlowRank:
    """Keeps the processes of one rank stopped for a share of the time, with SIGSTOP and SIGCONT.

    Every process of the rank in the pod, one after another, is slowed until the pod is over, and always left
    unstopped.
    """

    def __init__(self, runner: PodRunner, fault: SmokeFault) -> None:
        self._runner, self._rank, self._duty = runner, fault.slow_rank, fault.duty
        self._cycles, self._slowed = 0, 0
        threading.Thread(target=self._run, name="slow rank", daemon=True).start()

    def _run(self) -> None:
        while not self._runner.state.over:
            found = self._find()
            if found is None:
                time.sleep(_SEARCH_S)
                continue
            if not self._slowed:
                self._runner.note(f"fault: rank {self._rank} may run {self._duty:.0%} of the time")
            self._slowed += 1
            self._slow(found)
        if self._slowed:
            self._runner.note(
                f"fault: rank {self._rank} was stopped {self._cycles} times in {self._slowed} process(es)"
            )

    def _find(self) -> int | None:
        return next((pid for pid in self._runner.pids() if _is_rank(pid, self._rank)), None)

    def _slow(self, pid: int) -> None:
        """Stop and continue one process until it is gone; `pidfd` so that no other process is ever hit."""
        with contextlib.suppress(ProcessLookupError):
            handle = os.pidfd_open(pid)
            try:
                while not select.select([handle], [], [], 0)[0]:  # readable once the process has ended
                    signal.pidfd_send_signal(handle, signal.SIGSTOP)
                    try:
                        time.sleep(_PERIOD_S * (1 - self._duty))
                    finally:
                        signal.pidfd_send_signal(handle, signal.SIGCONT)
                    self._cycles += 1
                    time.sleep(_PERIOD_S * self._duty)
            finally:
                os.close(handle)
