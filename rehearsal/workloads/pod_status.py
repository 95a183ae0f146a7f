"""Status of a pod of this machine, as a kubelet reports it to an API server. Pure functions."""

from collections.abc import Sequence
from typing import Any

from rehearsal.workloads.controllers import timestamp
from rehearsal.workloads.pod import PodState
from rehearsal.workloads.translate import Object

LOST_EXIT_CODE = 137


def pod_status(containers: Sequence[Object], state: PodState, started: str = "") -> dict[str, Any]:
    """The status of a pod that was accepted at `started`, without its address and the scheduler's part.

    Without that time, the status has no times.
    """
    running = state.phase == "Running"
    over = "PodCompleted" if state.phase == "Succeeded" else "ContainersNotReady"
    conditions = {
        "PodReadyToStartContainers": True,
        "Initialized": state.phase != "Pending",
        "ContainersReady": state.ready and running,
        "Ready": state.ready and running,
    }
    return {
        "phase": state.phase,
        **({"startTime": started} if started else {}),
        "conditions": [
            {
                "type": name,
                "status": str(holds),
                **({"lastTransitionTime": timestamp()} if started else {}),
                **({} if holds else {"reason": over, "message": state.message[:1024]}),
            }
            for name, holds in conditions.items()
        ],
        "containerStatuses": [_container(row, state, started) for row in containers],
    }


def lost_status(containers: Sequence[Object]) -> dict[str, Any]:
    """The status of a pod whose processes ended with the rehearsal and that must not run again."""
    message = "the rehearsal ended while this pod was running"
    state = PodState(phase="Failed", reason="Error", message=message, exit_code=LOST_EXIT_CODE)
    rows = [_container(row, state, timestamp()) for row in containers]
    return {"phase": "Failed", "reason": "NodeLost", "message": message, "containerStatuses": rows}


def _container(container: Object, state: PodState, started: str) -> dict[str, Any]:
    name = container["name"]
    waiting = {"reason": state.reason or "ContainerCreating", "message": state.message}
    found: dict[str, Any] = {
        "name": name,
        "image": container["image"],
        "imageID": "",
        "ready": state.ready and state.phase == "Running",
        "started": state.phase == "Running",
        "restartCount": state.restarts,
    }
    if state.over:
        return {**found, "state": {"terminated": _terminated(name, state, started)}}
    if state.phase == "Pending" or state.reason == "CrashLoopBackOff":
        found["state"] = {"waiting": waiting}
    else:
        found["state"] = {"running": {"startedAt": started} if started else {}}
    if state.restarts and state.exit_code is not None:
        found["lastState"] = {"terminated": _terminated(name, state, started)}
    return found


def _terminated(name: str, state: PodState, started: str) -> dict[str, Any]:
    own = state.container in ("", name)
    code = (state.exit_code or 0) if own else 0
    times = {"startedAt": started, "finishedAt": timestamp()} if started else {}
    return {
        "exitCode": code,
        "reason": "Completed" if code == 0 else "Error",
        "message": state.message if own else "",
        **times,
    }
