"""Send jobs of the manager to clusters, keep them from lost ones, renew tokens for clusters; in one pod.

Standard library only. Kueue's MultiKueue controller copies a job to the clusters in
`status.nominatedClusterNames` of its Workload; with a `dispatcherName` that it does not know, another program
writes that field (kueue v0.19.2 pkg/controller/admissionchecks/multikueue/workload.go,
`nominateAndSynchronizeWorkers`).
"""

import argparse
import sys
import threading
import time
from collections.abc import Callable, Collection
from pathlib import Path

from agents.clusters.dispatch import (
    CHECK,
    RETRY,
    Nominated,
    Returned,
    cluster_of,
    decide,
    is_active,
    taints,
)
from agents.clusters.leases import LeaseRenewer
from agents.clusters.nominating import ApplyingServer, nomination
from agents.clusters.releasing import LOST_S, Absences, Released, released
from agents.clusters.renewing import LASTS_S, Renewer
from agents.clusters.workers import Worker, read
from agents.shared.api_server import ApiServerError, Object, say
from agents.shared.exposition import PrometheusMetric, Sample, text
from agents.shared.health import Health
from agents.shared.kueue import API
from agents.shared.times import stamp

_CONFLICT, _NOT_FOUND = 409, 404
LOOK_S = 5.0
"""Seconds between two looks at the connections of clusters."""
PAUSE_S = 1.0
"""Seconds between two looks at what is to be renewed."""


class Dispatcher:
    """Writes the decisions of `dispatch` for one manager. Methods raise ApiServerError and OSError."""

    def __init__(
        self,
        server: ApplyingServer,
        beat: Callable[[], None] = lambda: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`beat` is called after each response: a slow API server is no program that hangs."""
        self._server, self._beat, self._clock = server, beat, clock
        self._began = clock()
        self._met: dict[str, float] = {}
        """When Kueue was last connected to a cluster."""
        self.clusters: dict[str, str] = {}
        self.connected: set[str] = set()
        """Clusters to which Kueue is connected."""
        self.gone: set[str] = set()
        """Clusters whose jobs have ended, as no Lease was renewed for `LOST_S`."""
        self._stopping: dict[tuple[str, str], Released] = {}
        self.lost: set[str] = set()
        """Clusters that get no jobs."""
        self.refused = False
        """Whether the API server refused a change since the last review: all are reviewed again."""

    def connect(self) -> set[str]:
        """Read to which clusters Kueue is connected."""
        rows = list(self._server.every(f"{API}/multikueueclusters"))
        self.connected = {row["metadata"]["name"] for row in rows if is_active(row)}
        now = self._clock()
        self._met |= dict.fromkeys(self.connected, now)
        known = {row["metadata"]["name"] for row in rows} | {*self.clusters.values()}
        self.gone = {name for name in known if now >= self._met.get(name, self._began) + LOST_S}
        self._beat()
        return self.connected

    def look(self, stale: Collection[str] = ()) -> None:
        """Close the flavors of clusters without a connection, open those of the others.

        `stale`: clusters that end jobs of this manager soon, connected or not.
        """
        self.clusters = {}
        lost = set()
        for flavor in self._server.every(f"{API}/resourceflavors"):
            cluster, name = cluster_of(flavor), flavor["metadata"]["name"]
            if not cluster:
                continue
            self.clusters[name] = cluster
            away = cluster in stale or cluster not in self.connected
            if away:
                lost.add(cluster)
            wanted = taints(flavor, lost=away)
            if wanted is not None:
                change = {"spec": {"nodeTaints": wanted}}
                self._server.must("PATCH", f"{API}/resourceflavors/{name}", change)
            self._beat()
        for cluster in sorted(lost ^ self.lost):
            news = "cannot be reached: no job goes to it" if cluster in lost else "can be reached"
            say(f"cluster {cluster} {news}")
        self.lost = lost

    def review(self) -> str:
        """Decide about every Workload; returns the version from which to watch."""
        version, self.refused = "", False
        self._stopping.clear()
        for page, version in self._server.paged(f"{API}/workloads"):  # noqa: B007 - of the last page
            for workload in page:
                self.handle(workload)
        return version

    def watched(self, version: str) -> str:
        """Decide about each Workload that changes, for a few seconds; returns the version reached."""
        for change in self._server.watched(f"{API}/workloads", version, LOOK_S):
            version = change["object"]["metadata"]["resourceVersion"]
            if change["type"] in ("ADDED", "MODIFIED"):
                self.handle(change["object"])
        return version

    def handle(self, workload: Object) -> None:
        """Decide about one Workload. One that changed meanwhile is seen again; one that is refused, too."""
        self._beat()
        try:
            self._decided(workload)
        except ApiServerError as error:
            metadata = workload["metadata"]
            say(f"{metadata['namespace']}/{metadata['name']} is not changed: {error}")
            self.refused = True

    def stopping(self) -> list[Released]:
        """Evicted jobs that still have quota. For other threads."""
        return [*self._stopping.copy().values()]

    def release(self, job: Released) -> None:
        """Note that a job has no pods any more. Also for other threads."""
        status, answer = self._server.ask("PATCH", f"{job.owner}/status", job.body)
        if status >= 300 and status not in (_CONFLICT, _NOT_FOUND):
            raise ApiServerError(status, str(answer.get("message")))
        say(f"{job.owner} gives its quota back: it has ended on cluster {job.cluster}")

    def _decided(self, workload: Object) -> None:
        job = released(workload, self.clusters)
        key = workload["metadata"]["namespace"], workload["metadata"]["name"]
        self._stopping.pop(key, None)
        if job is not None and job.cluster in self.gone:
            self.release(job)
        elif job is not None:
            self._stopping[key] = job
        decision = decide(workload, self.clusters, self.lost)
        match decision:
            case None:
                return
            case Nominated(cluster=cluster):
                self._nominate(workload, cluster)
                return
            case Returned(why=why):
                now = stamp(self._server.now())
                state = {"name": CHECK, "state": RETRY, "message": why, "lastTransitionTime": now}
                rows = workload["status"]["admissionChecks"]
                change: Object = {"admissionChecks": [state if row["name"] == CHECK else row for row in rows]}
                words = f"is queued again: {why}"
        known = {"resourceVersion": workload["metadata"]["resourceVersion"]}
        body = {"metadata": known, "status": change}
        _say_written(workload, words, *self._server.ask("PATCH", _status_of(workload), body))

    def _nominate(self, workload: Object, cluster: str) -> None:
        answer = self._server.apply(_status_of(workload), nomination(workload, cluster))
        _say_written(workload, f"goes to {cluster}", *answer)


def _status_of(workload: Object) -> str:
    metadata = workload["metadata"]
    return f"{API}/namespaces/{metadata['namespace']}/workloads/{metadata['name']}/status"


def _say_written(workload: Object, words: str, status: int, answer: Object) -> None:
    """Log a change, unless the Workload changed meanwhile. Raises ApiServerError."""
    if status in (_CONFLICT, _NOT_FOUND):
        return
    if status >= 300:
        raise ApiServerError(status, str(answer.get("message")))
    say(f"{workload['metadata']['namespace']}/{workload['metadata']['name']} {words}")


def run(
    dispatcher: Dispatcher,
    renewer: Renewer,
    leases: LeaseRenewer,
    beat: Callable[[], None],
    *,
    stop: threading.Event,
    pause_s: float = PAUSE_S,
) -> None:
    """Dispatch, until `stop` is set; an error is logged and retried.

    The Lease and the token of each cluster have a thread each. A time-out is for each address and each read,
    so requests to a cluster whose packets are dropped last long; they delay nothing else.
    """

    def repeat(renew: Callable[[Worker], None], worker: Worker) -> None:
        while not stop.is_set():
            renew(worker)
            stop.wait(pause_s)

    calls = [(leases.renew, worker) for worker in leases.workers]
    calls += [(renewer.renew, worker) for worker in renewer.workers]
    absences = Absences(renewer.workers, renewer.tokens)
    calls += [
        (lambda worker: absences.look(worker, dispatcher.stopping(), dispatcher.release), worker)
        for worker in renewer.workers
    ]
    # They end with the process.
    threads = [threading.Thread(target=repeat, args=call, daemon=True) for call in calls]
    for thread in threads:
        thread.start()
    version = ""
    while not stop.is_set():
        try:
            before = dispatcher.lost, dispatcher.gone, dispatcher.clusters
            leases.seen(dispatcher.connect())
            dispatcher.look(leases.stale())
            now = dispatcher.lost, dispatcher.gone, dispatcher.clusters
            if not version or dispatcher.refused or before != now:
                version = dispatcher.review()
            version = dispatcher.watched(version)
        except (ApiServerError, OSError) as error:
            say(str(error))
            version = ""
            stop.wait(pause_s)
        beat()
    for thread in threads:
        thread.join()


def main() -> int:
    """Run the dispatcher of the pod's cluster."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", type=read, required=True)
    parser.add_argument("--lasts-s", type=int, default=LASTS_S)
    parser.add_argument("--account", type=Path, required=True)
    parser.add_argument("--port", type=int, required=True)
    asked = parser.parse_args()
    server = ApplyingServer(asked.account)
    renewer = Renewer(server, asked.workers, lasts_s=asked.lasts_s)
    leases = LeaseRenewer(asked.workers, renewer.tokens)
    dispatcher = Dispatcher(server, lambda: health.beat())  # noqa: PLW0108 - made below

    def metrics() -> str:
        lost = dispatcher.lost
        names = sorted(set(dispatcher.clusters.values()))
        rows: list[Sample] = [({"cluster": name}, int(name in lost)) for name in names]
        words = "Whether a cluster cannot be reached, so that no job goes to it."
        return text([PrometheusMetric("trainstack_cluster_lost", "gauge", rows, words)])

    health = Health(asked.port, metrics, patience_s=90)
    run(dispatcher, renewer, leases, health.beat, stop=threading.Event())
    return 0


if __name__ == "__main__":
    sys.exit(main())
