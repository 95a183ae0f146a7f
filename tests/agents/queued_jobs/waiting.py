"""Workloads of jobs that do not start, as Kueue 0.19.2 writes them."""

from typing import Any

from agents.shared.times import stamp

NOW = 1_795_564_800
QUOTA = "couldn't assign flavors to pod set main: insufficient unused quota for nvidia.com/gpu in flavor a100"
EXCEEDS = "couldn't assign flavors to pod set main: insufficient quota for nvidia.com/gpu in flavor a100"
LIMIT = {"Evicted": ("DeactivatedDueToRequeuingLimitExceeded", "too many attempts")}


def workload(
    name: str = "train",
    message: str = "",
    *,
    space: str = "team-a",
    kind: str = "Job",
    active: bool = True,
    conditions: dict[str, tuple[str, str]] | None = None,
    **status: Any,
) -> dict[str, Any]:
    """A Workload; `message`: why it has no quota; `conditions`: reason and message of those that are true.

    As Kueue writes it, one that it stopped has the condition Requeued once its pods have ended.
    """
    rows = [
        {"type": each, "status": "True", "reason": reason, "message": text, "lastTransitionTime": stamp(NOW)}
        for each, (reason, text) in (conditions or {}).items()
    ]
    reason, text = (conditions or {}).get("Evicted", ("", ""))
    if reason.startswith("DeactivatedDueTo") and "QuotaReserved" not in (conditions or {}):
        rows.append({"type": "Requeued", "status": "False", "reason": reason, "message": text,
                     "lastTransitionTime": stamp(NOW)})  # fmt: skip
    if message:
        rows.append({"type": "QuotaReserved", "status": "False", "reason": "Pending", "message": message,
                     "lastTransitionTime": stamp(NOW)})  # fmt: skip
    owner = {"apiVersion": "batch/v1", "kind": kind, "name": name, "uid": f"uid-{name}", "controller": True}
    return {
        "metadata": {
            "name": f"job-{name}", "namespace": space, "uid": f"w-{space}-{name}", "labels": {},
            "annotations": {}, "ownerReferences": [owner], "resourceVersion": "1", "generation": 1,
        },
        "spec": {"active": active},
        "status": {"conditions": rows, **status},
    }  # fmt: skip
