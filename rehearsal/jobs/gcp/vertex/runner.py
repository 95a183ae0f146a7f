"""Run one custom job in a thread: states, replicas, restarts, retries.

Source: Vertex AI documentation, "Understand the serverless training service" and "Use Spot VMs with
training"; googleapis/python-aiplatform types/custom_job.py (Scheduling).
"""

import functools
import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any

from rehearsal.core.state import State
from rehearsal.dataplane.gcp.identity import machine_identity
from rehearsal.dataplane.gcp.server import GooglePlane
from rehearsal.jobs.gcp.vertex.failures import (
    INTERNAL,
    PREEMPTIONS,
    RESTARTS_OF_A_WORKER,
    RETRIES,
    STOPPED,
    CustomJobError,
    ExitConsequence,
    consequence,
    exited,
    no_resources,
)
from rehearsal.jobs.gcp.vertex.records import (
    CANCELLED,
    CANCELLING,
    FAILED,
    PENDING,
    QUEUED,
    RUNNING,
    SUCCEEDED,
    CustomJob,
    CustomJobStore,
    JobFailure,
)
from rehearsal.jobs.gcp.vertex.replica import JobReplica, ReplicaEnvironment, runnable
from rehearsal.jobs.log_store import LogStore
from rehearsal.jobs.rows import row
from rehearsal.jobs.running.job import JobThread
from rehearsal.jobs.running.programs import Due, ProgramLimits, Programs
from rehearsal.workloads.addresses import Addresses
from rehearsal.workloads.controllers import shares

SERVICE = "service"
"""The log stream of the service itself."""
_LOG = logging.getLogger("rehearsal")
_TICK_S = 0.1
# Other machines take minutes to start; here long enough for a client to see that the job waits.
_MACHINES_S = 2.0


class AttemptEnd(Enum):
    """End of an attempt that did not fail the job."""

    DONE = auto()
    STOPPED = auto()
    RETRIED = auto()
    PREEMPTED = auto()


@dataclass(frozen=True)
class CustomJobContext:
    """Shared by all jobs: state, addresses, logs, URLs of APIs and services, quota usage."""

    state: State
    addresses: Addresses
    logs: LogStore
    plane: GooglePlane
    located: Callable[[str], str]
    """Replaces addresses of Cloud Run services in a text by their local URLs."""
    interruption: Callable[[str], float | None]
    """Seconds of running until a spot job of this name is preempted, once; None: never."""
    crowded: Callable[[CustomJob], bool]
    """True when other jobs leave no room for this one within the project's quotas."""
    gate: threading.Lock = field(default_factory=threading.Lock)
    """Held while a job checks the quotas and reserves its usage."""


def log_group(job: CustomJob) -> str:
    """Log group of a job."""
    return f"ml_job/{job.id}"


class CustomJobRunner(JobThread[CustomJob, JobReplica]):
    """Runs one job; `slow_s` delays its machines, `capacity` is False when there are none."""

    def __init__(
        self, job: CustomJob, shared: CustomJobContext, *, slow_s: float = 0.0, capacity: bool = True
    ) -> None:
        super().__init__(
            job,
            owner=job.name,
            folder=shared.state.path.parent / "jobs" / job.project / job.region / job.id,
            addresses=shared.addresses,
            keep=CustomJobStore(shared.state).put,
        )
        self._shared, self._slow_s, self._capacity = shared, slow_s, capacity
        self._append = functools.partial(shared.logs.append, job.project, job.region, log_group(job))
        self._around, self._cpus = _environment_of(job, shared), shares(len(job.replicas))
        self._ran_s = 0.0
        self._last = INTERNAL

    def start(self) -> None:
        """Start the thread."""
        self._change(lambda job: job)
        self._thread.start()

    def cancel(self) -> None:
        """Cancel the job, as customJobs.cancel does."""
        if not self._stop.is_set():
            self._change(lambda job: job if job.over else job.entered(CANCELLING))
        self._stop.set()

    def describe(self) -> list[dict[str, Any]]:
        """A row for each replica, in the form of a pod's."""
        job = self._job
        message = job.failure.message if job.failure else ""
        return self._rows(row("CustomJob", job.region, job.display_name, job.state, message=message))

    # -- the thread ------------------------------------------------------------------------------------

    def _run(self) -> None:
        state, failure = FAILED, INTERNAL
        try:
            ended = self._work()
            state = SUCCEEDED if ended is AttemptEnd.DONE else CANCELLED
        except CustomJobError as failed:
            failure = failed.failure
        except Exception:
            _LOG.exception("custom job %s", self._job.name)
        why: JobFailure | None = {FAILED: failure, CANCELLED: STOPPED}.get(state)
        try:
            self._clear()  # before the end is visible, nothing runs any more
        finally:
            if state == SUCCEEDED:
                self._append(SERVICE, ["Job completed successfully."])
            self._change(lambda job: job.entered(state, why))
            self.over.set()

    def _work(self) -> AttemptEnd:
        """Wait for quota and machines, run, retry as often as the service does."""
        for pool in self._job.spec["workerPoolSpecs"]:
            runnable(pool.get("containerSpec") or {})
        while not self._stop.is_set() and not self._admitted():
            self._stop.wait(_TICK_S)
        self._append(SERVICE, ["Waiting for training program to start."])
        self._stop.wait(self._slow_s)
        if not self._capacity:
            raise CustomJobError(no_resources(self._job.region))
        final = bool(self._job.scheduling.get("disableRetries"))
        left = {AttemptEnd.RETRIED: RETRIES, AttemptEnd.PREEMPTED: PREEMPTIONS}
        if final:
            left = dict.fromkeys(left, 0)
        while (end := self._attempt()) in left:
            if not left[end]:
                raise CustomJobError(self._last)
            left[end] -= 1
            self._clear()
            self._append(SERVICE, [f"{self._last.message} The job is tried again."])
            self._change(lambda job: job.entered(PENDING))
            if end is AttemptEnd.PREEMPTED:
                self._stop.wait(_MACHINES_S)
        return end

    def _admitted(self) -> bool:
        """Return whether the quotas leave room, which the job then occupies."""
        with self._shared.gate:
            if self._shared.crowded(self._job):
                return False
            self._change(lambda job: job.entered(PENDING) if job.state == QUEUED else job)
            return True

    def _attempt(self) -> AttemptEnd:
        if self._stop.is_set():
            return AttemptEnd.STOPPED
        job = self._job
        addresses = self._addressed(list(job.replicas))
        self._machines = [JobReplica(job, name, self._folder / name, addresses) for name in job.replicas]
        for replica in self._machines:
            replica.prepare(self._shared.state, self._around.members)
        for replica, cpus in zip(self._machines, self._cpus, strict=True):
            replica.start(self._around, cpus)
        self._append(SERVICE, ["Job is running."])
        self._change(lambda job: job.entered(RUNNING) if job.state == PENDING else job)
        began = time.monotonic()
        programs = Programs(self._machines, list(job.replicas), self._append)
        try:
            return self._watch(programs)
        finally:
            programs.end()
            self._ran_s += time.monotonic() - began

    def _watch(self, programs: Programs[JobReplica]) -> AttemptEnd:
        """Watch the programs until they end. Raises CustomJobError when one fails for good."""
        job = self._job
        limits = ProgramLimits(run_s=job.timeout_s - self._ran_s)
        ending = False
        while True:
            programs.collect()
            if self._killed.is_set():
                raise CustomJobError(INTERNAL)
            if ending and programs.over():
                return AttemptEnd.STOPPED
            # "completes successfully when its primary replica exits with exit code 0"
            if not ending and self._machines[0].exit_code() == 0:
                return AttemptEnd.DONE
            failed = None if ending else programs.failed()
            if failed is not None:
                found = self._after(*failed)
                if found is not ExitConsequence.RESTARTED:
                    if found is ExitConsequence.FINAL:
                        raise CustomJobError(self._last)
                    return AttemptEnd.RETRIED
            # Evaluated repeatedly: an interruption may be declared while the job runs.
            taken_s = self._shared.interruption(job.display_name) if job.spot else None
            if taken_s is not None:
                limits.interrupt(taken_s)
            due = None if ending else limits.due()
            if due is Due.INTERRUPTED:
                self._last = no_resources(job.region)
                return AttemptEnd.PREEMPTED
            if not ending and (self._stop.is_set() or due is not None):
                ending = True
                self._change(lambda job: job.entered(CANCELLING))
                programs.stop()
            # A cancel request ends this wait once; later waits are plain pauses.
            (self._killed if ending else self._stop).wait(_TICK_S)

    def _after(self, replica: JobReplica, code: int) -> ExitConsequence:
        """Consequence of a failed replica; where allowed, it has been restarted."""
        scheduling = self._job.scheduling
        self._last = exited(replica.name, code)
        found = consequence(code, disable_retries=bool(scheduling.get("disableRetries")))
        if found is not ExitConsequence.RESTARTED:
            return found
        if replica.restarts >= RESTARTS_OF_A_WORKER:
            return ExitConsequence.RETRIED
        replica.restarts += 1
        together = scheduling.get("restartJobOnWorkerRestart")
        for one, cpus in zip(self._machines, self._cpus, strict=True):
            if together or one is replica:
                one.kill()
                one.start(self._around, cpus)
        return ExitConsequence.RESTARTED


def _environment_of(job: CustomJob, shared: CustomJobContext) -> ReplicaEnvironment:
    identity = machine_identity(job.account, job.project, job.region)
    host = shared.plane.metadata_host(identity)
    return ReplicaEnvironment(shared.plane.url, host, identity.members, shared.located)
