"""Google Cloud APIs for the programs of a rehearsal's user, and what runs behind them."""

import threading
from pathlib import Path
from typing import Any

from rehearsal import service_ports
from rehearsal.core.fault_injection import FaultPlan
from rehearsal.core.model import RefusalError
from rehearsal.core.state import State
from rehearsal.dataplane.gcp.identity import GoogleIdentities, machine_identity
from rehearsal.dataplane.gcp.server import GooglePlane
from rehearsal.dataplane.gcp.storage import CloudStorage
from rehearsal.jobs.faults import CreateFaults, JobFaults
from rehearsal.jobs.gcp.cloud_run.service import CloudRun
from rehearsal.jobs.gcp.functions.topics import TopicFunctions
from rehearsal.jobs.gcp.log_entries import LogEntries
from rehearsal.jobs.gcp.login_nodes import LoginNodes
from rehearsal.jobs.gcp.notebooks import NotebooksApi
from rehearsal.jobs.gcp.vertex.api import TYPE, CustomJobs
from rehearsal.jobs.gcp.vertex.failures import INTERNAL
from rehearsal.jobs.gcp.vertex.quotas import beyond
from rehearsal.jobs.gcp.vertex.records import FAILED, QUEUED, CustomJob, CustomJobStore
from rehearsal.jobs.gcp.vertex.runner import CustomJobContext, CustomJobRunner
from rehearsal.jobs.log_store import LogStore
from rehearsal.jobs.login_pods import LoginPods
from rehearsal.jobs.rows import row
from rehearsal.slurm.director import DirectorClusters
from rehearsal.slurm.slinky import SlinkyClusters
from rehearsal.workloads.addresses import Addresses


class GoogleServices:
    """Serves at the port of the home from the start until `stop`.

    Raises RefusalError when another program has the port.
    """

    def __init__(
        self, state: State, home: Path, plan: FaultPlan, logs: LogStore, addresses: Addresses
    ) -> None:
        self._faults = JobFaults(plan, home / "faults.json", TYPE)
        self._store, self._runners = CustomJobStore(state), dict[str, CustomJobRunner]()
        self._lock = threading.Lock()
        for job in self._store.all():
            if not job.over:  # it ran when the previous daemon ended
                self._store.put(job.entered(FAILED, INTERNAL))
        jobs = CustomJobs(state, self, self._faults)
        self._slurm = DirectorClusters(state, home)
        logins = LoginNodes(state, self._slurm)
        # The program for kubectl is served at this port, too, whatever the cloud of its cluster.
        self._pods = SlinkyClusters(state, home)
        pods = LoginPods(self._pods)
        apis = (CloudStorage(state), LogEntries(state, logs), jobs, NotebooksApi(state), logins, pods)
        try:
            self._plane = GooglePlane(state, apis, port=service_ports.port(home, "gcp"))
        except OSError as error:
            where = service_ports.url(home, "gcp")
            why = f"{where} of this rehearsal is taken by another program ({error})"
            kept = home / service_ports.FILES["gcp"]
            fix = f"End that program, or remove {kept}: then another port is chosen."
            raise RefusalError("PortTaken", why, fix) from error
        self._functions = TopicFunctions(state, self._plane)
        self._plane.pubsub.wakes = self._functions.wake
        self._services = CloudRun(state, self._plane, addresses)
        self._ground = CustomJobContext(
            state=state,
            addresses=addresses,
            logs=logs,
            plane=self._plane,
            located=self._services.located,
            interruption=self._faults.interruption,
            crowded=self._crowded,
        )

    @property
    def identities(self) -> GoogleIdentities:
        """Identities that may call the APIs."""
        return self._plane.identities

    def metadata_host(self, email: str, project: str, location: str) -> str:
        """The metadata server of a machine that runs as a service account."""
        return self._plane.metadata_host(machine_identity(email, project, location))

    def live(self) -> list[dict[str, Any]]:
        """Replicas of jobs, function calls, Cloud Run and nodes of Slurm, each as a row of a pod."""
        replicas = [found for runner in self._running() for found in runner.describe()]
        for cluster, node, log in (*self._slurm.live(), *self._pods.live()):
            known = {"pod": node.name, "ready": True, "address": node.address, "log": str(log)}
            replicas.append(row("Node", cluster, node.name, "Running", **known))
        return [*replicas, *self._functions.live(), *self._services.live()]

    def locate(self, uri: str) -> str | None:
        """The URL on this machine of the Cloud Run service with this address, if one runs."""
        return self._services.url(uri)

    def stop(self) -> None:
        """End everything that runs."""
        self._services.stop()  # jobs may wait for a service
        for runner in self._running():
            runner.kill()
        self._functions.stop()
        self._slurm.stop()
        self._pods.stop()
        self._plane.stop()

    # -- called by the Vertex AI API -------------------------------------------------------------------

    def begin(self, job: CustomJob, met: CreateFaults) -> None:
        """Start a new job."""
        runner = CustomJobRunner(job, self._ground, slow_s=met.slow_s, capacity=met.capacity)
        with self._lock:
            self._runners[job.id] = runner
        runner.start()

    def cancel(self, job: CustomJob) -> None:
        """Cancel a running job."""
        with self._lock:
            runner = self._runners[job.id]
        runner.cancel()

    def _crowded(self, job: CustomJob) -> bool:
        quotas = self._faults.quotas()
        others = [one.job for one in self._running() if one.job.id != job.id and one.job.state != QUEUED]
        mine = [one for one in others if (one.project, one.region) == (job.project, job.region)]
        return bool(quotas and beyond(job, mine, quotas))

    def _running(self) -> list[CustomJobRunner]:
        """Runners of jobs that have not ended; drops the others."""
        with self._lock:
            self._runners = {key: one for key, one in self._runners.items() if not one.job.over}
            return list(self._runners.values())
