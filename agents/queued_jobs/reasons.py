"""Reasons why a job does not start, from its Workload, and the fix of each (pure); standard library only.

Events of jobs and `trainstack queue` have the same words.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from agents.shared.kueue import (
    AWAY_NOTE,
    DEADLINE_LABEL,
    IDLE,
    OVER_BUDGET,
    PRIORITY_LABEL,
    QUEUE_NAME_LABEL,
    RETRY_LABEL,
    STOPPED_LABEL,
)
from agents.shared.times import seconds, stamp

Object = Mapping[str, Any]
Kind = Literal[
    "quota", "never fits", "borrowing limit", "topology", "fragmentation", "no matching pool", "stopped",
    "admission check", "over budget", "pool closed", "nodes booting", "starting", "preempting", "retry later",
    "requeue limit", "time limit", "deactivated", "behind others", "ends soon", "no such queue",
    "no such priority", "unknown resource", "image", "configuration", "volume claim", "crash loop",
    "stopped idle", "pods refused", "not processed", "resources", "dependency", "held", "nodes away", "other",
]  # fmt: skip
UNKNOWN_NAME = "NAME"
# Time before the end of a job by a default deadline.
NOTICE_S = 86_400
_MOST_DIGITS = 9  # 31 years
# Beginning of Kueue's message on a job that it deactivated (pkg/controller/core/workload_controller.go).
_STOPPED = "The workload is deactivated"

AGAIN = "delete the job and submit it again: kubectl replace --force -f FILE"
RETRYABLE = ("Job", "JobSet", "TrainJob")
"""Kinds of jobs that Kueue keeps when it stops them. Pods it deletes (pkg/controller/jobs/pod)."""
_MORE_TIME = (
    '. It can have more time: kubectl patch job {name} -p \'{{"spec":{{"activeDeadlineSeconds":SECONDS}}}}\''
)
# `retry` is the label, or AGAIN where that starts nothing.
_FIXES: dict[Kind, str] = {
    "never fits": "request no more than one pool has",
    "borrowing limit": "request less, or ask an administrator for a larger guarantee",
    "no matching pool": "remove the nodeSelector or affinity, or name the queue of the pool",
    # The template of a Job cannot be changed (kubernetes pkg/apis/batch/validation, `ValidateJobUpdate`).
    "requeue limit": "read why its pods did not start (kubectl get events). With a wrong image or command, "
    f"correct the file, {AGAIN}. With a missing node or Secret, wait for it or create it, then {{retry}}",
    "time limit": f"continue from its last checkpoint: {{retry}}. To allow more time, {AGAIN}",
    "deactivated": f"ask an administrator, or {AGAIN}",
    "stopped idle": "{retry}",
    "ends soon": "write a checkpoint before that{more_time}",
    "no such queue": f"name one of `kubectl get localqueues` in label {QUEUE_NAME_LABEL}; {AGAIN}",
    "unknown resource": f"request GPUs as nvidia.com/gpu in resources.limits; {AGAIN}",
    "image": f"correct the name of the image, {AGAIN}. With a wrong pull secret, correct that alone",
    "configuration": "create the Secret or ConfigMap that the message names: the pod then starts",
    "volume claim": "create the claim that the message names, or use one of `kubectl get pvc`",
    "crash loop": f"read kubectl logs --previous, correct the program; {AGAIN}",
    "pods refused": f"read the refusal in kubectl describe {{kind}} {{name}}; {AGAIN}",
    "not processed": "wait for a minute; then an administrator checks Kueue (runbook KueueDown)",
}


@dataclass(frozen=True)
class Reason:
    """The reason why a job waits, or ends: its kind and a sentence."""

    kind: Kind
    text: str
    remedy: str = ""
    """A fix for this case; default: that of its kind."""
    begins: int = 0
    """The time (seconds since 1970) from which it applies; 0: now."""

    @property
    def fix(self) -> str:
        """The action of the job's owner; empty where waiting is enough."""
        return self.fix_of("Job", UNKNOWN_NAME)

    def fix_of(self, kind: str, name: str) -> str:
        """The fix for an object of some kind, such as JobSet."""
        return self.remedy or _FIXES.get(self.kind, "").format(
            kind=kind.lower(),
            name=name,
            retry=f"kubectl label {kind.lower()} {name} {RETRY_LABEL}=$(date +%s) --overwrite"
            if kind in RETRYABLE
            else AGAIN,
            more_time=_MORE_TIME.format(name=name) if kind == "Job" else "",
        )

    def words(self, kind: str = "Job", name: str = UNKNOWN_NAME) -> str:
        """Kind, sentence and fix in one line."""
        fix = self.fix_of(kind, name)
        return f"{self.kind}: {self.text}{f'. Fix: {fix}' if fix else ''}"


# Messages of Kueue's conditions. Their reasons are only `Pending` without the feature
# UnadmittedWorkloadsObservability, which is off by default (kubernetes-sigs/kueue v0.19.2:
# pkg/features/kube_features.go). Sources: pkg/scheduler/scheduler.go, `nominate` and `processEntry`;
# pkg/scheduler/flavorassigner/flavorassigner.go; pkg/cache/scheduler/tas_flavor_snapshot.go, `notFitMessage`;
# pkg/controller/core/workload_controller.go, `getQueueBlocker`.
TOPOLOGY = re.compile(r'topology "[^"]*" (doesn\'t allow|allows) to fit[^;]*')
# The first match decides.
_MESSAGES: tuple[tuple[str, Kind], ...] = (
    (r"LocalQueue \S+ doesn't exist", "no such queue"),
    (r"is (stopped|inactive)\b", "stopped"),
    (r"resource \S+ unavailable in ClusterQueue|is not mapped in DRA configuration", "unknown resource"),
    (r"Pending the preemption|overlapping preemption targets", "preempting"),
    (TOPOLOGY.pattern, "topology"),
    ("insufficient unused quota", "quota"),
    ("insufficient quota for", "never fits"),
    (
        r"untolerated taint|doesn't match node affinity|unavailable in ClusterQueue|flavor \S+ not found",
        "no matching pool",
    ),
)
# Reasons of the conditions Evicted and Requeued of Workloads that Kueue deactivated
# (apis/kueue/v1beta2/workload_types.go, `EvictionUnderlyingCause`; pkg/workload/patching/patching.go,
# `ReasonWithCause`).
DEACTIVATED: Mapping[str, Kind] = {
    "DeactivatedDueToRequeuingLimitExceeded": "requeue limit",
    "DeactivatedDueToMaximumExecutionTimeExceeded": "time limit",
}


Rows = Mapping[str, tuple[bool, str, str]]
"""Conditions of a Workload by type: whether it is true, its reason and message."""


def of_message(message: str) -> Reason:
    """The reason in a message of Kueue about a job that waits for quota."""
    kinds = (kind for pattern, kind in _MESSAGES if re.search(pattern, message))
    return Reason(next(kinds, "other"), message)


def of_workload(workload: Object, now: int) -> Reason | None:
    """The reason why a job does not start, as far as its Workload has it, or will end by a default.

    None for one that is finished, or that Kueue has not evaluated yet.
    """
    status = workload.get("status") or {}
    rows = {str(row["type"]): row for row in status.get("conditions") or ()}
    if _true(rows, "Finished") or workload["metadata"].get("deletionTimestamp"):
        return None
    if not workload["spec"].get("active", True):
        return _inactive(workload, rows)
    if _true(rows, "Admitted"):
        return _ending(workload, rows["Admitted"])
    if _true(rows, "QuotaReserved"):
        return of_checks(_checks(workload))
    retried = (status.get("requeueState") or {}).get("requeueAt")
    if retried and seconds(str(retried)) > now:
        return Reason("retry later", f"it was stopped; Kueue retries it at {retried[11:16]} UTC")
    message = str((rows.get("QuotaReserved") or {}).get("message") or "")
    # Of the end of its last attempt, until Kueue evaluates it again.
    return of_message(message) if message and not message.startswith(_STOPPED) else None


def deactivated_by_kueue(workload: Object) -> bool:
    """Return whether Kueue stopped a job by itself, and whether that is complete: it may be started again.

    Its pods have ended by then, and the number of its attempts is reset: one that is active before is
    deactivated again at once (kubernetes-sigs/kueue#2174). Kueue sets the condition Requeued once the pods
    have ended (pkg/controller/jobframework/reconciler.go). Evicted alone is no proof: it stays as it was when
    the job is queued again, and when an administrator stops it then
    (pkg/controller/core/workload_controller.go).
    """
    status = workload.get("status") or {}
    rows = {str(row["type"]): row for row in status.get("conditions") or ()}
    settled = not _true(rows, "QuotaReserved") and not status.get("requeueState")
    return settled and not _true(rows, "Finished") and _given_up(_rows(rows)) is not None


def of_checks(checks: Mapping[str, tuple[str, str]]) -> Reason | None:
    """The reason in checks of a job, by name their state and message; None where all admit it."""
    waiting = {name: row for name, row in checks.items() if row[0] != "Ready"}
    if not waiting:
        return None
    for _, message in waiting.values():
        if message.startswith(OVER_BUDGET):
            return Reason("over budget", message.removeprefix(OVER_BUDGET))
    words = (f"{name} is {state}{f': {text}' if text else ''}" for name, (state, text) in waiting.items())
    return Reason("admission check", "; ".join(words))


def of_unprocessed(priority: str, classes: Mapping[str, bool] | None) -> Reason:
    """The reason why Kueue creates no Workload of a job; it reports none itself.

    `priority`: the class that its label names; `classes`: the known ones, each with whether it is for jobs of
    teams (None: unknown). Without the class Kueue 0.19.2 returns before it creates the Workload
    (pkg/controller/jobframework/reconciler.go, `prepareWorkload`); later releases write an Event
    (kubernetes-sigs/kueue#13775).
    """
    if priority and classes is not None and priority not in classes:
        names = ", ".join(name for name, of_teams in classes.items() if of_teams)
        fix = f"name one of {names} in label {PRIORITY_LABEL}; {AGAIN}"
        return Reason("no such priority", f"there is no priority class {priority}", fix)
    return Reason("not processed", "Kueue has not processed it")


def of_inactive(*, idle: bool, away: str, checks: Mapping[str, tuple[str, str]], conditions: Rows) -> Reason:
    """The reason why a Workload is inactive.

    `idle`: it has the label `STOPPED_LABEL`; `away`: its annotation `AWAY_NOTE`.
    """
    if idle:
        return Reason("stopped idle", "its GPUs were idle")
    if away:
        return Reason("pool closed", away.partition(": ")[2])
    _, reason, message = conditions.get("Evicted") or conditions.get("QuotaReserved") or (False, "", "")
    if kind := _given_up(conditions):
        return Reason(kind, message)
    held = of_checks(checks)
    # Other messages are of an earlier attempt.
    if held and held.kind == "over budget":
        return held
    return Reason("deactivated", (reason not in DEACTIVATED and message) or "it was deactivated")


def _given_up(conditions: Rows) -> Kind | None:
    """The cause for which Kueue deactivated a job: of its pods that still end, else of its last attempt."""
    evicted, reason, _ = conditions.get("Evicted") or (False, "", "")
    holding, _, _ = conditions.get("QuotaReserved") or (False, "", "")
    if not (evicted and holding):
        requeued, reason, _ = conditions.get("Requeued") or (True, "", "")
        evicted = evicted and not requeued
    return DEACTIVATED.get(reason) if evicted else None


def _ending(workload: Object, admitted: Object) -> Reason | None:
    """The end of a running job by the deadline that the API server added; None where it declares one."""
    limit = str((workload["metadata"].get("labels") or {}).get(DEADLINE_LABEL) or "")
    # A member can write the label, too.
    if not limit.isdecimal() or len(limit) > _MOST_DIGITS:
        return None
    ends = seconds(str(admitted["lastTransitionTime"])) + int(limit)
    words = f"it declares no deadline, so the one of {int(limit) / 86_400:g} days ends it at {stamp(ends)}"
    return Reason("ends soon", f"{words}, unless that was changed", begins=ends - NOTICE_S)


def _inactive(workload: Object, rows: Mapping[str, Object]) -> Reason:
    head = workload["metadata"]
    return of_inactive(
        idle=(head.get("labels") or {}).get(STOPPED_LABEL) == IDLE,
        away=str((head.get("annotations") or {}).get(AWAY_NOTE) or ""),
        checks=_checks(workload),
        conditions=_rows(rows),
    )


def _rows(rows: Mapping[str, Object]) -> Rows:
    return {
        name: (_true(rows, name), str(row.get("reason") or ""), str(row.get("message") or ""))
        for name, row in rows.items()
    }


def _checks(workload: Object) -> dict[str, tuple[str, str]]:
    rows = (workload.get("status") or {}).get("admissionChecks") or ()
    return {str(row["name"]): (str(row.get("state")), str(row.get("message") or "")) for row in rows}


def _true(rows: Mapping[str, Object], kind: str) -> bool:
    return bool(rows.get(kind)) and rows[kind]["status"] == "True"
