"""Reasons why a job does not run yet, from messages of Kueue and the state of nodes."""

import datetime
from collections.abc import Iterable, Mapping

from agents.queued_jobs.reasons import (
    TOPOLOGY,
    Kind,
    Reason,
    of_checks,
    of_inactive,
    of_message,
    of_unprocessed,
)
from components.kubernetes.queueing.kueue import PRIORITIES as CLASSES
from trainstack.queues import fragmentation
from trainstack.queues.matching import candidates
from trainstack.queues.objects import MISSING_CLAIM
from trainstack.queues.pools import Capacity
from trainstack.queues.positions import Place
from trainstack.queues.state import GPU, ClusterQueue, Job, Unprocessed

# Kubernetes' words for what keeps a container from starting (pkg/kubelet/images/types.go,
# pkg/kubelet/kuberuntime/kuberuntime_container.go).
_OF_PODS: dict[str, Kind] = {
    "ErrImagePull": "image", "ImagePullBackOff": "image", "InvalidImageName": "image",
    "ErrImageNeverPull": "image", "ImageInspectError": "image", "RegistryUnavailable": "image",
    "CreateContainerConfigError": "configuration", "CreateContainerError": "configuration",
    "RunContainerError": "configuration", "CrashLoopBackOff": "crash loop", MISSING_CLAIM: "volume claim",
}  # fmt: skip
# Pods of an admitted job exist after this time.
_CREATION = datetime.timedelta(minutes=1)

_CLASSES = {one.name: not one.internal for one in CLASSES}


def reason(job: Job, capacity: Capacity, places: Mapping[tuple[str, str], Place]) -> Reason:
    """The reason that an unfinished job does not run yet."""
    checks = {one.name: (one.state, one.message) for one in job.checks}
    if not job.active:
        rows = {name: (one.true, one.reason, one.message) for name, one in job.conditions.items()}
        return of_inactive(idle=job.idle, away=job.away, checks=checks, conditions=rows)
    if job.admitted:
        return _starting(job, capacity)
    if job.holding and job.sent:
        text = f"it is sent to {', '.join(job.sent)}, which has not started it; the queue there says why"
        return Reason("admission check", text)
    if job.holding:
        return of_checks(checks) or Reason("other", "its quota is reserved")
    return _queued(job, capacity, places)


def unprocessed(job: Unprocessed) -> Reason:
    """The reason that Kueue made no Workload of a Job."""
    return of_unprocessed(job.priority_class, _CLASSES)


def _queued(job: Job, capacity: Capacity, places: Mapping[tuple[str, str], Place]) -> Reason:
    state = capacity.state
    queue = (state.cluster_queues or {}).get(job.cluster_queue)
    stopped = {(one.namespace, one.name) for one in state.local_queues if one.stopped}
    if (job.namespace, job.local_queue) in stopped or (queue and queue.stopped):
        return Reason("stopped", f"queue {job.local_queue} is stopped by an administrator")
    if job.requeued_at and job.requeued_at > state.taken:
        return Reason("retry later", f"it was stopped; Kueue retries it at {job.requeued_at:%H:%M} UTC")
    if message := _message_about(job, state.jobs):
        return _of_message(job, message, queue, capacity)
    place = places.get(job.key)
    ahead = place.number - 1 if place else 0
    if ahead:
        return Reason("behind others", f"{ahead} jobs of its queue come first")
    return Reason("other", "Kueue has not evaluated it yet")


def _message_about(job: Job, jobs: Iterable[Job]) -> str:
    """Kueue's message about a job, or about an equal one of its queue: Kueue evaluates only one of them.

    Source: kubernetes-sigs/kueue v0.19.2 pkg/workload/workload.go, `computeSchedulingHash`.
    """
    if "QuotaReserved" in job.conditions:
        return job.conditions["QuotaReserved"].message
    alike = (
        one for one in jobs if one.queued and _asks(one) == _asks(job) and "QuotaReserved" in one.conditions
    )
    return next((one.conditions["QuotaReserved"].message for one in alike), "")


def _asks(job: Job) -> tuple[object, ...]:
    shape = [(one.count, one.gpus, dict(one.selector)) for one in job.pod_sets]
    return job.cluster_queue, job.priority, shape


def _of_message(job: Job, message: str, queue: ClusterQueue | None, capacity: Capacity) -> Reason:
    found = of_message(message)
    if found.kind == "topology":
        return _topology(job, message, queue, capacity)
    if found.kind in ("quota", "never fits") and queue is not None and job.gpus:
        return _quota(job, found, queue, capacity)
    return found


def _quota(job: Job, found: Reason, queue: ClusterQueue, capacity: Capacity) -> Reason:
    """The free GPUs of each pool that a job accepts, else the reason `found`."""
    ledger = capacity.ledger
    names = [
        name
        for name in candidates(job, queue, capacity.state.flavors or {})
        if (name, GPU) in queue.quotas and ledger.total(queue, name, GPU)
    ]
    free = {name: max(int(ledger.free(queue, name, GPU)), 0) for name in names}
    left = {name: max(int(ledger.left(queue, name, GPU)), 0) for name in names}
    most = {name: int(ledger.most(queue, name, GPU)) for name in names}
    whole = {name: int(ledger.total(queue, name, GPU)) for name in names}
    need = f"needs {job.gpus} GPUs in one pool"
    if any(whole[name] >= job.gpus > most[name] for name in names) and max(most.values()) < job.gpus:
        return Reason("borrowing limit", f"{need}; its queue may hold {_listed(most, whole)}")
    if names and max(whole.values()) < job.gpus:
        return Reason("never fits", f"{need}; there are {_listed(whole)}")
    if any(left[name] >= job.gpus > free[name] for name in names):
        return Reason("borrowing limit", f"{need}; its queue may have {_listed(free, left)} that are free")
    if not names or any(
        free[name] >= job.gpus for name in names
    ):  # another resource is short, or the state changed
        return found
    return Reason("quota", f"{need}; free: {_listed(free, whole)}")


def _listed(amounts: Mapping[str, int], of: Mapping[str, int] | None = None) -> str:
    """Amounts by pool, `8 of 16 in a100`."""
    return ", ".join(f"{n}{f' of {of[name]}' if of else ''} in {name}" for name, n in amounts.items())


def _topology(job: Job, message: str, queue: ClusterQueue | None, capacity: Capacity) -> Reason:
    """The reason in a pool with a topology, where Kueue itself places pods on nodes."""
    found = TOPOLOGY.search(message)
    text = found.group() if found else message
    free = capacity.free
    if queue is None or free is None:
        return Reason("topology", text)
    names = [*candidates(job, queue, capacity.state.flavors or {})]
    if missing := next(filter(None, (_unlabeled(name, capacity) for name in names)), None):
        return Reason("topology", missing)
    most = max((one.gpus for one in job.pod_sets), default=0)
    for name in names:
        there = [free[node.name] for node in capacity.nodes(name)]
        if most and sum(there) >= job.gpus:
            if max(there) < most:
                return _fragmented(name, there, most)
            return Reason("topology", f"{text}; {sum(there)} GPUs are free in {name}, but not close together")
    return Reason("topology", text)


def _unlabeled(pool: str, capacity: Capacity) -> str:
    """A pool in which Kueue places no pod, because no node has all labels of its topology; empty: it does."""
    flavor = (capacity.state.flavors or {}).get(pool)
    levels = capacity.state.topologies.get(flavor.topology, ()) if flavor else ()
    nodes = capacity.nodes(pool)
    missing = [[level for level in levels if level not in node.labels] for node in nodes]
    if not missing or not all(missing):
        return ""
    return f"no node of {pool} has the label {missing[0][0]}, by which its pods are placed"


def _fragmented(pool: str, free: list[int], gpus: int) -> Reason:
    message = f"{sum(free)} GPUs are free in {pool}, at most {max(free)} on one node; a pod needs {gpus}"
    return Reason("fragmentation", message)


def _starting(job: Job, capacity: Capacity) -> Reason:
    pods = [pod for pod in capacity.state.pods if (pod.namespace, pod.workload) == job.key]
    if failing := next((pod for pod in pods if pod.problem in _OF_PODS), None):
        return Reason(_OF_PODS[failing.problem], f"{failing.problem}: {failing.message}")
    if not pods and capacity.state.taken - job.conditions["Admitted"].since > _CREATION:
        return Reason("pods refused", "it is admitted, and none of its pods exists")
    unscheduled = [pod for pod in pods if not pod.node]
    if pods and not unscheduled:
        return Reason("starting", "all its pods have nodes but are not ready yet")
    missing = len(unscheduled) or sum(one.count for one in job.pod_sets)
    pool = next((name for name, _ in job.assigned), "")
    gpus = max((pod.gpus for pod in unscheduled), default=0)
    known = capacity.pools.get(pool)
    free = [(capacity.free or {}).get(node.name, 0) for node in capacity.nodes(pool)]
    grown = known is not None and known.on_nodes is not None and known.on_nodes >= known.gpus
    if gpus and capacity.free is not None and grown and fragmentation.slots(free, gpus) < missing:
        if sum(free) >= missing * gpus:
            return _fragmented(pool, free, gpus)
        return Reason("starting", f"{missing} pods wait for GPUs that other pods of {pool} still use")
    return Reason("nodes booting", f"{missing} pods wait for room on nodes of {pool}")
