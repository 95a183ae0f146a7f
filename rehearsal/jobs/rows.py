"""What people see of something that runs beside the emulated clouds, in the form of a pod's row."""

from typing import Any


def row(kind: str, namespace: str, name: str, phase: str, **more: Any) -> dict[str, Any]:
    """A row of `status`; `more` says what it has of address, processes, log and the like."""
    nothing = {"pod": "", "ready": False, "reason": "", "message": "", "address": "", "pids": [], "log": ""}
    counts = {"run": True, "notes": [], "restarts": 0, "ports": [], "urls": []}
    known = {"kind": kind, "namespace": namespace, "name": name, "phase": phase}
    return {**nothing, **counts, **known, **more}
