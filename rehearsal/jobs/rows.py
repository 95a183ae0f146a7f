"""Rows of `status` for workloads beside the pods of clusters."""

from typing import Any


def row(kind: str, namespace: str, name: str, phase: str, **more: Any) -> dict[str, Any]:
    """A row of `status` in the form of a pod's; `more` sets further fields, such as address and log."""
    nothing = {"pod": "", "ready": False, "reason": "", "message": "", "address": "", "pids": [], "log": ""}
    counts = {"run": True, "notes": [], "restarts": 0, "ports": [], "urls": []}
    known = {"kind": kind, "namespace": namespace, "name": name, "phase": phase}
    return {**nothing, **counts, **known, **more}
