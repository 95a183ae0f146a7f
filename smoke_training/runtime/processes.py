"""Find and end this run's processes, and only those."""

import contextlib
import ctypes
import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path

TOKEN = "TRAINSTACK_SMOKE_RUN"  # noqa: S105 - an environment variable's name: marks every process of one node's run
PARENT = "SMOKE_PARENT"  # environment variable: the process that started this one
PR_SET_PDEATHSIG = 1  # linux/prctl.h
_TICKS = os.sysconf("SC_CLK_TCK")


def die_with_parent() -> None:
    """Make the kernel SIGKILL this process when its parent ends; exit at once if that already happened.

    The parent is in the environment, because a process that was orphaned while it started cannot
    distinguish its parent from the process that adopted it.
    """
    parent = int(os.environ.get(PARENT) or os.getppid())
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)
    os.environ[PARENT] = str(os.getpid())  # for the children of this one


def environment_of(pid: int) -> dict[str, str]:
    """Return the environment a process was started with; empty once it is gone."""
    try:
        raw = Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return {}
    pairs = (entry.partition(b"=") for entry in raw.split(b"\0") if entry)
    return {key.decode(errors="replace"): value.decode(errors="replace") for key, _, value in pairs}


@dataclass(frozen=True, kw_only=True)
class ProcessState:
    """State of a process in `/proc/PID/stat`.

    `state` is the letter of proc(5): R running, S sleeping, D waiting for a device, T stopped by a signal, t
    stopped by a tracer, Z ended and not yet collected. `code` is the end of a process in state Z: its exit
    status, or the negative number of the signal; None for a living one.
    """

    state: str
    cpu_s: float
    started: int  # clock ticks since boot: distinguishes processes with the same number
    code: int | None

    @property
    def ended(self) -> bool:
        """True if the process has ended."""
        return self.state in ("Z", "X")


def state_of(pid: int) -> ProcessState | None:
    """Return the state of a process, None when there is none with this number."""
    try:
        # The name, in parentheses, may contain spaces and parentheses.
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b") ")[2].split()
    except OSError:
        return None
    state, status = fields[0].decode(), int(fields[49]) if len(fields) > 49 else None
    return ProcessState(
        state=state,
        cpu_s=(int(fields[11]) + int(fields[12])) / _TICKS,
        started=int(fields[19]),
        code=os.waitstatus_to_exitcode(status) if state == "Z" and status is not None else None,
    )


def of_run(token: str) -> list[int]:
    """Return live processes, except this one, with the run's token in their environment."""
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
