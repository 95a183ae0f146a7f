"""Faults put on running pods from outside, as a slow machine or a bad cable would be."""

import contextlib
import json
import os
import select
import signal
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rehearsal.workloads.pod import PodRunner

# On the pods of every training run (smoke_training/launchers/pods.py).
RUN_LABEL = "trainstack.dev/run"
_PERIOD_S = 0.02
_SEARCH_S = 0.05


def smoke_fault(home: Path) -> dict[str, Any]:
    """The fault asked for in `faults.json`, empty when there is none."""
    try:
        found = json.loads((home / "faults.json").read_text()).get("smoke") or {}
    except FileNotFoundError:
        return {}
    return dict(found)


class SlowRank:
    """Keeps one rank of a Job stopped for a share of the time, with SIGSTOP and SIGCONT.

    The rank is the process whose environment says `RANK=<rank>`; `duty` is the share of time it may run,
    greater than 0 and less than 1. Every process of that rank, one after the other, is slowed until the pods
    are over, and always left running.
    """

    def __init__(self, pods: Sequence[PodRunner], rank: int, duty: float) -> None:
        if not 0 < duty < 1:
            raise ValueError(f"faults.json: smoke.duty must be greater than 0 and less than 1, not {duty}")
        self._pods, self._rank, self._duty = pods, rank, duty
        self.cycles = 0
        self.slowed: list[int] = []
        self._thread = threading.Thread(target=self._run, name="slow rank", daemon=True)
        self._thread.start()

    def join(self, timeout_s: float) -> bool:
        """Wait until the fault is over; whether that is so."""
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def _run(self) -> None:
        self._pods[0].note(f"fault: rank {self._rank} may run {self._duty:.0%} of the time")
        while not all(runner.state.over for runner in self._pods):
            found = self._find()
            if found is None:
                time.sleep(_SEARCH_S)
                continue
            self.slowed.append(found)
            self._slow(found)
        self._pods[0].note(
            f"fault: rank {self._rank} was stopped {self.cycles} times in {len(self.slowed)} process(es)"
        )

    def _find(self) -> int | None:
        wanted = f"RANK={self._rank}".encode()
        for runner in self._pods:
            for pid in runner.pids():
                with contextlib.suppress(OSError):
                    if wanted in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
                        return pid
        return None

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
                    self.cycles += 1
                    time.sleep(_PERIOD_S * self._duty)
            finally:
                os.close(handle)
