"""Logs of the pods of a job, on the cluster that runs it."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from agents.shared.kueue import VERSION
from infra.clouds.kubectl import ApiResponse, ClusterApi, unanswered
from infra.errors import Problem, UserError
from trainstack.collect.object_lists import ListRefusedError, listed

# Labels of pods by the kind of the job; a TrainJob makes a JobSet of its name.
_LABELS = {
    "Job": "batch.kubernetes.io/job-name",
    "JobSet": "jobset.sigs.k8s.io/jobset-name",
    "TrainJob": "jobset.sigs.k8s.io/jobset-name",
}
_GROUP = "kueue.x-k8s.io/pod-group-name"
# Kueue v0.19.2 pkg/controller/jobs/pod/constants.
_OF_GROUP = "kueue.x-k8s.io/is-group-workload"
_RANKS = ("jobset.sigs.k8s.io/job-global-index", "batch.kubernetes.io/job-completion-index")
_DENIED = 403
# Kueue v0.19.2 pkg/controller/admissionchecks/multikueue/workload.go (RemoveRemoteObjects).
_ENDED = (
    "It has ended: Kueue deletes its pods on another cluster then. Where that cluster keeps logs of pods, "
    "they are in its log group, in the streams of this namespace."
)


@dataclass(frozen=True)
class RunningAt:
    """Identity of a job, and the cluster that runs it."""

    namespace: str
    name: str
    kind: str
    """Kind of its object, such as Job; Pod: a pod or a group of pods."""
    cluster: str = ""
    """The cluster to which a manager sent it; empty: none yet, or the one that was asked."""
    ended: bool = False
    created: str = ""


def place(cluster: ClusterApi, job: str, namespaces: Iterable[str]) -> RunningAt:
    """The place of a job of any of the namespaces; of several of one name, of the newest that has not ended.

    Raises UserError for none, for a name in several namespaces, and where none can be read.
    """
    found: list[RunningAt] = []
    problems = []
    for namespace in namespaces:
        try:
            workloads = listed(cluster, f"/apis/{VERSION}/namespaces/{namespace}/workloads")
        except ListRefusedError as error:
            problems += _refused(cluster, error, f"workloads of {namespace}")
            continue
        found += [one for one in map(_running_at, workloads) if one.name == job]
    if not found:
        fix = "`trainstack queue` shows the jobs that run and wait."
        absent = Problem("JOB", job, "is no job of these teams", fix, code="job-not-found")
        raise UserError(problems or [absent])
    if len({one.namespace for one in found}) > 1:
        rule = f"is a job in {', '.join(sorted({one.namespace for one in found}))}"
        fix = "Select one with --team or --namespace."
        raise UserError([Problem("JOB", job, rule, fix, code="job-of-several-teams")])
    return max(found, key=lambda one: (not one.ended, one.created))


def lines(cluster: ClusterApi, job: RunningAt, tail: int) -> Iterator[str]:
    """The last lines of each container that has started, with its pod, in the order of ranks.

    Of a container that waits to be started again, those of its last start. Raises UserError where the job has
    no pods, and where no log can be read.
    """
    try:
        pods = list(_pods(cluster, job))
    except ListRefusedError as error:
        raise UserError(_refused(cluster, error, f"pods of {job.namespace}")) from None
    if not pods:
        fix = _ENDED if job.ended else "`trainstack queue` shows why it waits."
        raise UserError([Problem("JOB", job.name, "has no pods there", fix, code="job-without-pods")])
    denied, read = None, False
    for pod in sorted(pods, key=_order):
        for container, previous in _containers(pod):
            at = f"[{pod['metadata']['name']}/{container}]"
            path = f"/api/v1/namespaces/{job.namespace}/pods/{pod['metadata']['name']}/log"
            again = {"previous": "true"} if previous else {}
            answer = cluster.text(path, container=container, tailLines=str(tail), **again)
            if isinstance(answer, ApiResponse):
                denied = answer if answer.status == _DENIED else denied
                yield f"{at} no log: {answer.message or answer.code}"
                continue
            read = True
            # A progress bar writes one line many times.
            yield from (f"{at} {line.rsplit(chr(13), 1)[-1]}" for line in answer.rstrip("\n").split("\n"))
    if denied is not None and not read:
        raise UserError(_refused(cluster, ListRefusedError(denied), f"logs of {job.namespace}"))


def _pods(cluster: ClusterApi, job: RunningAt) -> list[Mapping[str, Any]]:
    """Pods of the job. Raises ListRefusedError."""
    path = f"/api/v1/namespaces/{job.namespace}/pods"
    label = _LABELS.get(job.kind)
    if label is not None:
        return listed(cluster, path, labelSelector=f"{label}={job.name}")
    grouped = listed(cluster, path, labelSelector=f"{_GROUP}={job.name}")
    return grouped or listed(cluster, path, fieldSelector=f"metadata.name={job.name}")


def _containers(pod: Mapping[str, Any]) -> Iterator[tuple[str, bool]]:
    """Containers that have started, initial ones first, and whether to read the log of their last start."""
    status = pod.get("status") or {}
    for part in ("initContainerStatuses", "containerStatuses"):
        for one in status.get(part) or ():
            state = one.get("state") or {}
            restarted = int(one.get("restartCount") or 0) > 0
            if "waiting" not in state or restarted:
                yield str(one["name"]), "waiting" in state
    if not status.get("containerStatuses"):
        yield from ((str(one["name"]), False) for one in pod["spec"]["containers"])


def _order(pod: Mapping[str, Any]) -> tuple[int, int, str]:
    about = pod["metadata"]
    noted = {**(about.get("labels") or {}), **(about.get("annotations") or {})}
    of_set, of_job = (int(noted.get(rank) or 0) for rank in _RANKS)
    return of_set, of_job, str(about["name"])


def _refused(cluster: ClusterApi, error: ListRefusedError, what: str) -> list[Problem]:
    if error.answer.status != _DENIED:  # such as a private address without a way into its network
        return list(unanswered(cluster, error.answer).problems)
    rule, fix = f"{what} cannot be read: {error}", "Log in to this cluster as a member of the team."
    return [Problem("cluster", cluster.server, rule, fix, code="logs-not-readable")]


def _running_at(workload: Mapping[str, Any]) -> RunningAt:
    about, status = workload["metadata"], workload.get("status") or {}
    grouped = (about.get("annotations") or {}).get(_OF_GROUP) == "true"
    owner: Mapping[str, Any] = next(iter(about.get("ownerReferences") or ()), {})
    own = grouped or not owner
    return RunningAt(
        namespace=about["namespace"],
        name=str(about["name"] if own else owner["name"]),
        kind="Pod" if own else str(owner["kind"]),
        cluster=str(status.get("clusterName") or ""),
        ended=any(
            one["type"] == "Finished" and one["status"] == "True" for one in status.get("conditions") or ()
        ),
        created=str(about["creationTimestamp"]),
    )
