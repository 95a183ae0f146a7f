"""AWS services for the programs of a rehearsal's user, and what runs behind them."""

import threading
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from rehearsal import service_ports
from rehearsal.core.fault_injection import FaultPlan
from rehearsal.core.model import RefusalError
from rehearsal.core.state import State
from rehearsal.dataplane import folders
from rehearsal.dataplane.aws.http import Service
from rehearsal.dataplane.aws.server import CREDENTIALS_PATH, Dataplane
from rehearsal.jobs.aws.budgets import Budgets
from rehearsal.jobs.aws.functions.invoke import Functions
from rehearsal.jobs.aws.logs import LogsApi
from rehearsal.jobs.aws.mlflow_apps import MlflowApps
from rehearsal.jobs.aws.mlflow_gateway import MlflowGateway
from rehearsal.jobs.aws.sagemaker.api import TYPE, SageMakerApi
from rehearsal.jobs.aws.sagemaker.failures import INTERNAL
from rehearsal.jobs.aws.sagemaker.records import TrainingJobRecord, TrainingJobStore
from rehearsal.jobs.aws.sagemaker.runner import JobRunner, TrainingContext
from rehearsal.jobs.aws.sagemaker.tuning_api import TuningApi
from rehearsal.jobs.aws.sagemaker.tuning_jobs import TuningJobs
from rehearsal.jobs.aws.security_groups import SecurityGroups
from rehearsal.jobs.aws.service_quotas import ServiceQuotas
from rehearsal.jobs.aws.systems_manager import SystemsManager
from rehearsal.jobs.aws.topics import Topics
from rehearsal.jobs.faults import CreateFaults, JobFaults
from rehearsal.jobs.log_store import LogStore
from rehearsal.jobs.rows import row
from rehearsal.slurm.pcs import PcsClusters
from rehearsal.workloads.addresses import Addresses


class AwsServices:
    """Serves at the port of the home from the start until `stop`; runs jobs, functions and MLflow apps.

    Raises RefusalError when another program has the port.
    """

    def __init__(
        self, state: State, home: Path, plan: FaultPlan, logs: LogStore, addresses: Addresses
    ) -> None:
        self._state, self._home = state, home
        self._faults = JobFaults(plan, home / "faults.json", TYPE)
        self._store = TrainingJobStore(state)
        self._runners: dict[str, JobRunner] = {}
        self._lock = threading.Lock()
        self._functions, self._apps = Functions(state, logs), MlflowApps(state)
        self._searches = TuningJobs(state, logs, lambda job: self.begin(job, CreateFaults()), self.stop_job)
        self._fail_what_ran()
        self._slurm = PcsClusters(state, home)
        commands = SystemsManager(state, self._slurm, home)
        services: dict[str, Service] = {
            "sagemaker": SageMakerApi(
                state, self, self._faults, TuningApi(state, self._searches, self._faults.quotas)
            ),
            "logs": LogsApi(state, logs),
            "lambda": self._functions,
            "budgets": Budgets(state),
            "sns": Topics(state, home),
            "ec2": SecurityGroups(state),
            "servicequotas": ServiceQuotas(state, self._faults.quotas),
            "ssm": commands,
        }
        try:
            self._plane = Dataplane(state, services, port=service_ports.port(home))
        except OSError as error:
            why = f"{service_ports.url(home)} of this rehearsal is taken by another program ({error})"
            raise RefusalError(
                "PortTaken",
                why,
                f"End that program, or remove {home / service_ports.FILES['aws']} to choose another port.",
            ) from error
        self._functions.open(self._plane.identities, self._plane.url)
        self._apps.open(self._plane.identities, self._plane.url)
        commands.open(self._plane.identities, self._plane.url)
        api = self._plane.services["sagemaker"]
        self._plane.services["sagemaker"] = MlflowGateway(state, self._apps, api, self._plane.identities)
        self._region = TrainingContext(
            state=state,
            identities=self._plane.identities,
            addresses=addresses,
            logs=logs,
            url=self._plane.url,
            credentials=self._plane.url + CREDENTIALS_PATH,
            named=self._apps.start_named,
            interruption=self._faults.interruption,
        )

    @property
    def url(self) -> str:
        """The URL of the services."""
        return self._plane.url

    def live(self) -> list[dict[str, Any]]:
        """Machines of jobs, function calls, MLflow servers and Slurm, each as a row of a pod."""
        mine = [found for runner in self._running() if not runner.job.over for found in runner.describe()]
        mine += self._searches.live()
        for cluster, node, log in self._slurm.live():
            known = {"pod": node.name, "ready": True, "address": node.address, "log": str(log)}
            mine.append(row("Node", cluster, node.name, "Running", **known))
        return [*mine, *self._functions.live(), *self._apps.live()]

    def locate(self, arn: str) -> str | None:
        """The URL on this machine of the MLflow App with this ARN, if it runs."""
        return self._apps.url(arn)

    def stop(self) -> None:
        """End everything that runs."""
        self._plane.stop()
        self._apps.stop()  # jobs may wait for an app
        for runner in self._running():
            runner.kill()
        self._functions.stop()
        self._slurm.stop()

    # -- called by the SageMaker API -------------------------------------------------------------------

    def begin(self, job: TrainingJobRecord, met: CreateFaults) -> None:
        """Start a new job."""
        region = self._region if job.spot else replace(self._region, interruption=lambda _: None)
        runner = JobRunner(job, region, slow_s=met.slow_s, capacity=met.capacity)
        with self._lock:
            self._runners[job.arn] = runner
        runner.start()

    def stop_job(self, job: TrainingJobRecord) -> None:
        """Stop a running job."""
        with self._lock:
            runner = self._runners[job.arn]
        runner.stop()

    def retag(self, job: TrainingJobRecord, tags: Mapping[str, str]) -> None:
        """Replace the tags of a job."""
        with self._lock:
            runner = self._runners.get(job.arn)
        if runner is not None:
            runner.retag(tags)
        else:
            self._store.put(replace(job, tags=dict(tags)))

    def _fail_what_ran(self) -> None:
        """Fail the jobs that ran when the previous daemon ended."""
        self._searches.fail_what_ran()
        for job in self._store.all():
            if not job.over:
                self._store.put(job.failed(INTERNAL))
        folders.remove(self._home / "jobs")

    def _running(self) -> list[JobRunner]:
        """Runners of jobs that have not ended; drops the others."""
        with self._lock:
            self._runners = {arn: one for arn, one in self._runners.items() if not one.over.is_set()}
            return list(self._runners.values())
