"""Move the jobs of clusters that leave a manager, before its stack disconnects them; in a Job of `up`.

Kueue starts the jobs of a cluster that its configuration names no more elsewhere at once, and ends nothing
there (kueue v0.19.2 pkg/controller/admissionchecks/multikueue/workload.go, `reconcileGroup`, 6a, and
`remoteClientsForAC`): they would run twice until the cluster's own program ends them (`fence`). Here each
job of such a cluster is queued again while the cluster is still connected, so that Kueue stops it there
first. Jobs of a cluster that cannot be reached are moved by Kueue itself, after `workerLostTimeout`. Standard
library only. Exit codes: 0 no job is left on such a cluster; 1 some are, or access was denied.
"""

import argparse
import sys
import time
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

from agents.clusters.dispatch import CHECK, PENDING, RETRY, cluster_of, is_active
from agents.shared.api_server import FORBIDDEN_S, ApiServer, ApiServerError, Object, finish, say
from agents.shared.kueue import API
from agents.shared.times import stamp

LEAVING_TAINT = {"key": "trainstack.dev/cluster-leaves", "value": "true", "effect": "NoSchedule"}
"""Taint of flavors of a cluster that leaves: no job is admitted to them."""
READY = "Ready"
_LOOK_S = 2.0
_CONFLICT, _NOT_FOUND = 409, 404


def taints(flavor: Object, *, leaves: bool) -> list[Mapping[str, str]] | None:
    """The taints that a flavor should have; None where it has them."""
    has = list(flavor["spec"].get("nodeTaints") or ())
    others = [taint for taint in has if taint["key"] != LEAVING_TAINT["key"]]
    wanted = [*others, LEAVING_TAINT] if leaves else others
    return wanted if len(wanted) != len(has) else None


def place_of(workload: Object, clusters: Mapping[str, str], leaving: Collection[str]) -> str:
    """The leaving cluster on which a Workload runs or has quota; empty: none.

    `clusters`: the cluster of each flavor.
    """
    status = workload.get("status") or {}
    if _is(status, "Finished"):
        return ""
    sent = str(status.get("clusterName") or "")
    parts = (status.get("admission") or {}).get("podSetAssignments") or ()
    given = {clusters.get(flavor, "") for part in parts for flavor in (part.get("flavors") or {}).values()}
    return next((name for name in (sent, *sorted(given)) if name in leaving), "")


def moved(workload: Object, cluster: str, now: str) -> dict[str, Any] | None:
    """The change of its status with which Kueue queues a Workload again; None: Kueue does so already."""
    status = workload.get("status") or {}
    rows = list(status.get("admissionChecks") or ())
    if _is(status, "Evicted") or not any(
        row["name"] == CHECK and row["state"] in (PENDING, READY) for row in rows
    ):
        return None
    again = {"name": CHECK, "state": RETRY, "message": f"cluster {cluster} leaves", "lastTransitionTime": now}
    return {"admissionChecks": [again if row["name"] == CHECK else row for row in rows]}


def _is(status: Mapping[str, Any], condition: str) -> bool:
    rows = status.get("conditions") or ()
    return any(row["type"] == condition and row["status"] == "True" for row in rows)


class Leaving:
    """The clusters that leave one manager. Methods raise ApiServerError and OSError."""

    def __init__(self, server: ApiServer, names: Collection[str]) -> None:
        self._server, self._names = server, names

    def left(self) -> int:
        """Close the flavors of leaving clusters and move their jobs; returns how many jobs are left there."""
        found = [
            row for row in self._every("multikueueclusters") if row["metadata"]["name"] not in self._names
        ]
        leaving = {row["metadata"]["name"]: is_active(row) for row in found}
        clusters = {}
        for flavor in self._every("resourceflavors"):
            cluster, name = cluster_of(flavor), flavor["metadata"]["name"]
            clusters[name] = cluster
            # Also opens those of a cluster that stays after all.
            wanted = taints(flavor, leaves=cluster in leaving)
            if wanted is not None:
                self._server.must("PATCH", f"{API}/resourceflavors/{name}", {"spec": {"nodeTaints": wanted}})
        if not leaving:
            return 0
        count = 0
        for workload in self._every("workloads"):
            cluster = place_of(workload, clusters, leaving)
            count += bool(cluster)
            if cluster and leaving[cluster]:
                self._move(workload, cluster)
        return count

    def _move(self, workload: Object, cluster: str) -> None:
        change = moved(workload, cluster, stamp(self._server.now()))
        if change is None:
            return
        metadata = workload["metadata"]
        place = f"{API}/namespaces/{metadata['namespace']}/workloads/{metadata['name']}/status"
        known = {"resourceVersion": metadata["resourceVersion"]}
        status, answer = self._server.ask("PATCH", place, {"metadata": known, "status": change})
        if status in (_CONFLICT, _NOT_FOUND):
            return
        if status >= 300:
            raise ApiServerError(status, str(answer.get("message")))
        say(f"{metadata['namespace']}/{metadata['name']} is queued again: cluster {cluster} leaves")

    def _every(self, plural: str) -> list[Object]:
        try:
            return list(self._server.every(f"{API}/{plural}"))
        except ApiServerError as error:
            # The first deployment of a stack.
            if error.status == _NOT_FOUND:
                return []
            raise


def wait(
    leaving: Leaving, limit_s: float, clock: Callable[[], float], sleep: Callable[[float], None]
) -> tuple[bool, str]:
    """Look until no job is left, twice in a row; returns whether, and the last state.

    Kueue may admit a job after the first look from what it read before the flavors were closed.
    """
    began = allowed = clock()
    empty = False
    while True:
        try:
            left = leaving.left()
            if empty and not left:
                return True, "no job is on a cluster that leaves"
            empty = not left
            state, allowed = f"{left} jobs are on clusters that leave", clock()
        except ApiServerError as error:
            state = str(error)
            if error.status in (401, 403) and clock() >= allowed + FORBIDDEN_S:
                return False, f"the account of this pod is denied access: {state}"
        except OSError as error:
            state = f"the API server cannot be reached: {error}"
        if clock() > began + limit_s:
            return False, f"after {limit_s:.0f} s still: {state}"
        sleep(_LOOK_S)


def main() -> int:
    """Move the jobs of all clusters but those of the arguments."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--names", required=True, help="clusters that stay, with commas")
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--account", type=Path, required=True)
    parser.add_argument("--message", type=Path, required=True)
    asked = parser.parse_args()
    leaving = Leaving(ApiServer(asked.account), asked.names.split(","))
    passed, reason = wait(leaving, asked.seconds, time.monotonic, time.sleep)
    return finish(reason, asked.message, passed=passed)


if __name__ == "__main__":
    sys.exit(main())
