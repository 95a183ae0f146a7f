"""The ranks of one node: start torchrun, watch them, kill the planned victim, leave no process."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from pathlib import Path

from smoke_training import files
from smoke_training import plan as plans
from smoke_training.evidence.world import LauncherPreflight
from smoke_training.names import FORKED
from smoke_training.plan import Plan
from smoke_training.runtime import facts, flight_recorder, heartbeat, host, processes
from smoke_training.runtime.control.session import NodeReport
from smoke_training.runtime.control.vitals import LOOK_AT_MOST_S, Vital, Vitals
from smoke_training.runtime.facts import NodeSettings

LOOPBACK = "lo"
MEMORY = Path("/dev/shm")  # noqa: S108 - the kernel's path; a folder of our own is made below it
HEARTS = "smoke-hearts-"
LOOK_S = 0.2
RESTART_PATIENCE_S = 5.0  # after the planned kill: for ranks that do not detect the loss of their peer
TRACE_WAIT_S = 2.0
GROUP_TIMEOUT_MARGIN_S = 60.0


class LocalRanks:
    """torchrun on this node and the processes below it.

    `last` is the last report before the run was ended.
    """

    def __init__(self, plan: Plan, place: NodeSettings, preflight: LauncherPreflight) -> None:
        self.plan, self.place, self.preflight = plan, place, preflight
        self.token = uuid.uuid4().hex
        self.world = plan.nodes * preflight.ranks
        self.schedule = plans.kill_schedule(plan.seed, self.world)
        local = range(place.index * preflight.ranks, (place.index + 1) * preflight.ranks)
        self._kills = "resume" in plan.chosen_phases and self.schedule.victim in local
        self._progress_file = place.scratch / f"progress-{self.schedule.victim}"
        self._process: subprocess.Popen[bytes] | None = None
        self._log = place.scratch / "torchrun.log"
        memory = str(MEMORY) if os.access(MEMORY, os.W_OK | os.X_OK) else None  # the system's default
        self._hearts = Path(tempfile.mkdtemp(prefix=HEARTS, dir=memory))
        self._hold = files.hold(self._hearts)
        files.sweep(self._hearts.parent, HEARTS, held=True)
        self._vitals = Vitals(self._hearts, local, self._log)
        self.last = NodeReport()
        self._looked, self._agent_stopped_s = float("-inf"), 0.0
        self._killed = False
        self._restart_by: float | None = None
        self._oom_kills = host.oom_kills()

    def prepare(self) -> None:
        """Create an empty scratch folder with the plan: no file of an earlier run may remain."""
        shutil.rmtree(self.place.scratch, ignore_errors=True)
        files.write_durably(self.place.scratch / "plan.json", plans.render(self.plan).encode())

    def start(self) -> None:
        """Start torchrun."""
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                self._command(),
                env=self._environment(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def poll(self) -> int | None:
        """Return torchrun's exit status, None while it runs; kills the victim when due."""
        assert self._process is not None
        status = self._process.poll()
        if status is None and self._kills and not self._killed:
            self._killed = self._kill_when_due()
        return status

    @property
    def hurried(self) -> bool:
        """True if the kill is near, so that `poll` should be called every millisecond."""
        return self._kills and not self._killed and self._progress_file.exists()

    def report(self, now: float) -> NodeReport:
        """Return the current report of this node; `now` is a monotonic time."""
        assert self._process is not None
        status = self._process.poll()
        known = (self.last.torchrun, self.last.planned)
        if now - self._looked < LOOK_S and (status, self._killed) == known:
            return self.last
        passed = min(now - self._looked, LOOK_AT_MOST_S)
        self._looked = now
        vitals, agent = tuple(self._vitals.look(now)), processes.state_of(self._process.pid)
        if status is None and agent is not None and agent.ended:
            status = agent.code  # its ranks have ended with its main thread, and others of its threads run on
        stopped = agent is not None and agent.state in ("T", "t")
        self._agent_stopped_s = self._agent_stopped_s + passed if stopped else 0.0
        kills = host.oom_kills()
        self.last = NodeReport(
            vitals=vitals,
            planned=self._killed,
            torchrun=status,
            torchrun_stopped_s=round(self._agent_stopped_s, 3),
            oom_kills=None if kills is None or self._oom_kills is None else kills - self._oom_kills,
        )
        return self.last

    def hasten_restart(self, now: float) -> None:
        """After the kill: end ranks of the first attempt that wait for the victim forever.

        gloo detects the loss at once. NCCL does not (seen on an H100, over sockets), and without an end of
        the other nodes' ranks their torchrun does not restart them.
        """
        self._restart_by = self._restart_by or now + RESTART_PATIENCE_S
        if now < self._restart_by:
            return
        for vital in self.last.vitals:
            if vital.attempt == 0 and not vital.gone and vital.pid is not None and self._is_ours(vital.pid):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(vital.pid, signal.SIGKILL)

    def broken(self) -> list[Vital]:
        """Return failed ranks, for those without a failure file: the disk may be full."""
        return [vital for vital in self.last.vitals if vital.status == "BROKE" or (vital.code or 0) > 0]

    def dump_traces(self) -> None:
        """Request the traces of NCCL's flight recorder before hung ranks are ended."""
        pipes = list(self.place.scratch.glob("nccl-pipe-*.pipe"))
        for pipe in pipes:
            with contextlib.suppress(OSError):
                descriptor = os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
                try:
                    os.write(descriptor, b"1\n")
                finally:
                    os.close(descriptor)
        if pipes:
            time.sleep(TRACE_WAIT_S)

    def end(self) -> list[int]:
        """Kill the remaining processes of this run; return survivors: only unkillable processes."""
        left = processes.end_run(self.token)
        if self._process is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(timeout=10)
        shutil.rmtree(self._hearts, ignore_errors=True)
        os.close(self._hold)
        return left

    def _is_ours(self, pid: int) -> bool:
        return processes.environment_of(pid).get(processes.TOKEN) == self.token

    def _kill_when_due(self) -> bool:
        """SIGKILL the victim once it reports the planned step; True when done."""
        try:
            pid, step = (int(part) for part in self._progress_file.read_text().split())
        except (OSError, ValueError):
            return False
        if step < self.schedule.step or not self._is_ours(pid):
            return False
        record = {
            "rank": self.schedule.victim,
            "pid": pid,
            "step": step,
            "signal": int(signal.SIGKILL),
            "monotonic": time.monotonic(),
        }
        os.kill(pid, signal.SIGKILL)
        # No fsync: the machine keeps running, and the restarted ranks read this at least a second later.
        (self.place.scratch / "killed.json").write_text(json.dumps(record))
        return True

    def _command(self) -> list[str]:
        return [
            sys.executable,
            "-m",
            "smoke_training.worker",
            "torchrun",
            f"--nnodes={self.plan.nodes}",
            f"--node-rank={self.place.index}",
            f"--nproc-per-node={self.preflight.ranks}",
            f"--master-addr={self.place.master_addr}",
            f"--master-port={self.place.master_port}",
            f"--max-restarts={int('resume' in self.plan.chosen_phases)}",
            "--monitor-interval=0.1",
            "-m",
            "smoke_training.worker",
            "rank",
            str(self.place.scratch.resolve()),
        ]

    def _environment(self) -> dict[str, str]:
        """Return the ranks' environment: no credentials, this package first, one thread per rank on CPU."""
        kept = {key: value for key, value in os.environ.items() if not key.startswith("MLFLOW_")}
        kept |= {
            processes.TOKEN: self.token,
            processes.PARENT: str(os.getpid()),
            heartbeat.FOLDER: str(self._hearts),
            "PYTHONPATH": os.pathsep.join(filter(None, [str(facts.code_location()), kept.get("PYTHONPATH")])),
            "PYTHONSAFEPATH": "1",  # the working directory is the user's
            "SMOKE_DEVICE": self.preflight.device,
            "SMOKE_WORLD": str(self.world),
            # Longer than the run: hangs are detected outside the ranks, by their heartbeats.
            "SMOKE_GROUP_TIMEOUT": str(self.plan.timeout_s + GROUP_TIMEOUT_MARGIN_S),
        }
        if self.preflight.device == "cpu":
            kept["OMP_NUM_THREADS"] = "1"
            kept[FORKED] = str(self.preflight.ranks * (1 + int("resume" in self.plan.chosen_phases)))
            if host.is_loopback(self.place.master_addr):
                kept["GLOO_SOCKET_IFNAME"] = LOOPBACK
            elif ":" in self.place.master_addr and (name := host.interface_to(self.place.master_addr)):
                # gloo falls back to 127.0.0.1 where the host's own name has no address of this machine.
                kept.setdefault("GLOO_SOCKET_IFNAME", name)
            return kept
        return nccl_environment(self.place.scratch.resolve(), self.plan.timeout_s) | kept


def nccl_environment(scratch: Path, timeout_s: float) -> dict[str, str]:
    """Return variables that help to find a hang of NCCL; the environment overrides them.

    The flight recorder keeps the last collectives of every rank; the launcher requests them through the pipe
    before it ends hung ranks. NCCL's own watchdog only acts after the run's end, since it identifies no
    culprit. Names: torch 2.13, libtorch_cuda.
    """
    recorder = {"TORCH_FR_BUFFER_SIZE": "2000", "TORCH_FR_DUMP_TEMP_FILE": str(scratch / "nccl-trace-")}
    return {
        **flight_recorder.named(recorder),
        "TORCH_NCCL_DUMP_ON_TIMEOUT": "1",
        "TORCH_NCCL_DEBUG_INFO_PIPE_FILE": str(scratch / "nccl-pipe-"),
        "TORCH_NCCL_ASYNC_ERROR_HANDLING": "1",
        "TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC": str(int(timeout_s + GROUP_TIMEOUT_MARGIN_S)),
        # Without a workspace of a fixed size, cuBLAS refuses deterministic algorithms (resume needs them).
        "CUBLAS_WORKSPACE_CONFIG": ":4096:8",
    }
