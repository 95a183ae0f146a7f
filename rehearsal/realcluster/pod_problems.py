"""Problems of live pods, with the provider's messages (provider/pkg/await/checker/pod)."""

from collections.abc import Iterable
from typing import Any

from rehearsal.controlplane.api import Object


def complaints(pods: Iterable[Object]) -> list[str]:
    """One line for each pod that is neither ready nor has succeeded, longest first."""
    found = [line for pod in pods if (line := _complaint(pod))]
    return sorted(dict.fromkeys(found), key=len, reverse=True)


def _complaint(pod: Object) -> str:
    status = pod.get("status") or {}
    conditions = {row["type"]: row for row in status.get("conditions") or ()}
    if status.get("phase") == "Succeeded" or conditions.get("Ready", {}).get("status") == "True":
        return ""
    who = f"[Pod {pod['metadata']['namespace']}/{pod['metadata']['name']}]: "
    scheduled = conditions.get("PodScheduled", {})
    if scheduled.get("status") == "False":
        return f"{who}{scheduled.get('message') or scheduled.get('reason')}"
    rows = [row for row in status.get("containerStatuses") or () if not row.get("ready")]
    names = " ".join(row["name"] for row in rows)
    return f"{who}containers with unready status: [{names}]" + "".join(map(_state, rows))


def _state(row: Object) -> str:
    state: dict[str, Any] = row.get("state") or {}
    ended = state.get("terminated") or (row.get("lastState") or {}).get("terminated")
    if ended and ended.get("message"):
        return f" [{ended['reason']}] {ended['message']}"
    if ended:
        return f' container "{row["name"]}" completed with exit code {ended["exitCode"]}'
    waiting = state.get("waiting") or {}
    return f" [{waiting['reason']}] {waiting.get('message') or ''}" if waiting.get("reason") else ""
