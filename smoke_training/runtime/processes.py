"""Finding and ending this run's processes, and only those."""

import contextlib
import ctypes
import os
import signal
import time
from pathlib import Path

TOKEN = "TRAINSTACK_SMOKE_RUN"  # noqa: S105 - an environment variable's name: marks every process of one node's run
PR_SET_PDEATHSIG = 1  # linux/prctl.h


def die_with_parent() -> None:
    """Ask the kernel to SIGKILL this process when its parent ends; exit at once if that already happened."""
    parent = os.getppid()
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def environment_of(pid: int) -> dict[str, str]:
    """The environment a process was started with; empty once it is gone."""
    try:
        raw = Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return {}
    pairs = (entry.partition(b"=") for entry in raw.split(b"\0") if entry)
    return {key.decode(errors="replace"): value.decode(errors="replace") for key, _, value in pairs}


def of_run(token: str) -> list[int]:
    """Live processes, this one excepted, that carry the run's token in their environment."""
    own = os.getpid()
    pids = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]
    return [pid for pid in pids if pid != own and environment_of(pid).get(TOKEN) == token]


def end_run(token: str, patience_s: float = 5.0) -> list[int]:
    """SIGKILL every process of the run, stopped ones included, until none is left; returns survivors."""
    deadline = time.monotonic() + patience_s
    while (left := of_run(token)) and time.monotonic() < deadline:
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.02)
    return left
