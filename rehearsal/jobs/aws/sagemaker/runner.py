"""Run one training job in a thread: states of the service, machines, end.

Source: SageMaker API Reference, DescribeTrainingJob (SecondaryStatus, times) and StoppingCondition; Developer
Guide, "Managed Spot Training" (Interrupted, then Starting again from the checkpoints).
"""

import functools
import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path
from typing import Any

from rehearsal.core.state import State
from rehearsal.dataplane.aws import images
from rehearsal.dataplane.aws.identity import Caller, Identities
from rehearsal.dataplane.aws.s3.objects import Objects
from rehearsal.jobs.aws.sagemaker import channels, outputs, plans
from rehearsal.jobs.aws.sagemaker.checkpoints import CheckpointSync
from rehearsal.jobs.aws.sagemaker.failures import CAPACITY, INTERNAL, TrainingJobError, algorithm_error
from rehearsal.jobs.aws.sagemaker.host import HostEnvironment, TrainingHost, command
from rehearsal.jobs.aws.sagemaker.records import TrainingJobRecord, TrainingJobStore
from rehearsal.jobs.log_store import LogStore
from rehearsal.jobs.rows import row
from rehearsal.jobs.running.job import JobThread
from rehearsal.jobs.running.programs import Due, ProgramLimits, Programs
from rehearsal.workloads.addresses import Addresses
from rehearsal.workloads.controllers import shares

GROUP = "/aws/sagemaker/TrainingJobs"
SERVICE = "sagemaker.amazonaws.com"
_LOG = logging.getLogger("rehearsal")
_TICK_S, _COPY_S = 0.1, 0.5
_DAY_S = (
    86_400  # source: botocore 1.44.5, StoppingCondition$MaxRuntimeInSeconds ("the default value is 1 day")
)


class TrainingEnd(Enum):
    """Reason for which the programs of a job ended."""

    DONE = "Completed"
    STOPPED = "Stopped"
    TOO_LONG = "MaxRuntimeExceeded"
    WAITED = "MaxWaitTimeExceeded"
    INTERRUPTED = "Interrupted"


_ENDS = {due: TrainingEnd[due.name] for due in (Due.INTERRUPTED, Due.TOO_LONG, Due.WAITED)}


@dataclass(frozen=True)
class TrainingContext:
    """Shared by all jobs: state, identities, addresses, logs, URLs of the services."""

    state: State
    identities: Identities
    addresses: Addresses
    logs: LogStore
    url: str
    credentials: str
    named: Callable[[str], None]
    """Starts the MLflow Apps whose ARNs are in a text."""
    interruption: Callable[[str], float | None]
    """Seconds of training until a spot job of this name is interrupted, once; None: never."""

    @property
    def home(self) -> Path:
        """The home of the rehearsal."""
        return self.state.path.parent


class JobRunner(JobThread[TrainingJobRecord, TrainingHost]):
    """Runs one job; `slow_s` delays its machines, `capacity` is False when there are none."""

    def __init__(
        self, job: TrainingJobRecord, shared: TrainingContext, *, slow_s: float = 0.0, capacity: bool = True
    ) -> None:
        super().__init__(
            job,
            owner=job.arn,
            folder=shared.home / "jobs" / job.account / job.region / job.name,
            addresses=shared.addresses,
            keep=TrainingJobStore(shared.state).put,
        )
        self._shared, self._slow_s, self._capacity = shared, slow_s, capacity
        self._caller = Caller(str(job.request["RoleArn"]), "SageMaker")
        self._objects = Objects(shared.state, self._caller, job.region)
        self._ran_s = 0.0

    def start(self) -> None:
        """Start the thread."""
        self._change(lambda job: job.entered("Starting"))
        self._thread.start()

    def stop(self) -> None:
        """Stop the job, as StopTrainingJob does."""
        if not self._stop.is_set():
            self._change(lambda job: job if job.over else job.entered("Stopping", "Stopping"))
        self._stop.set()

    def retag(self, tags: Mapping[str, str]) -> None:
        """Replace the tags of the job."""
        self._change(lambda job: replace(job, tags=dict(tags)))

    def describe(self) -> list[dict[str, Any]]:
        """A row for each machine, in the form of a pod's."""
        job = self._job
        whole = row("TrainingJob", job.region, job.name, job.secondary, message=job.failure)
        return self._rows(whole)

    # -- the thread ------------------------------------------------------------------------------------

    def _run(self) -> None:
        reason = INTERNAL
        end: TrainingEnd | None = None
        try:
            end = self._work()
        except TrainingJobError as failed:
            reason = str(failed)
        except Exception:
            _LOG.exception("training job %s", self._job.name)
        trained = bool(self._machines)
        try:
            self._clear()  # before the end is visible, nothing runs any more
        finally:
            self._conclude(end, reason, trained=trained)
            self.over.set()

    def _work(self) -> TrainingEnd:
        """Wait for machines, train, restart after interruptions, upload."""
        algorithm = self._job.request.get("AlgorithmSpecification") or {}
        command(self._job.request)
        images.pulled(self._shared.state, algorithm.get("TrainingImage"))
        for text in (self._job.request.get("Environment") or {}).values():
            self._shared.named(str(text))  # before anything is measured
        if not plans.begun(self._shared.state, self._job.request):
            self._change(lambda job: job.entered("Pending"))
            while not plans.begun(self._shared.state, self._job.request) and not self._stop.wait(_TICK_S):
                pass
        self._stop.wait(self._slow_s)
        if not self._capacity:
            raise TrainingJobError(CAPACITY)
        while True:
            end = self._attempt()
            if end is not TrainingEnd.INTERRUPTED:
                break
            self._clear()
            self._change(lambda job: job.entered("Interrupted"))
            self._change(lambda job: job.entered("Starting"))
        if self._machines:
            if not self._stop.is_set() and end is TrainingEnd.DONE:
                self._change(lambda job: job.entered("Uploading"))
            job = self._job
            outputs.check_key(self._shared.state, self._caller, job.region, job.request, job.name)
            outputs.upload(self._objects, job.request, job.name, [host.ml for host in self._machines])
        return end

    def _attempt(self) -> TrainingEnd:
        if self._stop.is_set():
            return TrainingEnd.STOPPED
        self._change(lambda job: replace(job.entered("Downloading"), started=job.started or time.time()))
        self._machines = self._made()
        for channel in self._job.request.get("InputDataConfig") or ():
            places = [host.channel(str(channel["ChannelName"])) for host in self._machines]
            mode = channels.mode_of(channel, self._job.request)
            channels.download(self._objects, channel, places, mode)
        checkpoints = self._checkpoints()
        if checkpoints:
            checkpoints.download()
        if self._stop.is_set():
            return TrainingEnd.STOPPED
        began = time.monotonic()
        try:
            end = self._train(checkpoints)
        except TrainingJobError:
            if checkpoints:
                checkpoints.copy(last=True)
            raise
        finally:
            self._ran_s += time.monotonic() - began
        if checkpoints and end is not TrainingEnd.INTERRUPTED:  # a reclaimed machine copies nothing
            checkpoints.copy(last=True)
        return end

    def _made(self) -> list[TrainingHost]:
        job = self._job
        addresses = self._addressed(job.hosts)
        hosts = [TrainingHost(job, name, self._folder / name, addresses) for name in job.hosts]
        for host in hosts:
            host.prepare()
        return hosts

    def _checkpoints(self) -> CheckpointSync | None:
        place = (self._job.request.get("CheckpointConfig") or {}).get("S3Uri")
        return (
            CheckpointSync(self._objects, place, [host.checkpoints for host in self._machines])
            if place
            else None
        )

    def _train(self, checkpoints: CheckpointSync | None) -> TrainingEnd:
        """Start the programs and watch them until they end. Raises TrainingJobError when one fails."""
        programs = self._begin()
        self._change(lambda job: job.entered("Training"))  # before the status is visible, the programs run
        try:
            return self._watched(checkpoints, programs)
        finally:
            programs.end()

    def _watched(self, checkpoints: CheckpointSync | None, programs: Programs[TrainingHost]) -> TrainingEnd:
        limits = self._limits()
        ending: TrainingEnd | None = None
        copied = time.monotonic()
        while True:
            programs.collect()
            if self._killed.is_set():
                raise TrainingJobError(INTERNAL)
            failed = programs.failed()
            if failed is not None and ending is None:
                host, code = failed
                raise algorithm_error(host.failure_message(), code)
            if programs.over():
                return ending or TrainingEnd.DONE
            if ending is None:
                # Evaluated repeatedly: an interruption may be declared while the job runs.
                if (taken_s := self._shared.interruption(self._job.name)) is not None:
                    limits.interrupt(taken_s)
                due = limits.due()
                ending = TrainingEnd.STOPPED if self._stop.is_set() else _ENDS.get(due) if due else None
                if ending is TrainingEnd.INTERRUPTED:
                    return ending
                if ending is not None:
                    if ending is not TrainingEnd.STOPPED:
                        self._change(lambda job: job.entered("Stopping", "Stopping"))
                    programs.stop()
            if checkpoints and time.monotonic() - copied >= _COPY_S:
                checkpoints.copy()
                copied = time.monotonic()
            # A stop request ends this wait once; later waits are plain pauses.
            (self._killed if ending else self._stop).wait(_TICK_S)

    def _begin(self) -> Programs[TrainingHost]:
        now, job, shared = int(time.time() * 1000), self._job, self._shared
        role = str(job.request["RoleArn"])
        for host, cpus in zip(self._machines, shares(len(self._machines)), strict=True):
            token = shared.identities.role_token(role, "SageMaker", SERVICE, host.folder)
            host.start(HostEnvironment(shared.url, shared.credentials, token), cpus)
        streams = [f"{job.name}/{host.name}-{now}" for host in self._machines]
        keep = functools.partial(shared.logs.append, job.account, job.region, GROUP)
        return Programs(self._machines, streams, keep)

    def _limits(self) -> ProgramLimits:
        condition = self._job.request.get("StoppingCondition") or {}
        longest = condition.get("MaxWaitTimeInSeconds")
        return ProgramLimits(
            run_s=float(condition.get("MaxRuntimeInSeconds") or _DAY_S) - self._ran_s,
            wait_s=float(longest) - (time.time() - self._job.created) if longest else None,
        )

    def _conclude(self, end: TrainingEnd | None, reason: str, *, trained: bool) -> None:
        """Record the end; without `end`, the job failed with this reason."""
        if end is None:
            self._change(lambda job: job.failed(reason))
            return
        status = "Completed" if end is TrainingEnd.DONE else "Stopped"
        artifact = outputs.artifact_of(self._job.request, self._job.name) if trained else ""
        self._change(lambda job: replace(job.entered(end.value, status), artifact=artifact))
