"""What programs of a rehearsal's user ask of AWS, and all that runs behind it; Google's part beside it."""

import threading
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from rehearsal import doors
from rehearsal.core.faulty import FaultPlan
from rehearsal.core.model import RefusalError
from rehearsal.core.state import State
from rehearsal.dataplane import folders
from rehearsal.dataplane.http import Service
from rehearsal.dataplane.server import CREDENTIALS_PATH, Dataplane
from rehearsal.jobs.faults import JobFaults, Met
from rehearsal.jobs.functions.invoke import Functions
from rehearsal.jobs.groups import SecurityGroups
from rehearsal.jobs.logs.api import Logs
from rehearsal.jobs.logs.store import LogStore
from rehearsal.jobs.mlflow_apps import MlflowApps
from rehearsal.jobs.sagemaker.api import TYPE, SageMaker
from rehearsal.jobs.sagemaker.records import JobRecord, Store
from rehearsal.jobs.sagemaker.runner import JobRunner, Region
from rehearsal.jobs.sagemaker.searches import Searches
from rehearsal.jobs.sagemaker.tuning import Tuning
from rehearsal.jobs.sagemaker.words import INTERNAL
from rehearsal.jobs.spending import Budgets
from rehearsal.jobs.topics import Topics
from rehearsal.jobs.vertex.service import GoogleServices
from rehearsal.workloads.addresses import Addresses


class Services:
    """Answers at the port of the home from the start until `stop`; runs jobs, functions and MLflow apps.

    Raises RefusalError when another program has the port.
    """

    def __init__(self, state: State, home: Path, plan: FaultPlan) -> None:
        self._state, self._home = state, home
        self._faults = JobFaults(plan, home / "faults.json", TYPE)
        self._store, self._logs = Store(state), LogStore(home)
        self._runners: dict[str, JobRunner] = {}
        self._lock = threading.Lock()
        self._functions, self._apps = Functions(state, self._logs), MlflowApps(state)
        self._searches = Searches(state, self._logs, lambda job: self.begin(job, Met()), self.stop_job)
        self._fail_what_ran()
        services: dict[str, Service] = {
            "sagemaker": SageMaker(state, self, self._faults, Tuning(state, self._searches)),
            "logs": Logs(state, self._logs),
            "lambda": self._functions,
            "budgets": Budgets(state),
            "sns": Topics(state, home),
            "ec2": SecurityGroups(state),
        }
        try:
            self._plane = Dataplane(state, services, port=doors.port(home))
        except OSError as error:
            why = f"{doors.url(home)} of this rehearsal is taken by another program ({error})"
            raise RefusalError(
                "PortTaken",
                why,
                f"End that program, or remove {home / doors.FILES['aws']}: then another port is chosen.",
            ) from error
        self._functions.open(self._plane.identities, self._plane.url)
        addresses = Addresses(state)
        self._google = GoogleServices(state, home, plan, self._logs, addresses)
        self._region = Region(
            state=state,
            identities=self._plane.identities,
            addresses=addresses,
            logs=self._logs,
            url=self._plane.url,
            credentials=self._plane.url + CREDENTIALS_PATH,
            located=self._apps.located,
            interruption=self._faults.interruption,
        )

    @property
    def url(self) -> str:
        """Where the services answer."""
        return self._plane.url

    @property
    def google(self) -> GoogleServices:
        """The part of Google Cloud."""
        return self._google

    # -- the daemon's side -----------------------------------------------------------------------------

    def live_workloads(self) -> list[dict[str, Any]]:
        """The machines of jobs that run, calls of functions, MLflow servers."""
        mine = [row for runner in self._running() if not runner.job.over for row in runner.describe()]
        mine += self._searches.live()
        return [*mine, *self._google.live(), *self._functions.live(), *self._apps.live()]

    def locate(self, name: str) -> str | None:
        """Where a service with this ARN or address answers on this machine; None when none does."""
        return self._apps.url(name) if name.startswith("arn:") else self._google.locate(name)

    def stop(self) -> None:
        """End everything that runs."""
        self._plane.stop()
        self._apps.stop()  # a job may wait for one
        for runner in self._running():
            runner.kill()
        self._google.stop()
        self._functions.stop()

    # -- what SageMaker asks for -----------------------------------------------------------------------

    def begin(self, job: JobRecord, met: Met) -> None:
        """Start a new job."""
        region = self._region if job.spot else replace(self._region, interruption=lambda _: None)
        runner = JobRunner(job, region, slow_s=met.slow_s, capacity=met.capacity)
        with self._lock:
            self._runners[job.arn] = runner
        runner.start()

    def stop_job(self, job: JobRecord) -> None:
        """Ask for the end of a job that runs."""
        with self._lock:
            runner = self._runners[job.arn]
        runner.stop()

    def retag(self, job: JobRecord, tags: Mapping[str, str]) -> None:
        """Give a job other tags."""
        with self._lock:
            runner = self._runners.get(job.arn)
        if runner is not None:
            runner.retag(tags)
        else:
            self._store.put(replace(job, tags=dict(tags)))

    def _fail_what_ran(self) -> None:
        """What was under way when the daemon before this one ended has failed."""
        self._searches.fail_what_ran()
        for job in self._store.all():
            if not job.over:
                self._store.put(job.failed(INTERNAL))
        folders.remove(self._home / "jobs")

    def _running(self) -> list[JobRunner]:
        """The jobs that have not ended; those that have are forgotten."""
        with self._lock:
            self._runners = {arn: one for arn, one in self._runners.items() if not one.over.is_set()}
            return list(self._runners.values())
