"""One node's part: start torchrun, kill the victim at its step, keep the deadline, leave nothing behind."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from smoke_training import plan as plans
from smoke_training.plan import Plan
from smoke_training.runtime import code, files, host, processes
from smoke_training.verdict import Preflight

CPU_RANKS_AT_MOST = 4
LOOPBACK = "lo"
JOIN_TIMEOUT_S = 120.0


@dataclass(frozen=True, kw_only=True)
class Node:
    """Where this launcher stands: its index, the meeting point, its folder and what its ranks compute on."""

    index: int
    master_addr: str
    master_port: int
    scratch: Path  # this node's own folder: no other node writes there even when the work folder is shared
    preflight: Preflight

    @property
    def local_ranks(self) -> range:
        """The global numbers of the ranks that run here."""
        return range(self.index * self.preflight.ranks, (self.index + 1) * self.preflight.ranks)


class RunEndedError(RuntimeError):
    """The run cannot go on: a deadline passed, a signal arrived, the meeting point has no address."""


def preflight(plan: Plan, environment: dict[str, str], shared_machine: bool) -> Preflight:
    """Decide device and ranks. `SMOKE_DEVICE` is auto (default), cpu or cuda.

    Without a number in the plan: one rank per GPU, else one per usable CPU, at most four, shared among the
    nodes when all of them run on this machine.
    """
    asked = environment.get("SMOKE_DEVICE", "auto")
    if asked not in ("auto", "cpu", "cuda"):
        raise RunEndedError(f'SMOKE_DEVICE: got "{asked}"; must be auto, cpu or cuda')
    found = 0 if asked == "cpu" else host.nvidia_devices()
    device = "cuda" if asked == "cuda" or found else "cpu"
    cpus = max(1, host.usable_cpus() // (plan.nodes if shared_machine else 1))
    ranks = plan.ranks_per_node or (found if device == "cuda" else min(cpus, CPU_RANKS_AT_MOST))
    return Preflight(device=device, devices_found=found, device_forced=asked == "cpu", ranks=max(ranks, 1))


def address(name: str, deadline: float) -> str:
    """The meeting point's address, waiting until the name has one."""
    while (found := host.resolve(name)) is None:
        if time.monotonic() > deadline:
            raise RunEndedError(f"MASTER_ADDR {name} has no address")
        time.sleep(0.5)
    return found


class Gang:
    """torchrun on this node and the processes below it."""

    def __init__(self, plan: Plan, node: Node) -> None:
        self.plan, self.node = plan, node
        self.token = uuid.uuid4().hex
        self.world = plan.nodes * node.preflight.ranks
        self.schedule = plans.kill_schedule(plan.seed, self.world)
        self._process: subprocess.Popen[bytes] | None = None

    def prepare(self) -> None:
        """An empty scratch folder with the plan in it: nothing of an earlier run passes for this one's."""
        shutil.rmtree(self.node.scratch, ignore_errors=True)
        files.write_durably(self.node.scratch / "plan.json", plans.render(self.plan).encode())

    def run(self, deadline: float, progress: Callable[[], None]) -> int:
        """Run torchrun to its end, calling `progress` now and then; RunEndedError at the deadline."""
        log = (self.node.scratch / "torchrun.log").open("wb")
        with log:
            self._process = subprocess.Popen(
                self._command(),
                env=self._environment(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        killed, next_report = self._victim_is_elsewhere(), 0.0
        while (status := self._process.poll()) is None:
            now = time.monotonic()
            if now > deadline:
                raise RunEndedError("the deadline passed")
            if now >= next_report:
                progress()
                next_report = now + 0.1
            killed = killed or self._kill_when_due()
            time.sleep(0.05 if killed or not self._progress_file.exists() else 0.001)
        progress()
        return status

    def end(self) -> list[int]:
        """Kill whatever is left of this run; returns survivors, which only an unkillable process can be."""
        left = processes.end_run(self.token)
        if self._process is not None:
            self._process.wait(timeout=10)
        return left

    @property
    def _progress_file(self) -> Path:
        return self.node.scratch / f"progress-{self.schedule.victim}"

    def _victim_is_elsewhere(self) -> bool:
        return self.schedule.victim not in self.node.local_ranks

    def _kill_when_due(self) -> bool:
        """SIGKILL the victim once it reports the planned step; True when done."""
        try:
            pid, step = (int(part) for part in self._progress_file.read_text().split())
        except (OSError, ValueError):
            return False
        if step < self.schedule.step or processes.environment_of(pid).get(processes.TOKEN) != self.token:
            return False
        record = {
            "rank": self.schedule.victim,
            "pid": pid,
            "step": step,
            "signal": int(signal.SIGKILL),
            "monotonic": time.monotonic(),
        }
        os.kill(pid, signal.SIGKILL)
        # No fsync: the machine lives on, and the restarted ranks read this a second later at the earliest.
        (self.node.scratch / "killed.json").write_text(json.dumps(record))
        return True

    def _command(self) -> list[str]:
        return [
            sys.executable,
            "-m",
            "smoke_training.agent",
            f"--nnodes={self.plan.nodes}",
            f"--node-rank={self.node.index}",
            f"--nproc-per-node={self.node.preflight.ranks}",
            f"--master-addr={self.node.master_addr}",
            f"--master-port={self.node.master_port}",
            "--max-restarts=1",
            "--monitor-interval=0.1",
            "-m",
            "smoke_training.worker",
            str(self.node.scratch.resolve()),
        ]

    def _environment(self) -> dict[str, str]:
        """The ranks' environment: no tracking credentials, this package first, one thread per rank on CPU."""
        kept = {key: value for key, value in os.environ.items() if not key.startswith("MLFLOW_")}
        kept |= {
            processes.TOKEN: self.token,
            "PYTHONPATH": os.pathsep.join(filter(None, [str(code.location()), kept.get("PYTHONPATH")])),
            "SMOKE_DEVICE": self.node.preflight.device,
            "SMOKE_WORLD": str(self.world),
            "SMOKE_JOIN_TIMEOUT": str(min(JOIN_TIMEOUT_S, self.plan.timeout_s / 2)),
        }
        if self.node.preflight.device == "cpu":
            kept["OMP_NUM_THREADS"] = "1"
            if host.is_loopback(self.node.master_addr):
                kept["GLOO_SOCKET_IFNAME"] = LOOPBACK
        return kept
