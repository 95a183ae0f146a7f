"""Parsers of objects of Kueue and Kubernetes into records of the state."""

import datetime
import json
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from typing import Any

from agents.shared.kueue import (
    AWAY_NOTE,
    DEADLINE_LABEL,
    IDLE,
    PRIORITY_LABEL,
    QUEUE_NAME_LABEL,
    STOPPED_LABEL,
)
from infra.launchers import plugins
from infra.launchers.gcp import gke
from infra.quantity import parse
from trainstack.queues.state import (
    GPU,
    AdmissionCheck,
    Amounts,
    ClusterQueue,
    Condition,
    Flavor,
    FlavorAmounts,
    Job,
    LocalQueue,
    Moment,
    Node,
    Pod,
    PodSet,
    Quota,
    Unprocessed,
)

Object = Mapping[str, Any]

WORKLOAD = "kueue.x-k8s.io/workload"
"""The annotation of a pod with the name of its Workload."""
# Kueue v0.19.2 pkg/controller/jobs/pod/constants.
_GROUP = "kueue.x-k8s.io/is-group-workload"
_ENDED = ("Succeeded", "Failed")
MISSING_CLAIM = "MissingClaim"
_LONGEST_S = 100 * 365 * 86_400
# A container waits for these while its pod starts (kubernetes v1.36.2 pkg/kubelet/kubelet_pods.go).
_ORDINARY = ("ContainerCreating", "PodInitializing")


def moment(text: str) -> Moment:
    """A time in the format of the API server, `2026-11-25T20:17:32Z`."""
    return datetime.datetime.fromisoformat(text)


def job(workload: Object, queues: Mapping[tuple[str, str], str], runs: Mapping[str, Object]) -> Job:
    """A Workload, with data of its owner.

    `queues`: ClusterQueue by namespace and LocalQueue; `runs`: Jobs by their uid.
    """
    about, spec, status = workload["metadata"], workload["spec"], workload.get("status") or {}
    owner: Object = next(iter(about.get("ownerReferences") or ()), {})
    namespace, local = about["namespace"], str(spec.get("queueName") or "")
    admission = status.get("admission") or {}
    conditions = {row["type"]: _condition(row) for row in status.get("conditions") or ()}
    run = runs.get(str(owner.get("uid")), {})
    labels = about.get("labels") or {}
    longest, deadline = _ends(spec, status, run, conditions.get("Admitted"), labels)
    requeued = (status.get("requeueState") or {}).get("requeueAt")
    evictions = (status.get("schedulingStats") or {}).get("evictions") or ()
    return Job(
        namespace=namespace,
        workload=about["name"],
        name=str(owner.get("name") or about["name"]),
        local_queue=local,
        cluster_queue=str(admission.get("clusterQueue") or queues.get((namespace, local), "")),
        priority=int(spec.get("priority") or 0),
        created=moment(about["creationTimestamp"]),
        pod_sets=tuple(_pod_sets(spec, status)),
        conditions=conditions,
        assigned=_assigned(admission),
        checks=tuple(
            AdmissionCheck(row["name"], str(row.get("state")), str(row.get("message") or ""))
            for row in status.get("admissionChecks") or ()
        ),
        longest=longest,
        deadline=deadline,
        requeued_at=moment(requeued) if requeued else None,
        evictions=sum(int(row.get("count") or 0) for row in evictions),
        active=spec.get("active", True),
        idle=labels.get(STOPPED_LABEL) == IDLE,
        cluster=str(status.get("clusterName") or ""),
        sent=tuple(status.get("nominatedClusterNames") or ()),
        away=str((about.get("annotations") or {}).get(AWAY_NOTE) or ""),
        default_deadline=_by_default(labels, run),
        grouped=(about.get("annotations") or {}).get(_GROUP) == "true",
    )


def _by_default(labels: Object, run: Object) -> bool:
    """Return whether the deadline is the one that the API server added."""
    added = labels.get(DEADLINE_LABEL)
    declared = (run.get("spec") or {}).get("activeDeadlineSeconds", added)
    return added is not None and str(declared) == added


def _condition(row: Object) -> Condition:
    texts = str(row.get("reason") or ""), str(row.get("message") or "")
    return Condition(row["status"] == "True", *texts, moment(row["lastTransitionTime"]))


def _ends(
    spec: Object, status: Object, run: Object, admitted: Condition | None, labels: Object
) -> tuple[datetime.timedelta | None, Moment | None]:
    """The time limit of a job from its admission, and its deadline if it runs.

    Kueue counts earlier attempts, a Job does not (kubernetes-sigs/kueue v0.19.2
    apis/kueue/v1beta2/workload_types.go; kubernetes v1.36.2 pkg/controller/job/job_controller.go: a Job that
    is resumed gets another start time).
    """
    limits: list[tuple[datetime.timedelta, Moment | None]] = []
    running = admitted is not None and admitted.true
    if seconds := spec.get("maximumExecutionTimeSeconds"):
        left = seconds - int(status.get("accumulatedPastExecutionTimeSeconds") or 0)
        limits.append((_span(left), admitted.since if admitted else None))
    seconds = (run.get("spec") or {}).get("activeDeadlineSeconds")
    if not run and str(labels.get(DEADLINE_LABEL) or "").isdecimal():
        seconds = int(labels[DEADLINE_LABEL])
    if seconds:
        started = (run.get("status") or {}).get("startTime")
        since = moment(started) if started else admitted.since if admitted else None
        limits.append((_span(seconds), since))
    ends = [since + limit for limit, since in limits if since is not None] if running else []
    return min((limit for limit, _ in limits), default=None), min(ends, default=None)


def _span(seconds: int) -> datetime.timedelta:
    """A time limit. A Job may declare 2**63 - 1 seconds; dates end in the year 9999."""
    return datetime.timedelta(seconds=min(seconds, _LONGEST_S))


def _pod_sets(spec: Object, status: Object) -> Iterable[PodSet]:
    """The pods of a job, with Kueue's own sum of resources (with defaults) where it exists."""
    assigned = {row["name"]: row for row in (status.get("admission") or {}).get("podSetAssignments") or ()}
    asked = {row["name"]: row.get("resources") for row in status.get("resourceRequests") or ()}
    for row in spec["podSets"]:
        whole = row.get("template") or {}
        template = whole.get("spec") or {}
        given = assigned.get(row["name"], {})
        count = int(given.get("count") or row.get("count") or 0)
        counted = given.get("resourceUsage") or asked.get(row["name"])
        each = _shared(counted, count) if counted and count else pod_requests(template)
        yield PodSet(
            count,
            each,
            template.get("nodeSelector") or {},
            template.get("tolerations") or (),
            networks=frozenset(_networks(whole)),
            plugin=next((one["image"] for one in _before(template) if one["name"] == plugins.CONTAINER), ""),
        )


def _networks(template: Object) -> Iterator[str]:
    """Networks that a pod names, which a manifest of Google does by an annotation alone."""
    prefix = f"{gke.NETWORK_RESOURCE}/"
    for name in pod_requests(template.get("spec") or {}):
        if name.startswith(prefix):
            yield name.removeprefix(prefix)
    notes = (template.get("metadata") or {}).get("annotations") or {}
    try:
        rows = json.loads(notes.get(gke.INTERFACES) or "[]")
    except ValueError:
        return
    for row in rows if isinstance(rows, list) else ():
        if isinstance(row, dict) and isinstance(row.get("network"), str):
            yield row["network"]


def _before(template: Object) -> Iterable[Object]:
    return template.get("initContainers") or ()


def _shared(total: Object, count: int) -> Amounts:
    return {name: parse(amount) / count for name, amount in total.items()}


def pod_requests(spec: Object) -> Amounts:
    """The sum of the requests of a pod's containers."""
    found: dict[str, Decimal] = {}
    for container in spec.get("containers") or ():
        resources = container.get("resources") or {}
        limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
        for name, amount in {**limits, **requests}.items():
            found[name] = found.get(name, Decimal(0)) + parse(amount)
    return found


def _assigned(admission: Object) -> FlavorAmounts:
    found: dict[tuple[str, str], Decimal] = {}
    for row in admission.get("podSetAssignments") or ():
        for resource, flavor in (row.get("flavors") or {}).items():
            amount = parse((row.get("resourceUsage") or {}).get(resource, 0))
            found[flavor, resource] = found.get((flavor, resource), Decimal(0)) + amount
    return found


def cluster_queue(body: Object) -> ClusterQueue:
    """A ClusterQueue with the reservations of its jobs."""
    spec, status = body["spec"], body.get("status") or {}
    quotas = {key: _quota(row) for key, row in _quotas(spec.get("resourceGroups"))}
    return ClusterQueue(
        name=body["metadata"]["name"],
        cohort=str(spec.get("cohortName") or ""),
        weight=parse((spec.get("fairSharing") or {}).get("weight", 1)),
        stopped=spec.get("stopPolicy", "None") != "None",
        strict=spec.get("queueingStrategy") == "StrictFIFO",
        flavors=tuple(dict.fromkeys(flavor for flavor, _ in quotas)),
        quotas=quotas,
        used={
            (row["name"], one["name"]): parse(one.get("total", 0))
            for row in status.get("flavorsReservation") or ()
            for one in row.get("resources") or ()
        },
    )


def shared(cohort: Object) -> FlavorAmounts:
    """The quota of a cohort beyond that of its queues."""
    return {key: _quota(row).nominal for key, row in _quotas(cohort["spec"].get("resourceGroups"))}


def _quotas(groups: Any) -> Iterable[tuple[tuple[str, str], Object]]:
    for group in groups or ():
        for flavor in group["flavors"]:
            for row in flavor["resources"]:
                yield (flavor["name"], row["name"]), row


def _quota(row: Object) -> Quota:
    limit = row.get("borrowingLimit")
    return Quota(parse(row.get("nominalQuota", 0)), None if limit is None else parse(limit))


def local_queue(body: Object) -> LocalQueue:
    """A LocalQueue."""
    about, spec = body["metadata"], body["spec"]
    stopped = spec.get("stopPolicy", "None") != "None"
    return LocalQueue(about["namespace"], about["name"], str(spec.get("clusterQueue") or ""), stopped)


def flavor(body: Object) -> Flavor:
    """A ResourceFlavor."""
    spec = body.get("spec") or {}
    return Flavor(
        name=body["metadata"]["name"],
        labels=spec.get("nodeLabels") or {},
        taints=spec.get("nodeTaints") or (),
        tolerations=spec.get("tolerations") or (),
        topology=str(spec.get("topologyName") or ""),
    )


def node(body: Object) -> Node:
    """A Node with its allocatable GPUs."""
    about, status = body["metadata"], body.get("status") or {}
    ready = any(row["type"] == "Ready" and row["status"] == "True" for row in status.get("conditions") or ())
    return Node(
        name=about["name"],
        labels=about.get("labels") or {},
        gpus=int(parse((status.get("allocatable") or {}).get(GPU, 0))),
        usable=ready and not (body.get("spec") or {}).get("unschedulable"),
    )


def pod(body: Object) -> Pod | None:
    """A Pod; None for one that has ended."""
    about, spec = body["metadata"], body["spec"]
    if (body.get("status") or {}).get("phase") in _ENDED:
        return None
    workload = (about.get("annotations") or {}).get(WORKLOAD) or about["name"]
    gpus = int(pod_requests(spec).get(GPU, 0))
    problem = next(_problems(body.get("status") or {}), ("", ""))
    return Pod(about["namespace"], str(workload), str(spec.get("nodeName") or ""), gpus, *problem)


def _problems(status: Object) -> Iterator[tuple[str, str]]:
    """Reasons that a pod does not start, with Kubernetes' message, beyond waiting for a node or an image."""
    for row in (*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())):
        waiting = (row.get("state") or {}).get("waiting") or {}
        if waiting.get("reason") not in (None, *_ORDINARY):
            yield str(waiting["reason"]), str(waiting.get("message") or "")
    for row in status.get("conditions") or ():
        message = str(row.get("message") or "")
        if row["type"] == "PodScheduled" and row["status"] == "False" and "persistentvolumeclaim" in message:
            yield MISSING_CLAIM, message


def unprocessed(runs: Iterable[Object], workloads: Iterable[Object]) -> Iterator[Unprocessed]:
    """The suspended Jobs that belong to no other object, and of which there is no Workload."""
    known = {owner["uid"] for one in workloads for owner in one["metadata"].get("ownerReferences") or ()}
    for run in runs:
        about, spec = run["metadata"], run["spec"]
        labels = about.get("labels") or {}
        if not spec.get("suspend") or about.get("ownerReferences") or about["uid"] in known:
            continue
        if queue := labels.get(QUEUE_NAME_LABEL):
            gpus = int(pod_requests(spec["template"]["spec"]).get(GPU, 0)) * int(spec.get("parallelism") or 1)
            priority = str(labels.get(PRIORITY_LABEL) or "")
            created = moment(about["creationTimestamp"])
            yield Unprocessed(about["namespace"], about["name"], queue, priority, gpus, created)
