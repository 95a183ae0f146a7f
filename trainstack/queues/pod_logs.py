"""Logs of the pods of a job, on the cluster that runs it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from agents.shared.kueue import VERSION
from infra.clouds.kubectl import ClusterApi
from infra.errors import Problem, UserError
from trainstack.collect.object_lists import ListRefusedError, listed

# Of the pods of Jobs; of the Jobs of JobSets, thus of TrainJobs; and of groups of single pods.
_LABELS = (
    "batch.kubernetes.io/job-name",
    "jobset.sigs.k8s.io/jobset-name",
    "kueue.x-k8s.io/pod-group-name",
)
_INDEX = "batch.kubernetes.io/job-completion-index"


@dataclass(frozen=True)
class RunningAt:
    """Namespace and cluster of a job."""

    namespace: str
    cluster: str
    """The cluster to which a manager sent it; empty: none yet, or the one that was asked."""


def place(cluster: ClusterApi, job: str, namespaces: Iterator[str]) -> RunningAt:
    """The place of a job of any of the namespaces. Raises UserError for none, and for several."""
    found, problems = [], []
    for namespace in namespaces:
        try:
            workloads = listed(cluster, f"/apis/{VERSION}/namespaces/{namespace}/workloads")
        except ListRefusedError as error:
            fix = "Log in as a member of the team, or select a team with --team."
            problems.append(Problem("namespace", namespace, str(error), fix, code="jobs-not-readable"))
            continue
        found += [
            RunningAt(namespace, str((one.get("status") or {}).get("clusterName") or ""))
            for one in workloads
            if _named(one) == job
        ]
    if not found:
        fix = "`trainstack queue` shows the jobs that run and wait."
        absent = Problem("JOB", job, "is no job of these teams", fix, code="job-not-found")
        raise UserError(problems or [absent])
    if len({one.namespace for one in found}) > 1:
        rule = f"is a job in {', '.join(sorted({one.namespace for one in found}))}"
        fix = "Select one with --team or --namespace."
        raise UserError([Problem("JOB", job, rule, fix, code="job-of-several-teams")])
    return max(found, key=lambda one: one.cluster)


def lines(cluster: ClusterApi, namespace: str, job: str, tail: int) -> Iterator[str]:
    """The last lines of each container, with its pod, in the order of ranks.

    Raises UserError where the job has no pods, or they cannot be read.
    """
    pods = list(_pods(cluster, namespace, job))
    if not pods:
        rule, fix = (
            "has no pods there",
            "`trainstack queue` says why it waits; pods of ended jobs may be deleted.",
        )
        raise UserError([Problem("JOB", job, rule, fix, code="job-without-pods")])
    for pod in sorted(pods, key=_order):
        name = pod["metadata"]["name"]
        containers = [one["name"] for one in pod["spec"]["containers"]]
        for container in containers:
            at = name if len(containers) == 1 else f"{name}/{container}"
            path = f"/api/v1/namespaces/{namespace}/pods/{name}/log"
            answer = cluster.text(path, container=container, tailLines=str(tail))
            if isinstance(answer, str):
                yield from (f"[{at}] {line}" for line in answer.splitlines())
            else:  # a container that has not started has none
                yield f"[{at}] no log: {answer.message or answer.code}"


def _pods(cluster: ClusterApi, namespace: str, job: str) -> Iterator[Mapping[str, Any]]:
    seen = set()
    for label in _LABELS:
        try:
            pods = listed(cluster, f"/api/v1/namespaces/{namespace}/pods", labelSelector=f"{label}={job}")
        except ListRefusedError as error:
            fix = "Log in to this cluster as a member of the team."
            raise UserError(
                [Problem("cluster", cluster.server, str(error), fix, code="pods-not-readable")]
            ) from None
        for pod in pods:
            if pod["metadata"]["uid"] not in seen:
                seen.add(pod["metadata"]["uid"])
                yield pod


def _order(pod: Mapping[str, Any]) -> tuple[int, str]:
    about = pod["metadata"]
    return int((about.get("annotations") or {}).get(_INDEX) or 0), str(about["name"])


def _named(workload: Mapping[str, Any]) -> str:
    """The name of a workload's job, as its user gave it."""
    owners = workload["metadata"].get("ownerReferences") or ({"name": workload["metadata"]["name"]},)
    return str(owners[0]["name"])
