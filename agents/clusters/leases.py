"""The Lease of the manager on a worker, renewed while its Kueue is connected; standard library only."""

import datetime
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from agents.clusters.workers import Worker, WorkerApi
from agents.shared.api_server import ApiServerError, say
from agents.shared.times import seconds

NAMESPACE, LEASE = "trainstack-clusters", "manager"
_API = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases"
_NOT_FOUND = 404
STALE_S = 60.0
"""Seconds without a renewal after which a worker gets no more jobs: it ends them after minutes (`fence`)."""
# Of a request in the loop that also dispatches jobs.
_TIMEOUT_S = 5.0


def renewed(lease: Mapping[str, Any]) -> int | None:
    """The time of the last change of a Lease, by the clock of its API server alone."""
    times = [row["time"] for row in lease["metadata"].get("managedFields") or () if row.get("time")]
    return seconds(max(times)) if times else None


class LeaseRenewer:
    """Renews the Lease on each worker."""

    def __init__(
        self,
        workers: Sequence[Worker],
        tokens: Mapping[str, str],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._workers, self._tokens, self._clock = workers, tokens, clock
        self._failed: set[str] = set()
        self._renewed = dict.fromkeys((worker.name for worker in workers), clock())

    def stale(self) -> set[str]:
        """Workers whose Lease has not been renewed for `STALE_S`, although Kueue may be connected.

        Its connection outlives its token: an open watch is not closed when that ends.
        """
        return {name for name, at in self._renewed.items() if self._clock() > at + STALE_S}

    def renew(self, lost: Collection[str]) -> None:
        """Renew the Leases on workers that are not `lost` and of which there is a token."""
        for worker in self._workers:
            token = self._tokens.get(worker.name)
            if token is None or worker.name in lost:
                continue
            now = datetime.datetime.now(datetime.UTC).isoformat().replace("+00:00", "Z")
            spec = {"holderIdentity": "manager", "renewTime": now}
            try:
                _renew(WorkerApi(worker, token, _TIMEOUT_S), spec)
            except (ApiServerError, OSError) as error:
                if worker.name not in self._failed:
                    say(f"the lease on cluster {worker.name} is not renewed: {error}")
                self._failed.add(worker.name)
            else:
                self._failed.discard(worker.name)
                self._renewed[worker.name] = self._clock()


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
