"""One container's processes, started under a supervisor that ends with the daemon."""

import contextlib
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from rehearsal.workloads.supervisor import descendants
from rehearsal.workloads.translate import ProcessPlan

_SUPERVISOR = Path(__file__).with_name("supervisor.py")


class ContainerProcess:
    """A running container; its output is appended to `log`."""

    def __init__(self, plan: ProcessPlan, log: Path, cpus: Sequence[int], grace_s: float) -> None:
        order = {
            "argv": list(plan.argv),
            "env": dict(plan.env),
            "cwd": str(plan.cwd),
            "log": str(log),
            "cpus": list(cpus),
            "grace_s": grace_s,
        }
        with log.open("ab") as output:
            # The order is sent through the pipe: the environment may hold secrets, arguments are public.
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", str(_SUPERVISOR)],
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=output,
                start_new_session=True,
                env={},
                cwd="/",
            )
        self._send(json.dumps(order))

    @property
    def supervisor_pid(self) -> int:
        """The process whose descendants are the container's processes."""
        return self._process.pid

    def pids(self) -> list[int]:
        """The container's living processes."""
        return descendants(self._process.pid)

    def exit_code(self) -> int | None:
        """Exit code of the first process (128 + signal when killed), None while it runs."""
        return self._process.poll()

    def wait(self, timeout_s: float) -> int | None:
        """Wait for the end, with a time limit."""
        try:
            code = self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return None
        self._close()
        return code

    def stop(self) -> None:
        """Request an orderly end; after the grace period every process is killed."""
        self._send("stop")

    def kill(self) -> None:
        """Kill every process at once; returns when they have ended."""
        self._close()
        self._process.wait()

    def _send(self, line: str) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError, ValueError):
            self._process.stdin.write(line.encode() + b"\n")
            self._process.stdin.flush()

    def _close(self) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
