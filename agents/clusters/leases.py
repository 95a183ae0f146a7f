"""The Lease of the manager on a worker, renewed while its Kueue is connected; standard library only."""

import datetime
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from agents.clusters.workers import Worker, WorkerApi
from agents.shared.api_server import UNREADABLE, ApiServerError, say
from agents.shared.times import seconds

NAMESPACE, LEASE = "trainstack-clusters", "manager"
_API = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases"
_NOT_FOUND = 404
STALE_S = 60.0
"""Seconds without a renewal after which a worker gets no more jobs: it ends them after minutes (`fence`)."""
VIEW_S = 30.0
"""Seconds for which it counts that Kueue was connected. Without news a Lease is left to age, as Kueue may
have lost the worker."""
RENEW_S = 5.0
"""Seconds between two renewals."""
_TIMEOUT_S = 5.0
# An attempt that lasts longer counts as one that failed: a time-out is for each address and each read.
_HANGS_S = 2 * _TIMEOUT_S


def renewed(lease: Mapping[str, Any]) -> int | None:
    """The time of the last change of a Lease, by the clock of its API server alone."""
    times = [row["time"] for row in lease["metadata"].get("managedFields") or () if row.get("time")]
    return seconds(max(times)) if times else None


class LeaseRenewer:
    """Renews the Lease on each worker; each worker is called by a thread of its own."""

    def __init__(
        self,
        workers: Sequence[Worker],
        tokens: Mapping[str, str],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.workers = workers
        self._tokens, self._clock = tokens, clock
        self._connected: Collection[str] = ()
        self._seen: float | None = None
        self._due = dict.fromkeys((worker.name for worker in workers), 0.0)
        self._begun: dict[str, float] = {}
        """When the attempt in progress began."""
        self._failed: dict[str, tuple[float, float]] = {}
        """Begin of the first and end of the last attempt that failed, without a successful one since."""

    def seen(self, connected: Collection[str]) -> None:
        """Note the workers to which Kueue is connected now."""
        self._connected, self._seen = connected, self._clock()

    def stale(self) -> set[str]:
        """Workers for which all attempts of `STALE_S` failed, although Kueue may be connected.

        Its connection outlives its token: an open watch is not closed when that ends. Time without an
        attempt, as while the manager's own API server did not respond, says nothing about a worker.
        """
        now, found = self._clock(), set()
        for worker in self.workers:
            begun = self._begun.get(worker.name)
            hangs = begun is not None and now > begun + _HANGS_S
            first, last = self._failed.get(worker.name, (now if begun is None else begun, 0.0))
            if (now if hangs else last) > first + STALE_S:
                found.add(worker.name)
        return found

    def renew(self, worker: Worker) -> None:
        """Renew a Lease that is due, where Kueue is connected and there is a token."""
        name, now = worker.name, self._clock()
        if self._seen is None or now > self._seen + VIEW_S or now < self._due[name]:
            return
        self._begun[name] = now
        token = self._tokens.get(name)
        if token is None or name not in self._connected or not self._sent(worker, token):
            first, _ = self._failed.get(name, (now, now))
            self._failed[name] = first, self._clock()
        else:
            self._failed.pop(name, None)
            self._due[name] = self._clock() + RENEW_S
        del self._begun[name]

    def _sent(self, worker: Worker, token: str) -> bool:
        now = datetime.datetime.now(datetime.UTC).isoformat().replace("+00:00", "Z")
        spec = {"holderIdentity": "manager", "renewTime": now}
        try:
            _renew(WorkerApi(worker, token, _TIMEOUT_S), spec)
        except (ApiServerError, OSError, *UNREADABLE) as error:
            if worker.name not in self._failed:
                say(f"the lease on cluster {worker.name} is not renewed: {error}")
            return False
        return True


def _renew(api: WorkerApi, spec: Mapping[str, str]) -> None:
    try:
        api.send("PATCH", f"{_API}/{LEASE}", {"spec": spec})
    except ApiServerError as error:
        if error.status != _NOT_FOUND:
            raise
        body = {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": LEASE, "namespace": NAMESPACE},
            "spec": spec,
        }
        api.send("POST", _API, body)
