"""Send jobs of the manager to clusters, keep them from lost ones, renew tokens for clusters; in one pod.

Standard library only. Kueue's MultiKueue controller copies a job to the clusters in
`status.nominatedClusterNames` of its Workload; with a `dispatcherName` that it does not know, another program
writes that field (kueue v0.19.2 pkg/controller/admissionchecks/multikueue/workload.go,
`nominateAndSynchronizeWorkers`).
"""

import argparse
import sys
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
from agents.clusters.renewing import LASTS_S, Renewer
from agents.clusters.workers import read
from agents.shared.api_server import ApiServerError, Object, say
from agents.shared.exposition import PrometheusMetric, Sample, text
from agents.shared.health import Health
from agents.shared.kueue import API
from agents.shared.times import stamp

_CONFLICT, _NOT_FOUND = 409, 404
LOOK_S = 5.0
"""Seconds between two looks at the connections of clusters."""


class Dispatcher:
    """Writes the decisions of `dispatch` for one manager. Methods raise ApiServerError and OSError."""

    def __init__(self, server: ApplyingServer) -> None:
        self._server = server
        self.clusters: dict[str, str] = {}
        self.lost: set[str] = set()
        """Clusters that get no jobs."""
        self.cut_off: set[str] = set()
        """Those of them to which Kueue has no connection."""

    def look(self, stale: Collection[str] = ()) -> None:
        """Read the connections of clusters; close the flavors of lost ones, open those of the others.

        `stale`: clusters that end jobs of this manager soon, connected or not.
        """
        active = {
            row["metadata"]["name"]: is_active(row) for row in self._server.every(f"{API}/multikueueclusters")
        }
        self.clusters = {}
        lost, cut_off = set(), set()
        for flavor in self._server.every(f"{API}/resourceflavors"):
            cluster, name = cluster_of(flavor), flavor["metadata"]["name"]
            if not cluster:
                continue
            self.clusters[name] = cluster
            if not active.get(cluster, False):
                cut_off.add(cluster)
            away = cluster in cut_off or cluster in stale
            if away:
                lost.add(cluster)
            wanted = taints(flavor, lost=away)
            if wanted is not None:
                change = {"spec": {"nodeTaints": wanted}}
                self._server.must("PATCH", f"{API}/resourceflavors/{name}", change)
        for cluster in sorted(lost ^ self.lost):
            news = "cannot be reached: no job goes to it" if cluster in lost else "can be reached"
            say(f"cluster {cluster} {news}")
        self.lost, self.cut_off = lost, cut_off

    def review(self) -> str:
        """Decide about every Workload; returns the version from which to watch."""
        version = ""
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
        """Decide about one Workload. One that changed meanwhile is seen again."""
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


def run(dispatcher: Dispatcher, renewer: Renewer, leases: LeaseRenewer, beat: Callable[[], None]) -> None:
    """Renew tokens and leases, and dispatch, until the process ends; an error is logged and retried."""
    version = ""
    while True:
        renewer.renew()
        try:
            before = dispatcher.lost, dispatcher.clusters
            dispatcher.look(leases.stale())
            leases.renew(dispatcher.cut_off)
            if not version or before != (dispatcher.lost, dispatcher.clusters):
                version = dispatcher.review()
            version = dispatcher.watched(version)
        except (ApiServerError, OSError) as error:
            say(str(error))
            version = ""
            time.sleep(1.0)
        beat()


def main() -> int:
    """Run the dispatcher of the pod's cluster."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", type=read, required=True)
    parser.add_argument("--lasts-s", type=int, default=LASTS_S)
    parser.add_argument("--account", type=Path, required=True)
    parser.add_argument("--port", type=int, required=True)
    asked = parser.parse_args()
    server = ApplyingServer(asked.account)
    dispatcher = Dispatcher(server)
    renewer = Renewer(server, asked.workers, lasts_s=asked.lasts_s)
    leases = LeaseRenewer(asked.workers, renewer.tokens)

    def metrics() -> str:
        lost = dispatcher.lost
        names = sorted(set(dispatcher.clusters.values()))
        rows: list[Sample] = [({"cluster": name}, int(name in lost)) for name in names]
        words = "Whether a cluster cannot be reached, so that no job goes to it."
        return text([PrometheusMetric("trainstack_cluster_lost", "gauge", rows, words)])

    health = Health(asked.port, metrics, patience_s=90)
    run(dispatcher, renewer, leases, health.beat)
    return 0


if __name__ == "__main__":
    sys.exit(main())
