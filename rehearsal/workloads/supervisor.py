"""Supervisor of one container's processes: none outlives it, and it does not outlive the daemon.

Run as a script with a pipe on stdin. The first line is a JSON object: argv, env, cwd, log, cpus, grace_s.
The end of the pipe means that the daemon is gone: everything is killed at once. A line `stop` requests an
orderly end: SIGTERM, then SIGKILL after `grace_s` seconds. Exits as the container's first process did.

Only the standard library, and little of it: one of these starts for every container.
"""

import ctypes
import json
import os
import select
import signal
import sys
import time
from pathlib import Path

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36


def main() -> int:
    """Start the container's process, wait for its end or an order, and leave no process behind."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    # Stopping a whole terminal session must not end this process between daemon and container.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    wake, woken = os.pipe()
    os.set_blocking(woken, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(woken, warn_on_full_buffer=False)
    line = b""
    while not line.endswith(b"\n"):
        byte = os.read(0, 1)
        if not byte:
            return 1
        line += byte
    order = json.loads(line)
    child = _start(order, libc)
    status = _watch(child, wake, order["grace_s"])
    _end_all(0.5 if status is not None else 0.0)
    code = os.waitstatus_to_exitcode(status) if status is not None else -signal.SIGKILL
    return code if code >= 0 else 128 - code


def _start(order: dict[str, object], libc: ctypes.CDLL) -> int:
    argv, env, cpus = order["argv"], order["env"], order["cpus"]
    assert isinstance(argv, list) and isinstance(env, dict) and isinstance(cpus, list)
    if cpus:
        os.sched_setaffinity(0, cpus)
    child = os.fork()
    if child:
        return child
    try:
        os.setsid()
        libc.prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD):
            signal.signal(number, signal.SIG_DFL)
        null = os.open(os.devnull, os.O_RDONLY)
        log = os.open(str(order["log"]), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        for source, target in ((null, 0), (log, 1), (log, 2)):
            os.dup2(source, target)
        os.closerange(3, 256)
        os.chdir(str(order["cwd"]))
        os.execve(str(argv[0]), argv, env)  # noqa: S606 - purpose of the supervisor
    except OSError as error:
        os.write(2, f"cannot start {argv[0]}: {error}\n".encode())
    os._exit(127)


def _watch(child: int, wake: int, grace_s: float) -> int | None:
    """The wait status of the first process; None when the daemon ended first."""
    deadline: float | None = None
    while True:
        status = _reap(child)
        if status is not None:
            return status
        remaining = None if deadline is None else max(0.0, deadline - time.monotonic())
        if remaining == 0.0:
            _signal_all(signal.SIGKILL)
            remaining, deadline = None, None
        ready, _, _ = select.select([0, wake], [], [], remaining)
        if wake in ready:
            os.read(wake, 4096)
        if 0 in ready:
            if not os.read(0, 64):
                return None
            _signal_all(signal.SIGTERM)
            deadline = time.monotonic() + grace_s


def _reap(child: int) -> int | None:
    """Collect ended descendants; the wait status of `child` when it was among them."""
    found = None
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return found
        if pid == 0:
            return found
        if pid == child:
            found = status


def descendants(root: int) -> list[int]:
    """Every living process below `root`."""
    parents: dict[int, int] = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                fields = (folder / "stat").read_bytes().rpartition(b")")[2].split()
            except OSError:
                continue
            if fields[0] != b"Z":
                parents[int(folder.name)] = int(fields[1])
    below, found = {root}, []
    grown = True
    while grown:
        grown = False
        for pid, parent in parents.items():
            if parent in below and pid not in below:
                below.add(pid)
                found.append(pid)
                grown = True
    return found


def _signal_all(number: int) -> None:
    for pid in descendants(os.getpid()):
        try:
            os.kill(pid, number)
            os.kill(pid, signal.SIGCONT)  # a stopped process reacts to SIGKILL only
        except ProcessLookupError:
            continue


def _end_all(patience_s: float) -> None:
    """End processes that the first one left behind: SIGTERM, then SIGKILL."""
    deadline = time.monotonic() + patience_s
    if patience_s and descendants(os.getpid()):
        _signal_all(signal.SIGTERM)
    while descendants(os.getpid()):
        if time.monotonic() >= deadline:
            _signal_all(signal.SIGKILL)
        _reap(-1)
        time.sleep(0.01)
    _reap(-1)


if __name__ == "__main__":
    sys.exit(main())
