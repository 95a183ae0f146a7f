"""The APIs of Google Cloud for the programs of a rehearsal's user, and the jobs that run behind them."""

import threading
from pathlib import Path
from typing import Any

from rehearsal import doors
from rehearsal.core.faulty import FaultPlan
from rehearsal.core.model import RefusalError
from rehearsal.core.state import State
from rehearsal.dataplane.google.identity import GoogleIdentities
from rehearsal.dataplane.google.server import GooglePlane
from rehearsal.dataplane.google.storage import Storage
from rehearsal.jobs.faults import JobFaults, Met
from rehearsal.jobs.logs.store import LogStore
from rehearsal.jobs.vertex.api import TYPE, CustomJobs
from rehearsal.jobs.vertex.entries import LogEntries
from rehearsal.jobs.vertex.quotas import beyond
from rehearsal.jobs.vertex.records import FAILED, QUEUED, CustomJob, Store
from rehearsal.jobs.vertex.runner import CustomJobRunner, Ground
from rehearsal.jobs.vertex.words import INTERNAL
from rehearsal.workloads.addresses import Addresses


class GoogleServices:
    """Answers at the port of the home from the start until `stop`.

    Raises RefusalError when another program has the port.
    """

    def __init__(
        self, state: State, home: Path, plan: FaultPlan, logs: LogStore, addresses: Addresses
    ) -> None:
        self._faults = JobFaults(plan, home / "faults.json", TYPE)
        self._store, self._runners = Store(state), dict[str, CustomJobRunner]()
        self._lock = threading.Lock()
        for job in self._store.all():
            if not job.over:  # it was under way when the daemon before this one ended
                self._store.put(job.entered(FAILED, INTERNAL))
        apis = (Storage(state), LogEntries(state, logs), CustomJobs(state, self, self._faults))
        try:
            self._plane = GooglePlane(state, apis, port=doors.port(home, "google"))
        except OSError as error:
            where = doors.url(home, "google")
            why = f"{where} of this rehearsal is taken by another program ({error})"
            kept = home / doors.FILES["google"]
            fix = f"End that program, or remove {kept}: then another port is chosen."
            raise RefusalError("PortTaken", why, fix) from error
        self._ground = Ground(state, addresses, logs, self._plane, self._faults.interruption, self._crowded)

    @property
    def identities(self) -> GoogleIdentities:
        """Who may ask."""
        return self._plane.identities

    def live(self) -> list[dict[str, Any]]:
        """The replicas of jobs that run."""
        return [row for runner in self._running() for row in runner.describe()]

    def stop(self) -> None:
        """End everything that runs."""
        for runner in self._running():
            runner.kill()
        self._plane.stop()

    # -- what Vertex AI asks for -----------------------------------------------------------------------

    def begin(self, job: CustomJob, met: Met) -> None:
        """Start a new job."""
        runner = CustomJobRunner(job, self._ground, slow_s=met.slow_s, capacity=met.capacity)
        with self._lock:
            self._runners[job.id] = runner
        runner.start()

    def cancel(self, job: CustomJob) -> None:
        """Ask for the end of a job that runs."""
        with self._lock:
            runner = self._runners[job.id]
        runner.cancel()

    def _crowded(self, job: CustomJob) -> bool:
        quotas = self._faults.quotas()
        others = [one.job for one in self._running() if one.job.id != job.id and one.job.state != QUEUED]
        mine = [one for one in others if (one.project, one.region) == (job.project, job.region)]
        return bool(quotas and beyond(job, mine, quotas))

    def _running(self) -> list[CustomJobRunner]:
        """The jobs that have not ended; those that have are forgotten."""
        with self._lock:
            self._runners = {key: one for key, one in self._runners.items() if not one.job.over}
            return list(self._runners.values())
