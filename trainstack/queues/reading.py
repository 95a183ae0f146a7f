"""Read the state of queues from the API server of a cluster."""

import datetime
from collections.abc import Iterable
from typing import Any

from agents.shared.jobs import RUNNING_PODS
from agents.shared.kueue import VERSION
from infra.clouds.kubectl import ClusterApi, unanswered
from infra.errors import Problem, UserError
from trainstack.collect.object_lists import ListRefusedError, listed
from trainstack.queues import objects
from trainstack.queues.state import Job, LocalQueue, Refusal, State

_VISIBILITY = "/apis/visibility.kueue.x-k8s.io/v1beta2"
_MOST_PENDING = "100000"
"""Places per response (kubernetes-sigs/kueue v0.19.2 pkg/constants, `MaxPendingWorkloadsLimit`)."""


def read(cluster: ClusterApi, namespace: str | None) -> State:
    """Read what the caller has access to: the whole cluster, else a namespace.

    Raises UserError where not even Workloads can be listed.
    """
    asking = _Asking(cluster, namespace)
    workloads = asking.workloads()
    runs = {one["metadata"]["uid"]: one for one in asking.of_namespaces("batch/v1", "jobs")}
    unprocessed = objects.unprocessed(runs.values(), workloads)
    local_queues = [objects.local_queue(one) for one in asking.of_namespaces(VERSION, "localqueues")]
    cluster_queues = {(one.namespace, one.name): one.cluster_queue for one in local_queues}
    jobs = tuple(objects.job(one, cluster_queues, runs) for one in workloads)
    queues = asking.of_cluster(VERSION, "clusterqueues")
    flavors = asking.of_cluster(VERSION, "resourceflavors")
    nodes = asking.of_cluster("v1", "nodes")
    pods = asking.of_namespaces("v1", "pods", fieldSelector=RUNNING_PODS)
    return State(
        taken=datetime.datetime.now(datetime.UTC),
        jobs=jobs,
        unprocessed=tuple(unprocessed),
        whole=asking.whole,
        cluster_queues=_named(queues, objects.cluster_queue),
        local_queues=tuple(local_queues),
        shared=_named(asking.of_cluster(VERSION, "cohorts"), objects.shared) or {},
        flavors=_named(flavors, objects.flavor),
        topologies=_named(asking.of_cluster(VERSION, "topologies"), _levels) or {},
        nodes=None if nodes is None else tuple(objects.node(one) for one in nodes),
        pods=tuple(one for one in map(objects.pod, pods) if one),
        places=asking.places(jobs, local_queues),
        refusals=tuple(asking.refusals),
    )


class _Asking:
    """Requests, with a record of denied ones."""

    def __init__(self, cluster: ClusterApi, namespace: str | None) -> None:
        self._cluster = cluster
        self._namespace = namespace
        self.whole = True
        """False after Workloads or pods of other namespaces were denied."""
        self.refusals: list[Refusal] = []

    def workloads(self) -> list[Any]:
        try:
            return self._everywhere(VERSION, "workloads")
        except ListRefusedError as error:
            raise self._unusable(error) from None

    def of_namespaces(self, version: str, plural: str, **query: str) -> list[Any]:
        """Objects of all namespaces, else of the one; none where both are denied."""
        try:
            return self._everywhere(version, plural, **query)
        except ListRefusedError as error:
            self.whole = False
            self._refuse(plural, error)
            return []

    def _everywhere(self, version: str, plural: str, **query: str) -> list[Any]:
        try:
            return listed(self._cluster, _path(version, plural), **query)
        except ListRefusedError as error:
            if error.answer.status != 403 or not self._namespace:
                raise
        found = listed(self._cluster, _path(version, plural, self._namespace), **query)
        self.whole = False
        return found

    def of_cluster(self, version: str, plural: str) -> list[Any] | None:
        """Cluster-scoped objects; None where they are denied."""
        try:
            return listed(self._cluster, _path(version, plural))
        except ListRefusedError as error:
            self._refuse(plural, error)
            return None

    def places(self, jobs: Iterable[Job], local_queues: Iterable[LocalQueue]) -> dict[tuple[str, str], int]:
        """The places that Kueue reports for queues with waiting jobs."""
        found: dict[tuple[str, str], int] = {}
        waiting = {(job.namespace, job.local_queue) for job in jobs if job.queued}
        for queue in local_queues:
            # Kueue reports no places for a stopped queue.
            if (queue.namespace, queue.name) not in waiting or queue.stopped:
                continue
            path = f"{_VISIBILITY}/namespaces/{queue.namespace}/localqueues/{queue.name}/pendingworkloads"
            response = self._cluster.get(path, limit=_MOST_PENDING)
            if response.status != 200:
                what = f"places in queue {queue.namespace}/{queue.name}"
                self.refusals.append(Refusal(what, f"{response.code}: {response.message}"))
                continue
            for row in response.body.get("items") or ():
                about = row["metadata"]
                found[about["namespace"], about["name"]] = int(row.get("positionInClusterQueue") or 0)
        return found

    def _refuse(self, what: str, error: ListRefusedError) -> None:
        self.refusals.append(Refusal(what, error.answer.code))

    def _unusable(self, error: ListRefusedError) -> UserError:
        response, server = error.answer, self._cluster.server
        if response.status == 404:
            fix = "Name a stack with queues; Kueue 0.19 serves this version."
            rule = f"does not serve {VERSION}"
            return UserError([Problem("cluster", server, rule, fix, code="kueue-missing")])
        if response.status == 403:
            fix = "Add --team TEAM as a member of a team, or log in as an administrator."
            rule = f"denies access to its jobs: {response.message}"
            return UserError([Problem("cluster", server, rule, fix, code="cluster-access-denied")])
        return unanswered(self._cluster, response)


def _path(version: str, plural: str, namespace: str = "") -> str:
    where = f"namespaces/{namespace}/" if namespace else ""
    return f"/{'apis' if '/' in version else 'api'}/{version}/{where}{plural}"


def _named(bodies: list[Any] | None, parse: Any) -> dict[str, Any] | None:
    return None if bodies is None else {one["metadata"]["name"]: parse(one) for one in bodies}


def _levels(topology: Any) -> tuple[str, ...]:
    return tuple(one["nodeLabel"] for one in topology["spec"]["levels"])
