"""The AdmissionCheck with which Kueue requests whether a job may start inside the budget. Pure; in a pod.

A job that does not fit gets the reason in the check, which stays Pending, and is deactivated
(`spec.active: false`): Kueue releases its quota, and queues it again when the ledger activates it. Neither
Retry nor Rejected does that (docs/adr/0031). A running job's check is always Ready; it is never deactivated.
"""

from collections.abc import Mapping
from typing import Any

from agents.shared.kueue import OVER_BUDGET
from agents.shared.times import stamp

CHECK = "gpu-budget"
CONTROLLER = "trainstack.dev/gpu-budget"
READY, PENDING = "Ready", "Pending"
# Limit of a check's message (apis/kueue/v1beta2/workload_types.go, `AdmissionCheckState.Message`).
_MOST_LETTERS = 32_768

Object = Mapping[str, Any]


def asks(workload: Object) -> bool:
    """Return whether Kueue waits for a decision, which it does from the reservation of quota on."""
    state = _state(workload)
    if not state or state["state"] != PENDING or (workload.get("spec") or {}).get("active") is False:
        return False
    return _is(workload, "QuotaReserved") and not _is(workload, "Finished") and not _is(workload, "Evicted")


def runs(workload: Object) -> bool:
    """Return whether it is admitted: then its check must be Ready."""
    return _is(workload, "Admitted")


def promised(workload: Object) -> bool:
    """Return whether this check admitted it, and it waits for another check."""
    state = _state(workload)
    ready = bool(state) and state["state"] == READY
    return (
        ready
        and _is(workload, "QuotaReserved")
        and not any(_is(workload, kind) for kind in ("Admitted", "Finished", "Evicted"))
    )


def waits(workload: Object) -> bool:
    """Return whether this check deactivated it, and it waits for activation."""
    inactive = (workload.get("spec") or {}).get("active") is False
    over = str(_state(workload).get("message")).startswith(OVER_BUDGET)
    return inactive and over and not _is(workload, "Finished")


def answer(workload: Object, *, starts: bool, why: str, now: int) -> Object:
    """The patch of the Workload's status: a merge patch with all checks, for this version of it."""
    message = why if starts else OVER_BUDGET + why
    state = {"name": CHECK, "state": READY if starts else PENDING, "message": message[:_MOST_LETTERS]}
    checks = [
        {**state, "lastTransitionTime": stamp(now)} if row["name"] == CHECK else row
        for row in workload["status"]["admissionChecks"]
    ]
    return {**_version(workload), "status": {"admissionChecks": checks}}


def activated(workload: Object, *, active: bool) -> Object:
    """The patch of the Workload that queues it again, or removes it from its queue."""
    return {**_version(workload), "spec": {"active": active}}


def active(now: int) -> Object:
    """The patch of the AdmissionCheck's status: without it, queues with the check admit no job."""
    condition = {
        "type": "Active",
        "status": "True",
        "reason": "Active",
        "message": "the ledger of GPU-hours runs",
        "lastTransitionTime": stamp(now),
    }
    return {"status": {"conditions": [condition]}}


def _version(workload: Object) -> Object:
    return {"metadata": {"resourceVersion": workload["metadata"]["resourceVersion"]}}


def _state(workload: Object) -> Object:
    rows = (workload.get("status") or {}).get("admissionChecks") or ()
    return next((row for row in rows if row["name"] == CHECK), {})


def _is(workload: Object, kind: str) -> bool:
    rows = (workload.get("status") or {}).get("conditions") or ()
    return any(row["type"] == kind and row["status"] == "True" for row in rows)
