"""One training job from its start to its end, in a thread: the states of the service, its machines, its end.

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
from rehearsal.jobs.aws.sagemaker.checkpoints import Checkpoints
from rehearsal.jobs.aws.sagemaker.failures import CAPACITY, INTERNAL, JobFailed, algorithm_error
from rehearsal.jobs.aws.sagemaker.host import Host, Surroundings, command
from rehearsal.jobs.aws.sagemaker.records import JobRecord, Store
from rehearsal.jobs.log_store import LogStore
from rehearsal.jobs.rows import row
from rehearsal.jobs.running.job import Running
from rehearsal.jobs.running.programs import Due, Limits, Programs
from rehearsal.workloads.addresses import Addresses
from rehearsal.workloads.controllers import shares

GROUP = "/aws/sagemaker/TrainingJobs"
SERVICE = "sagemaker.amazonaws.com"
_LOG = logging.getLogger("rehearsal")
_TICK_S, _COPY_S = 0.1, 0.5
_DAY_S = (
    86_400  # source: botocore 1.44.5, StoppingCondition$MaxRuntimeInSeconds ("the default value is 1 day")
)


class End(Enum):
    """How the programs of a job came to their end."""

    DONE = "Completed"
    STOPPED = "Stopped"
    TOO_LONG = "MaxRuntimeExceeded"
    WAITED = "MaxWaitTimeExceeded"
    INTERRUPTED = "Interrupted"


_ENDS = {Due.INTERRUPTED: End.INTERRUPTED, Due.TOO_LONG: End.TOO_LONG, Due.WAITED: End.WAITED}


@dataclass(frozen=True)
class Region:
    """What jobs share: the state, identities, addresses, logs; where the services answer."""

    state: State
    identities: Identities
    addresses: Addresses
    logs: LogStore
    url: str
    credentials: str
    located: Callable[[str], str]
    interruption: Callable[[str], float | None]
    """After how many seconds of training a spot job of this name is interrupted, once; None: never."""

    @property
    def home(self) -> Path:
        """The home of the rehearsal."""
        return self.state.path.parent


class JobRunner(Running[JobRecord, Host]):
    """Runs one job. `slow_s` is for how long its machines take longer, `capacity` whether there are any."""

    def __init__(self, job: JobRecord, region: Region, *, slow_s: float = 0.0, capacity: bool = True) -> None:
        super().__init__(
            job,
            owner=job.arn,
            folder=region.home / "jobs" / job.account / job.region / job.name,
            addresses=region.addresses,
            keep=Store(region.state).put,
        )
        self._region, self._slow_s, self._capacity = region, slow_s, capacity
        self._caller = Caller(str(job.request["RoleArn"]), "SageMaker")
        self._objects = Objects(region.state, self._caller, job.region)
        self._ran_s = 0.0

    def start(self) -> None:
        """Begin."""
        self._change(lambda job: job.entered("Starting"))
        self._thread.start()

    def stop(self) -> None:
        """Ask for the end, as StopTrainingJob does."""
        if not self._stop.is_set():
            self._change(lambda job: job if job.over else job.entered("Stopping", "Stopping"))
        self._stop.set()

    def retag(self, tags: Mapping[str, str]) -> None:
        """Give the job other tags."""
        self._change(lambda job: replace(job, tags=dict(tags)))

    def describe(self) -> list[dict[str, Any]]:
        """A row for each of its machines, of the form of a pod's."""
        job = self._job
        shared = row("TrainingJob", job.region, job.name, job.secondary, message=job.failure)
        return self._rows(shared)

    # -- the thread ------------------------------------------------------------------------------------

    def _run(self) -> None:
        reason = INTERNAL
        end: End | None = None
        try:
            end = self._work()
        except JobFailed as failed:
            reason = str(failed)
        except Exception:
            _LOG.exception("training job %s", self._job.name)
        trained = bool(self._machines)
        try:
            self._clear()  # who hears of the end finds nothing that runs
        finally:
            self._conclude(end, reason, trained=trained)
            self.over.set()

    def _work(self) -> End:
        """Wait for machines, train, start again after interruptions, upload."""
        algorithm = self._job.request.get("AlgorithmSpecification") or {}
        command(self._job.request)
        images.pulled(self._region.state, algorithm.get("TrainingImage"))
        for text in (self._job.request.get("Environment") or {}).values():
            self._region.located(str(text))  # what it names is started before anything is measured
        if not plans.begun(self._region.state, self._job.request):
            self._change(lambda job: job.entered("Pending"))
            while not plans.begun(self._region.state, self._job.request) and not self._stop.wait(_TICK_S):
                pass
        self._stop.wait(self._slow_s)
        if not self._capacity:
            raise JobFailed(CAPACITY)
        while True:
            end = self._attempt()
            if end is not End.INTERRUPTED:
                break
            self._clear()
            self._change(lambda job: job.entered("Interrupted"))
            self._change(lambda job: job.entered("Starting"))
        if self._machines:
            if not self._stop.is_set() and end is End.DONE:
                self._change(lambda job: job.entered("Uploading"))
            job = self._job
            outputs.check_key(self._region.state, self._caller, job.region, job.request, job.name)
            outputs.upload(self._objects, job.request, job.name, [host.ml for host in self._machines])
        return end

    def _attempt(self) -> End:
        """Once from the inputs to the end of the programs."""
        if self._stop.is_set():
            return End.STOPPED
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
            return End.STOPPED
        began = time.monotonic()
        try:
            end = self._train(checkpoints)
        except JobFailed:
            if checkpoints:
                checkpoints.copy(last=True)
            raise
        finally:
            self._ran_s += time.monotonic() - began
        if checkpoints and end is not End.INTERRUPTED:  # a machine that is taken away copies nothing more
            checkpoints.copy(last=True)
        return end

    def _made(self) -> list[Host]:
        """The machines of an attempt, fresh."""
        job = self._job
        addresses = self._addressed(job.hosts)
        hosts = [Host(job, name, self._folder / name, addresses) for name in job.hosts]
        for host in hosts:
            host.prepare()
        return hosts

    def _checkpoints(self) -> Checkpoints | None:
        place = (self._job.request.get("CheckpointConfig") or {}).get("S3Uri")
        return (
            Checkpoints(self._objects, place, [host.checkpoints for host in self._machines])
            if place
            else None
        )

    def _train(self, checkpoints: Checkpoints | None) -> End:
        """Start the programs and watch them to their end. Raises JobFailed when one fails."""
        programs = self._begin()
        self._change(lambda job: job.entered("Training"))  # who hears of it finds the programs
        try:
            return self._watched(checkpoints, programs)
        finally:
            programs.end()

    def _watched(self, checkpoints: Checkpoints | None, programs: Programs[Host]) -> End:
        limits = self._limits()
        asked: End | None = None
        copied = time.monotonic()
        while True:
            programs.collect()
            if self._killed.is_set():
                raise JobFailed(INTERNAL)
            failed = programs.failed()
            if failed is not None and asked is None:
                host, code = failed
                raise algorithm_error(host.said(), code)
            if programs.over():
                return asked or End.DONE
            if asked is None:
                due = limits.due()
                asked = End.STOPPED if self._stop.is_set() else _ENDS.get(due) if due else None
                if asked is End.INTERRUPTED:
                    return asked
                if asked is not None:
                    if asked is not End.STOPPED:
                        self._change(lambda job: job.entered("Stopping", "Stopping"))
                    programs.stop()
            if checkpoints and time.monotonic() - copied >= _COPY_S:
                checkpoints.copy()
                copied = time.monotonic()
            # A request to stop ends the wait once; afterwards only time passes.
            (self._killed if asked else self._stop).wait(_TICK_S)

    def _begin(self) -> Programs[Host]:
        """Start the program of every machine."""
        now, job, region = int(time.time() * 1000), self._job, self._region
        role = str(job.request["RoleArn"])
        for host, cpus in zip(self._machines, shares(len(self._machines)), strict=True):
            token = region.identities.role_token(role, "SageMaker", SERVICE, host.folder)
            host.start(Surroundings(region.url, region.credentials, token, region.located), cpus)
        streams = [f"{job.name}/{host.name}-{now}" for host in self._machines]
        keep = functools.partial(region.logs.append, job.account, job.region, GROUP)
        return Programs(self._machines, streams, keep)

    def _limits(self) -> Limits:
        condition = self._job.request.get("StoppingCondition") or {}
        longest = condition.get("MaxWaitTimeInSeconds")
        return Limits(
            run_s=float(condition.get("MaxRuntimeInSeconds") or _DAY_S) - self._ran_s,
            wait_s=float(longest) - (time.time() - self._job.created) if longest else None,
            interruption_s=self._region.interruption(self._job.name),
        )

    def _conclude(self, end: End | None, reason: str, *, trained: bool) -> None:
        """Say how it ended: failed for a reason where there is no `end`."""
        if end is None:
            self._change(lambda job: job.failed(reason))
            return
        status = "Completed" if end is End.DONE else "Stopped"
        artifact = outputs.artifact_of(self._job.request, self._job.name) if trained else ""
        self._change(lambda job: replace(job.entered(end.value, status), artifact=artifact))
