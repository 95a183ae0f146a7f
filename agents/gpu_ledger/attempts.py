"""Read the attempts of a Kueue Workload to run: when it held which GPUs. Pure; runs in a pod.

An attempt begins when `Admitted` turns true and ends when that turns false, or when the Workload is finished
(kubernetes-sigs/kueue v0.19.2 pkg/workload/admissionchecks.go, `SyncAdmittedCondition`; a finished Workload
stays admitted). A Workload that is evicted holds its quota, and its pods may run, until it is not admitted
any more. All times are whole seconds since 1970 as Kueue and the API server wrote them.
"""

import datetime
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from agents.gpu_ledger.units import share
from agents.shared.times import seconds
from infra.quantity import parse

# Other devices (network cards) are not charged for.
DEVICES = "nvidia.com/"
# Kueue copies it from a job to its Workload (`labelKeysToCopy`), once, at creation of the Workload.
PROJECT_LABEL = "trainstack.dev/project"
NO_PROJECT = "none"
# Of all projects beyond the bound of a book (`ledger.MOST_PROJECTS`).
OTHER_PROJECT = "other"
UNKNOWN_POOL = "unknown"
# The class of a job without a priority class (components/kubernetes/queueing/kueue.py, `PRIORITIES`).
NO_PRIORITY = "default"
# Parent and variant are both admitted: KEP-8691, pkg/controller/concurrentadmission.
_PARENT = "kueue.x-k8s.io/concurrent-admission-parent"
# On the Workload that replaces a smaller one of an elastic job (pkg/workloadslicing/workloadslicing.go). The
# smaller one is finished at the reservation of the larger one (pkg/scheduler/scheduler.go,
# `replaceWorkloadSlice`), and the job's pods run on: it holds its devices from there, not from its admission.
_REPLACES = "kueue.x-k8s.io/workload-slice-replacement-for"
# Field manager of `reclaimablePods` (pkg/constants/constants.go, `ReclaimablePodsMgr`).
_RECLAIMS = "kueue-reclaimable-pods"

Object = Mapping[str, Any]
Shares = Mapping[tuple[str, str], int]
"""Devices by pool (Kueue's flavor) and resource, where a share of a GPU has its own name (`units`)."""
Parts = Mapping[str, int]
"""Shares of each GPU, by pool (Kueue's flavor); pools with whole GPUs are left out."""
WHOLE: Parts = MappingProxyType({})
"""All GPUs are whole."""


@dataclass(frozen=True)
class Seen:
    """The current state of a Workload."""

    uid: str
    namespace: str
    name: str
    project: str
    priority: str
    """Its priority class."""
    created: int
    admitted: int | None
    """Start of its admission; None while it is not admitted."""
    released: int | None
    """End of its last attempt by losing its admission; None while it is admitted, or never was."""
    finished: int | None
    """Time of its end."""
    ready: int | None
    """Since when all its pods are ready; None while they are not."""
    unready: int | None
    """Since when they are not."""
    asked: Shares
    """The admitted or reserved devices; without either, the requests of its pods, of no pool."""
    shares: Shares
    """The devices that it holds of these: pods that are done (`reclaimablePods`) hold none."""
    done: int
    """Number of pods that are done."""
    changed: int | None
    """Time of the last report of pods as done."""
    past_s: int
    """Seconds of its attempts that lost their admission, by Kueue's own count."""
    limit_s: int | None
    """Time limit of all its attempts together; None: no limit."""
    version: int = 0
    """Version of this state (`metadata.resourceVersion`); 0: unknown."""

    @property
    def left_s(self) -> int | None:
        """Seconds until Kueue ends it, counted from the admission of this attempt; None without a limit."""
        return None if self.limit_s is None else max(0, self.limit_s - self.past_s)


def seen(workload: Object, parts: Parts = WHOLE) -> Seen | None:
    """The state of a Workload; None for one that is only the parent of others.

    `parts`: shares of each GPU in pools where pods share them.
    """
    metadata, spec = workload["metadata"], workload.get("spec") or {}
    labels, status = metadata.get("labels") or {}, workload.get("status") or {}
    if labels.get(_PARENT) == "true":
        return None
    conditions = {row["type"]: row for row in status.get("conditions") or ()}
    holds = "QuotaReserved" if _REPLACES in (metadata.get("annotations") or {}) else "Admitted"
    counts = {row["name"]: int(row.get("count") or 1) for row in spec.get("podSets") or ()}
    done = {row["name"]: int(row["count"]) for row in status.get("reclaimablePods") or ()}
    limit = spec.get("maximumExecutionTimeSeconds")
    return Seen(
        uid=metadata["uid"],
        namespace=metadata["namespace"],
        name=metadata["name"],
        project=labels.get(PROJECT_LABEL) or NO_PROJECT,
        priority=(spec.get("priorityClassRef") or {}).get("name") or NO_PRIORITY,
        created=seconds(metadata["creationTimestamp"]),
        admitted=_since(conditions, holds, "True"),
        released=_since(conditions, holds, "False"),
        finished=_since(conditions, "Finished", "True"),
        ready=_since(conditions, "PodsReady", "True"),
        unready=_since(conditions, "PodsReady", "False"),
        asked=_assigned(status, {}, {}, parts) if "admission" in status else _requested(spec),
        shares=_assigned(status, counts, done, parts),
        done=sum(done.values()),
        changed=_changed(metadata),
        past_s=int(status.get("accumulatedPastExecutionTimeSeconds") or 0),
        limit_s=None if limit is None else int(limit),
        version=version(metadata),
    )


def version(metadata: Object) -> int:
    """The `resourceVersion` as a number; 0 for none, and for one of a server whose versions are no numbers.

    Versions of one kind are ordered (Kubernetes KEP-5504; with etcd they always were).
    """
    text = str(metadata.get("resourceVersion") or "")
    return int(text) if text.isdecimal() else 0


def days(start: int, end: int) -> Iterator[tuple[str, int, int]]:
    """Split a period into days (UTC): each with its part of the period."""
    while start < end:
        day = datetime.datetime.fromtimestamp(start, datetime.UTC).date()
        tomorrow = datetime.datetime.combine(day + datetime.timedelta(days=1), datetime.time(), datetime.UTC)
        stop = min(end, int(tomorrow.timestamp()))
        yield day.isoformat(), start, stop
        start = stop


def month_end(at: int) -> int:
    """End of the month (UTC) of a time."""
    day = datetime.datetime.fromtimestamp(at, datetime.UTC)
    return int(
        datetime.datetime(day.year + day.month // 12, day.month % 12 + 1, 1, tzinfo=datetime.UTC).timestamp()
    )


def _since(conditions: Mapping[str, Object], kind: str, status: str) -> int | None:
    row = conditions.get(kind)
    return seconds(row["lastTransitionTime"]) if row and row["status"] == status else None


def _assigned(status: Object, counts: Mapping[str, int], done: Mapping[str, int], parts: Parts) -> Shares:
    """Devices that Kueue counts for a Workload; `resourceUsage` is of all pods, as at admission.

    Kueue counts the admitted pods or, where these are fewer, those of `counts` (the current spec, which an
    elastic job scales down in place) without those that are done (pkg/workload/workload.go,
    `totalRequestsFromAdmission`).
    """
    found: dict[tuple[str, str], int] = {}
    for row in (status.get("admission") or {}).get("podSetAssignments") or ():
        pods = int(row.get("count") or 0)
        left = max(0, min(pods, counts.get(row["name"], pods) - done.get(row["name"], 0)))
        for resource, amount in (row.get("resourceUsage") or {}).items():
            devices = int(parse(amount)) * left // pods if pods else 0
            if resource.startswith(DEVICES) and devices:
                pool = (row.get("flavors") or {}).get(resource, UNKNOWN_POOL)
                key = (pool, share(resource, parts.get(pool, 1)))
                found[key] = found.get(key, 0) + devices
    return found


def _requested(spec: Object) -> Shares:
    found: dict[tuple[str, str], int] = {}
    for row in spec.get("podSets") or ():
        for container in row["template"]["spec"].get("containers") or ():
            for resource, amount in ((container.get("resources") or {}).get("requests") or {}).items():
                if resource.startswith(DEVICES):
                    key = (UNKNOWN_POOL, resource)
                    found[key] = found.get(key, 0) + int(parse(amount)) * int(row.get("count") or 1)
    return found


def _changed(metadata: Object) -> int | None:
    times = [
        row["time"]
        for row in metadata.get("managedFields") or ()
        if row.get("manager") == _RECLAIMS and row.get("time")
    ]
    return seconds(max(times)) if times else None
