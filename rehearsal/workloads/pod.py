"""One pod: waits until it may start, runs and restarts its containers, and keeps its state."""

import contextlib
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from rehearsal.workloads import probes
from rehearsal.workloads.images import pullable
from rehearsal.workloads.process import ContainerProcess
from rehearsal.workloads.translate import (
    ContainerConfigError,
    Object,
    Pod,
    ProcessPlan,
    Surroundings,
    is_ours,
    plan,
)
from rehearsal.workloads.waiting import WaitingError

NOT_OURS = "not run: image is not ours"
_TICK_S = 0.05
_RETRY_S = 0.25
# source: kubernetes.io/docs/concepts/workloads/pods/pod-lifecycle (restart back-off 10 s, doubled, at most
# 5 min, reset after 10 min); shortened tenfold here so that a crash loop shows within a rehearsal.
_BACKOFF_S, _BACKOFF_MAX_S, _BACKOFF_RESET_S = 1.0, 30.0, 60.0
_MESSAGE_BYTES = 4096
_LOG_TAIL_BYTES, _LOG_TAIL_LINES = 2048, 80


class PodHost(Protocol):
    """Services of the cluster for a pod."""

    def prepare(self, pod: Pod, container: Object) -> Surroundings:
        """Mount everything a container needs. Idempotent. Raises WaitingError when something is missing."""


@dataclass(frozen=True)
class PodState:
    """State of a pod; `exit_code` and `message` are those of the container that ended last."""

    phase: str = "Pending"
    ready: bool = False
    reason: str = ""
    message: str = ""
    exit_code: int | None = None
    container: str = ""
    restarts: int = 0
    run: bool = True
    notes: tuple[str, ...] = field(default=())

    @property
    def over(self) -> bool:
        """True when it will not run again."""
        return self.phase in ("Succeeded", "Failed")


class PodRunner:
    """A thread that runs one pod like a kubelet. `on_change` is called after every change."""

    def __init__(
        self,
        pod: Pod,
        node: PodHost,
        log: Path,
        *,
        restart: str,
        cpus: Sequence[int] = (),
        on_change: Callable[[], None] = lambda: None,
    ) -> None:
        self.pod, self.log = pod, log
        self._node, self._restart, self._cpus, self._on_change = node, restart, cpus, on_change
        self._state = PodState()
        self._stopping = threading.Event()
        self._processes: dict[str, ContainerProcess] = {}
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._run, name=f"pod {pod.namespace}/{pod.name}", daemon=True)

    @property
    def state(self) -> PodState:
        """The present state."""
        return self._state

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self, *, now: bool = False) -> None:
        """Request the end; `now` skips the grace period. Returns at once, see `join`."""
        self._stopping.set()
        with self._lock:
            for process in self._processes.values():
                if now:
                    process.kill()
                else:
                    process.stop()

    def join(self, timeout_s: float) -> bool:
        """Wait until no process of the pod runs; returns whether that is so."""
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def exits(self) -> dict[str, int]:
        """The exit codes of the containers that ended, init containers last."""
        groups = (self.pod.spec.get("containers") or (), self.pod.spec.get("initContainers") or ())
        with self._lock:
            ended = {name: process.exit_code() for name, process in self._processes.items()}
        names = [str(container["name"]) for group in groups for container in group]
        return {name: code for name in names if (code := ended.get(name)) is not None}

    def pids(self) -> list[int]:
        """Every living process of the pod, without supervisors."""
        with self._lock:
            processes = list(self._processes.values())
        return [pid for process in processes for pid in process.pids()]

    def supervisors(self) -> list[int]:
        """The supervisors of its containers that still run."""
        with self._lock:
            return [p.supervisor_pid for p in self._processes.values() if p.exit_code() is None]

    def note(self, text: str) -> None:
        """Add a line to the pod's log and to its notes."""
        self.log.parent.mkdir(parents=True, exist_ok=True)  # a note may precede the start of the pod
        with self.log.open("a") as file:
            file.write(f"[rehearsal] {text}\n")
        self._change(notes=(*self._state.notes, text))

    def log_tail(self, lines: int = 12) -> list[str]:
        """The last lines of its log."""
        with contextlib.suppress(OSError):
            return self.log.read_text(errors="replace").splitlines()[-lines:]
        return []

    # -- the thread ------------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            self.log.parent.mkdir(parents=True, exist_ok=True)
            for container in self.pod.spec.get("initContainers") or ():
                if not self._initialise(container):
                    return
            containers = list(self.pod.spec.get("containers") or ())
            threads = [threading.Thread(target=self._keep, args=(c,), daemon=True) for c in containers]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            if not self._state.over:  # stopped, or not run here, so it never ends by itself
                self._stopping.wait()
        finally:
            if not self._state.over:
                self._change(phase="Failed", ready=False, reason=self._state.reason or "Terminated")

    def _initialise(self, container: Object) -> bool:
        """Run one init container; returns whether the pod may continue."""
        while not self._stopping.is_set():
            code = self._once(container, initial=True)
            if code in (0, None) and not self._stopping.is_set():
                return True
            if self._restart == "Never":
                self._change(phase="Failed", ready=False)
                return False
            self._back_off(0)
        return False

    def _keep(self, container: Object) -> None:
        """Run one container as the restart policy of its pod requires."""
        backoff = 0
        while not self._stopping.is_set():
            began = time.monotonic()
            code = self._once(container)
            if code is None:
                return
            if self._stopping.is_set():
                self._change(ready=False)
                return
            if self._restart == "Never" or (self._restart == "OnFailure" and code == 0):
                self._finish(code)
                return
            backoff = 0 if time.monotonic() - began > _BACKOFF_RESET_S else backoff
            self._back_off(backoff)
            backoff += 1

    def _finish(self, code: int) -> None:
        if code != 0:
            self._change(phase="Failed", ready=False)
        elif all(process.exit_code() is not None for process in self._processes.values()):
            self._change(phase="Succeeded", ready=False)

    def _once(self, container: Object, *, initial: bool = False) -> int | None:
        """Run a container once; its exit code, or None when it does not run here or the pod was stopped."""
        prepared = self._prepared(container)
        if prepared is None:
            return None
        around, wanted = prepared
        if wanted is None:
            if initial:
                self.note(f"init container {container['name']}: {NOT_OURS} ({container.get('image')})")
                return None
            finished = "Running" if self._restart == "Always" else "Succeeded"
            self._change(
                phase=finished, ready=finished == "Running", reason="", run=False,
                message=f"{NOT_OURS} ({container.get('image')})",
            )  # fmt: skip
            return None
        process = self._launch(container, around, wanted)
        if process is None:
            return None
        self._watch(container, process)
        code = process.exit_code()
        assert code is not None
        reason = "Completed" if code == 0 else "Error"
        self._change(
            ready=False, reason=reason, exit_code=code, container=str(container["name"]),
            message=self._termination_message(container, around, code),
        )  # fmt: skip
        return code

    def _prepared(self, container: Object) -> tuple[Surroundings, ProcessPlan | None] | None:
        """Wait until a container may start; no plan if it does not run here, None if stopped first."""
        while not self._stopping.is_set():
            try:
                if image := container.get("image"):
                    pullable(str(image))
                around = self._node.prepare(self.pod, container)
                ours = is_ours(container, around.config_files)
                return around, plan(container, self.pod, around) if ours else None
            except WaitingError as error:
                self._change(ready=False, reason=error.reason, message=error.message)
            except ContainerConfigError as error:
                self._change(ready=False, reason="CreateContainerConfigError", message=str(error))
            except OSError as error:
                # A full disk or an unavailable API server: a kubelet retries, too, and reports why.
                self._change(ready=False, reason="CreateContainerError", message=str(error))
            self._stopping.wait(_RETRY_S)
        return None

    def _launch(
        self, container: Object, around: Surroundings, wanted: ProcessPlan
    ) -> ContainerProcess | None:
        _termination_file(container, around).write_bytes(b"")
        # Respect the grace period, but a rehearsal does not wait for minutes.
        grace_s = min(float(self.pod.spec.get("terminationGracePeriodSeconds") or 30), 5.0)
        with self._lock:
            if self._stopping.is_set():
                return None
            process = ContainerProcess(wanted, self.log, self._cpus, grace_s)
            self._processes[str(container["name"])] = process
        self._change(phase="Running", reason="", message="")
        return process

    def _watch(self, container: Object, process: ContainerProcess) -> None:
        """Probe a running container until it ends."""
        prober = probes.Prober(container, self.pod.ip)
        while process.wait(_TICK_S) is None:
            if prober.due():
                ready = prober.ready()
                if ready != self._state.ready or prober.problem != self._state.message:
                    self._change(ready=ready, message=prober.problem)
                if prober.is_dead():
                    self.note(f"Liveness probe failed: {prober.problem}; container will be restarted")
                    process.stop()

    def _back_off(self, failures: int) -> None:
        delay = min(_BACKOFF_S * 2**failures, _BACKOFF_MAX_S)
        self._change(restarts=self._state.restarts + 1, reason="CrashLoopBackOff", ready=False)
        self._stopping.wait(delay)

    def _termination_message(self, container: Object, around: Surroundings, code: int) -> str:
        """The termination message, or the end of the log if the container specifies that."""
        message = _termination_file(container, around).read_bytes()[:_MESSAGE_BYTES].decode(errors="replace")
        fallback = container.get("terminationMessagePolicy") == "FallbackToLogsOnError"
        if not message.strip() and fallback and code != 0:
            message = "\n".join(self.log_tail(_LOG_TAIL_LINES))[-_LOG_TAIL_BYTES:]
        return message.strip()

    def _change(self, **fields: Any) -> None:
        changed = replace(self._state, **fields)
        if changed != self._state:
            self._state = changed
            self._on_change()


def _termination_file(container: Object, around: Surroundings) -> Path:
    return around.names.paths[str(container.get("terminationMessagePath") or "/dev/termination-log")]
