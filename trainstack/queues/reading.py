"""Asks the API server of a cluster for the state of its queues. It only reads."""

import datetime
from collections.abc import Iterable
from typing import Any

from infra.clouds.kubectl import ClusterApi, unanswered
from infra.errors import Problem, UserError
from trainstack.collect.listing import RefusedError, listed
from trainstack.queues import objects
from trainstack.queues.state import Job, LocalQueue, Refusal, State

_KUEUE = "kueue.x-k8s.io/v1beta2"
_VISIBILITY = "/apis/visibility.kueue.x-k8s.io/v1beta2"
_MOST_PENDING = "100000"
"""Places told at once (kubernetes-sigs/kueue v0.19.2 pkg/constants, `MaxPendingWorkloadsLimit`)."""


def read(cluster: ClusterApi, namespace: str | None) -> State:
    """What the one who asks may see: of the whole cluster, else of a namespace.

    Raises UserError where not even Workloads can be listed.
    """
    asking = _Asking(cluster, namespace)
    workloads = asking.workloads()
    runs = {one["metadata"]["uid"]: one for one in asking.of_namespaces("batch/v1", "jobs")}
    doors = [objects.local_queue(one) for one in asking.of_namespaces(_KUEUE, "localqueues")]
    ways = {(one.namespace, one.name): one.cluster_queue for one in doors}
    jobs = tuple(objects.job(one, ways, runs) for one in workloads)
    queues = asking.of_cluster(_KUEUE, "clusterqueues")
    flavors = asking.of_cluster(_KUEUE, "resourceflavors")
    nodes = asking.of_cluster("v1", "nodes")
    pods = asking.of_namespaces("v1", "pods")
    return State(
        taken=datetime.datetime.now(datetime.UTC),
        jobs=jobs,
        whole=asking.whole,
        cluster_queues=_named(queues, objects.cluster_queue),
        local_queues=tuple(doors),
        shared=_named(asking.of_cluster(_KUEUE, "cohorts"), objects.shared) or {},
        flavors=_named(flavors, objects.flavor),
        topologies=_named(asking.of_cluster(_KUEUE, "topologies"), _levels) or {},
        nodes=None if nodes is None else tuple(objects.node(one) for one in nodes),
        pods=tuple(one for one in map(objects.pod, pods) if one),
        places=asking.places(jobs, doors),
        refusals=tuple(asking.refusals),
    )


class _Asking:
    """Requests, and what was refused."""

    def __init__(self, cluster: ClusterApi, namespace: str | None) -> None:
        self._cluster = cluster
        self._namespace = namespace
        self.whole = True
        """Whether Workloads and pods of all namespaces were answered."""
        self.refusals: list[Refusal] = []

    def workloads(self) -> list[Any]:
        try:
            return self._everywhere(_KUEUE, "workloads")
        except RefusedError as error:
            raise self._unusable(error) from None

    def of_namespaces(self, version: str, plural: str) -> list[Any]:
        """Objects of all namespaces, else of the one; none where they are refused."""
        try:
            return self._everywhere(version, plural)
        except RefusedError as error:
            self.whole = False
            self._refuse(plural, error)
            return []

    def _everywhere(self, version: str, plural: str) -> list[Any]:
        try:
            return listed(self._cluster, _path(version, plural))
        except RefusedError as error:
            if error.answer.status != 403 or not self._namespace:
                raise
        found = listed(self._cluster, _path(version, plural, self._namespace))
        self.whole = False
        return found

    def of_cluster(self, version: str, plural: str) -> list[Any] | None:
        """Objects that are in no namespace; None where they are refused."""
        try:
            return listed(self._cluster, _path(version, plural))
        except RefusedError as error:
            self._refuse(plural, error)
            return None

    def places(self, jobs: Iterable[Job], doors: Iterable[LocalQueue]) -> dict[tuple[str, str], int]:
        """The places that Kueue tells, of the queues in which jobs wait."""
        found: dict[tuple[str, str], int] = {}
        waiting = {(job.namespace, job.local_queue) for job in jobs if job.queued}
        for door in doors:
            # Kueue knows no places behind a door that is stopped.
            if (door.namespace, door.name) not in waiting or door.stopped:
                continue
            path = f"{_VISIBILITY}/namespaces/{door.namespace}/localqueues/{door.name}/pendingworkloads"
            said = self._cluster.get(path, limit=_MOST_PENDING)
            if said.status != 200:
                what = f"places in queue {door.namespace}/{door.name}"
                self.refusals.append(Refusal(what, f"{said.code}: {said.message}"))
                continue
            for row in said.body.get("items") or ():
                about = row["metadata"]
                found[about["namespace"], about["name"]] = int(row.get("positionInClusterQueue") or 0)
        return found

    def _refuse(self, what: str, error: RefusedError) -> None:
        self.refusals.append(Refusal(what, error.answer.code))

    def _unusable(self, error: RefusedError) -> UserError:
        said, server = error.answer, self._cluster.server
        if said.status == 404:
            fix = "Ask the cluster of a stack with queues; Kueue 0.19 serves this version."
            return UserError([Problem("cluster", server, f"serves no {_KUEUE}", fix)])
        if said.status == 403:
            fix = "Ask as a member of a team with --team TEAM, or as an administrator."
            return UserError([Problem("cluster", server, f"does not show you its jobs: {said.message}", fix)])
        return unanswered(self._cluster, said)


def _path(version: str, plural: str, namespace: str = "") -> str:
    where = f"namespaces/{namespace}/" if namespace else ""
    return f"/{'apis' if '/' in version else 'api'}/{version}/{where}{plural}"


def _named(bodies: list[Any] | None, parse: Any) -> dict[str, Any] | None:
    return None if bodies is None else {one["metadata"]["name"]: parse(one) for one in bodies}


def _levels(topology: Any) -> tuple[str, ...]:
    return tuple(one["nodeLabel"] for one in topology["spec"]["levels"])
