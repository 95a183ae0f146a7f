"""One training job from its start to its end, in a thread: the states of the service, its machines, its end.

Source: SageMaker API Reference, DescribeTrainingJob (SecondaryStatus, times) and StoppingCondition; Developer
Guide, "Managed Spot Training" (Interrupted, then Starting again from the checkpoints).
"""

import logging
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path
from typing import Any

from rehearsal.core.state import State
from rehearsal.dataplane import folders, images
from rehearsal.dataplane.identity import Caller, Identities
from rehearsal.dataplane.s3.objects import Objects
from rehearsal.jobs import channels, outputs
from rehearsal.jobs.checkpoints import Checkpoints
from rehearsal.jobs.host import Host, Surroundings, command
from rehearsal.jobs.logs.store import LogStore, Tail
from rehearsal.jobs.records import JobRecord, Store
from rehearsal.jobs.rows import row
from rehearsal.jobs.words import CAPACITY, INTERNAL, JobFailed, algorithm_error
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


class JobRunner:
    """Runs one job. `slow_s` is for how long its machines take longer, `capacity` whether there are any."""

    def __init__(self, job: JobRecord, region: Region, *, slow_s: float = 0.0, capacity: bool = True) -> None:
        self._job, self._region, self._store = job, region, Store(region.state)
        self._slow_s, self._capacity = slow_s, capacity
        self._folder = region.home / "jobs" / job.account / job.region / job.name
        self._caller = Caller(str(job.request["RoleArn"]), "SageMaker")
        self._objects = Objects(region.state, self._caller, job.region)
        self._hosts: list[Host] = []
        self._ran_s = 0.0
        self._lock = threading.Lock()
        self._stop, self._killed = threading.Event(), threading.Event()
        self.over = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"training job {job.name}", daemon=True)

    @property
    def job(self) -> JobRecord:
        """The job as it is now."""
        return self._job

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

    def kill(self) -> None:
        """End its programs at once, because this daemon ends; returns when nothing of it runs."""
        self._killed.set()
        self._stop.set()
        self._thread.join(15.0)

    def describe(self) -> list[dict[str, Any]]:
        """A row for each of its machines, of the form of a pod's."""
        job = self._job
        shared = row("TrainingJob", job.region, job.name, job.secondary, message=job.failure)
        return [{**shared, **host.describe()} for host in list(self._hosts)] or [shared]

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
        trained = bool(self._hosts)
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
        if self._hosts:
            if not self._stop.is_set() and end is End.DONE:
                self._change(lambda job: job.entered("Uploading"))
            job = self._job
            outputs.check_key(self._region.state, self._caller, job.region, job.request, job.name)
            outputs.upload(self._objects, job.request, job.name, [host.ml for host in self._hosts])
        return end

    def _attempt(self) -> End:
        """Once from the inputs to the end of the programs."""
        if self._stop.is_set():
            return End.STOPPED
        self._change(lambda job: replace(job.entered("Downloading"), started=job.started or time.time()))
        self._hosts = self._made()
        for channel in self._job.request.get("InputDataConfig") or ():
            places = [host.channel(str(channel["ChannelName"])) for host in self._hosts]
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
        addresses = {name: self._region.addresses.of(f"{self._owner}{name}") for name in job.hosts}
        hosts = [Host(job, name, self._folder / name, addresses) for name in job.hosts]
        for host in hosts:
            host.prepare()
        return hosts

    def _checkpoints(self) -> Checkpoints | None:
        place = (self._job.request.get("CheckpointConfig") or {}).get("S3Uri")
        return (
            Checkpoints(self._objects, place, [host.checkpoints for host in self._hosts]) if place else None
        )

    def _train(self, checkpoints: Checkpoints | None) -> End:
        """Start the programs and watch them to their end. Raises JobFailed when one fails."""
        streams = self._begin()
        self._change(lambda job: job.entered("Training"))  # who hears of it finds the programs
        try:
            return self._watched(checkpoints, streams)
        finally:
            for host in self._hosts:
                host.kill()
            self._collect(streams, rest=True)

    def _watched(self, checkpoints: Checkpoints | None, streams: dict[str, Tail]) -> End:
        watch = _Watch(self._job, self._region.interruption(self._job.name), self._ran_s)
        asked: End | None = None
        copied = time.monotonic()
        while True:
            self._collect(streams)
            codes = [host.exit_code() for host in self._hosts]
            if self._killed.is_set():
                raise JobFailed(INTERNAL)
            failed = next((host for host in self._hosts if host.exit_code() not in (None, 0)), None)
            if failed is not None and asked is None:
                code = failed.exit_code()
                assert code is not None
                raise algorithm_error(failed.said(), code)
            if None not in codes:
                return asked or End.DONE
            if asked is None:
                asked = End.STOPPED if self._stop.is_set() else watch.due()
                if asked is End.INTERRUPTED:
                    return asked
                if asked is not None:
                    self._end_politely(asked)
            if checkpoints and time.monotonic() - copied >= _COPY_S:
                checkpoints.copy()
                copied = time.monotonic()
            # A request to stop ends the wait once; afterwards only time passes.
            (self._killed if asked else self._stop).wait(_TICK_S)

    def _begin(self) -> dict[str, Tail]:
        """Start the program of every machine; the log stream of each and its file."""
        now, job = int(time.time() * 1000), self._job
        streams = {}
        for host, cpus in zip(self._hosts, shares(len(self._hosts)), strict=True):
            token = self._region.identities.role_token(
                str(job.request["RoleArn"]), "SageMaker", SERVICE, host.folder
            )
            url, credentials = self._region.url, self._region.credentials
            host.start(Surroundings(url, credentials, token, self._region.located), cpus)
            streams[f"{job.name}/{host.name}-{now}"] = Tail(host.log)
        return streams

    def _end_politely(self, asked: End) -> None:
        """SIGTERM, and SIGKILL when the grace period is over."""
        if asked is not End.STOPPED:
            self._change(lambda job: job.entered("Stopping", "Stopping"))
        for host in self._hosts:
            if host.process is not None:
                host.process.stop()

    def _collect(self, streams: dict[str, Tail], *, rest: bool = False) -> None:
        """Move what the programs have written to their log streams."""
        for stream, tail in streams.items():
            lines = tail.lines(rest=rest)
            if lines:
                self._region.logs.append(self._job.account, self._job.region, GROUP, stream, lines)

    def _conclude(self, end: End | None, reason: str, *, trained: bool) -> None:
        """Say how it ended: failed for a reason where there is no `end`."""
        if end is None:
            self._change(lambda job: job.failed(reason))
            return
        status = "Completed" if end is End.DONE else "Stopped"
        artifact = outputs.artifact_of(self._job.request, self._job.name) if trained else ""
        self._change(lambda job: replace(job.entered(end.value, status), artifact=artifact))

    def _clear(self) -> None:
        """Nothing of the machines is left."""
        for host in self._hosts:
            host.kill()
        self._hosts = []
        self._region.addresses.release(self._owner)
        folders.remove(self._folder)

    @property
    def _owner(self) -> str:
        return f"{self._job.arn}|"

    def _change(self, change: Callable[[JobRecord], JobRecord]) -> None:
        with self._lock:
            self._job = change(self._job)
            self._store.put(self._job)


class _Watch:
    """When a job that trains has to end, by the clock."""

    def __init__(self, job: JobRecord, interruption: float | None, ran_s: float) -> None:
        condition = job.request.get("StoppingCondition") or {}
        now = time.monotonic()
        self._limit = now + float(condition.get("MaxRuntimeInSeconds") or _DAY_S) - ran_s
        longest = condition.get("MaxWaitTimeInSeconds")
        left = float(longest) - (time.time() - job.created) if longest else float("inf")
        self._patience = now + left
        self._interruption = now + interruption if interruption is not None else float("inf")

    def due(self) -> End | None:
        """What has to happen now, None for nothing."""
        now = time.monotonic()
        if now >= self._interruption:
            return End.INTERRUPTED
        if now >= self._limit:
            return End.TOO_LONG
        return End.WAITED if now >= self._patience else None
