"""The AdmissionCheck by which Kueue asks whether a job starts inside the budget. Pure; runs in a pod.

A job that does not fit is told so in the check, which stays Pending, and deactivated (`spec.active: false`):
Kueue takes its quota back, and queues it again when whoever keeps the budget activates it. Neither Retry nor
Rejected does that (docs/adr/0031). A job that runs is never told anything but Ready, and never deactivated.
"""

from collections.abc import Mapping
from typing import Any

from agents.shared.times import stamp

CHECK = "gpu-budget"
CONTROLLER = "trainstack.dev/gpu-budget"
READY, PENDING = "Ready", "Pending"
# How the words begin in a check that sent a job back; Kueue keeps them (pkg/workload/evict/evict.go,
# `resetChecksOnEviction`, leaves what is Pending as it is).
OVER = "over budget: "
# Of a message of a check (apis/kueue/v1beta2/workload_types.go, `AdmissionCheckState.Message`).
_MOST_LETTERS = 32_768

Object = Mapping[str, Any]


def asks(workload: Object) -> bool:
    """Whether Kueue waits for an answer, which it does from the reservation of quota on."""
    state = _state(workload)
    if not state or state["state"] != PENDING or (workload.get("spec") or {}).get("active") is False:
        return False
    return _is(workload, "QuotaReserved") and not _is(workload, "Finished") and not _is(workload, "Evicted")


def runs(workload: Object) -> bool:
    """Whether it is admitted: then nothing but Ready may be said."""
    return _is(workload, "Admitted")


def promised(workload: Object) -> bool:
    """Whether it was let in by this check, and waits for another check."""
    state = _state(workload)
    ready = bool(state) and state["state"] == READY
    return (
        ready
        and _is(workload, "QuotaReserved")
        and not any(_is(workload, kind) for kind in ("Admitted", "Finished", "Evicted"))
    )


def waits(workload: Object) -> bool:
    """Whether it was sent back by this check, and waits to be called."""
    inactive = (workload.get("spec") or {}).get("active") is False
    return (
        inactive and str(_state(workload).get("message")).startswith(OVER) and not _is(workload, "Finished")
    )


def answer(workload: Object, *, starts: bool, why: str, now: int) -> Object:
    """The patch of the Workload's status: a merge patch with every check, for this version of it."""
    words = why if starts else OVER + why
    said = {"name": CHECK, "state": READY if starts else PENDING, "message": words[:_MOST_LETTERS]}
    checks = [
        {**said, "lastTransitionTime": stamp(now)} if row["name"] == CHECK else row
        for row in workload["status"]["admissionChecks"]
    ]
    return {**_version(workload), "status": {"admissionChecks": checks}}


def activated(workload: Object, *, active: bool) -> Object:
    """The patch of the Workload by which Kueue takes it out of its queue, or queues it again."""
    return {**_version(workload), "spec": {"active": active}}


def active(now: int) -> Object:
    """The patch of the AdmissionCheck's status: without it, queues with the check take no job."""
    condition = {
        "type": "Active",
        "status": "True",
        "reason": "Active",
        "message": "the ledger of GPU-hours answers",
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
