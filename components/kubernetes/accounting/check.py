"""The AdmissionCheck by which Kueue asks whether a job starts inside the budget. Pure; runs in a pod.

A job that does not fit is answered with Rejected: Kueue gives its quota back and deactivates the Workload
(`spec.active: false`), and whoever keeps the budget activates it again when it fits. Why not Retry: docs/adr/0031.
How Kueue acts on a state: kubernetes-sigs/kueue v0.19.2 pkg/controller/core/workload_controller.go,
`reconcileCheckBasedEviction`. It would end a job that runs, too, so of one that runs nothing but Ready is said.
"""

from collections.abc import Mapping
from typing import Any

from components.kubernetes.accounting.attempts import stamp

CHECK = "gpu-budget"
CONTROLLER = "trainstack.dev/gpu-budget"
READY, REJECTED = "Ready", "Rejected"
# Of a message of a check (apis/kueue/v1beta2/workload_types.go, `AdmissionCheckState.Message`).
_MOST_LETTERS = 32_768

Object = Mapping[str, Any]


def asks(workload: Object) -> bool:
    """Whether Kueue waits for an answer, which it does from the reservation of quota on."""
    state = _state(workload)
    if not state or state["state"] != "Pending":
        return False
    return _is(workload, "QuotaReserved") and not _is(workload, "Finished") and not _is(workload, "Evicted")


def runs(workload: Object) -> bool:
    """Whether it is admitted: then nothing but Ready may be said."""
    return _is(workload, "Admitted")


def promised(workload: Object) -> bool:
    """Whether it was let in by this check, and waits for another check."""
    state = _state(workload)
    ready = bool(state) and state["state"] == READY
    return ready and _is(workload, "QuotaReserved") and not any(
        _is(workload, kind) for kind in ("Admitted", "Finished", "Evicted")
    )


def waits(workload: Object) -> bool:
    """Whether this check sent it back, and it waits to be called.

    Kueue leaves what the check said before (pkg/workload/evict/evict.go, `resetChecksOnEviction`); of a
    Workload that somebody else deactivated that is another word.
    """
    inactive = (workload.get("spec") or {}).get("active") is False
    return inactive and REJECTED in str(_state(workload).get("message")) and not _is(workload, "Finished")


def answer(workload: Object, *, starts: bool, why: str, now: int) -> Object:
    """The patch of the Workload's status: a merge patch, which holds every check and the version it is for."""
    said = {"name": CHECK, "state": READY if starts else REJECTED, "message": why[:_MOST_LETTERS]}
    checks = [
        {**said, "lastTransitionTime": stamp(now)} if row["name"] == CHECK else row
        for row in workload["status"]["admissionChecks"]
    ]
    return {**_version(workload), "status": {"admissionChecks": checks}}


def again(workload: Object) -> Object:
    """The patch of the Workload by which Kueue queues it again."""
    return {**_version(workload), "spec": {"active": True}}


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
