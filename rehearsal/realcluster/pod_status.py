"""How a pod of this machine is doing, as a kubelet reports it to the API server. Pure."""

import ipaddress

from rehearsal.controlplane.api import Object
from rehearsal.workloads.controllers import timestamp
from rehearsal.workloads.pod import PodState

# The API server takes no loopback address as that of an endpoint (apis/core/validation:
# ValidateNonSpecialIP), so 127.64.0.0/10, where pods really listen, is reported as 10.64.0.0/10.
_SHOWN = int(ipaddress.ip_address("10.0.0.0")) - int(ipaddress.ip_address("127.0.0.0"))
LOST_EXIT_CODE = 137


def shown_address(address: str) -> str:
    """The address of a pod in the cluster, for its address on this machine."""
    return str(ipaddress.ip_address(int(ipaddress.ip_address(address)) + _SHOWN))


def pod_status(pod: Object, state: PodState, address: str, started: str) -> Object:
    """The status of a pod that is at `address` on this machine and was accepted at `started`."""
    shown = shown_address(address)
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
        "startTime": started,
        "podIP": shown,
        "podIPs": [{"ip": shown}],
        "conditions": [
            {
                "type": name,
                "status": str(holds),
                "lastTransitionTime": timestamp(),
                **({} if holds else {"reason": over, "message": state.message[:1024]}),
            }
            for name, holds in conditions.items()
        ],
        "containerStatuses": [_container(row, state, started) for row in pod["spec"]["containers"]],
    }


def lost_status(pod: Object) -> Object:
    """The status of a pod whose processes ended with the rehearsal and that must not run again."""
    message = "the rehearsal ended while this pod was running"
    state = PodState(phase="Failed", reason="Error", message=message, exit_code=LOST_EXIT_CODE)
    rows = [_container(row, state, timestamp()) for row in pod["spec"]["containers"]]
    return {"phase": "Failed", "reason": "NodeLost", "message": message, "containerStatuses": rows}


def _container(container: Object, state: PodState, started: str) -> Object:
    name = container["name"]
    words = {"reason": state.reason or "ContainerCreating", "message": state.message}
    found: Object = {
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
        found["state"] = {"waiting": words}
    else:
        found["state"] = {"running": {"startedAt": started}}
    if state.restarts and state.exit_code is not None:
        found["lastState"] = {"terminated": _terminated(name, state, started)}
    return found


def _terminated(name: str, state: PodState, started: str) -> Object:
    own = state.container in ("", name)
    code = (state.exit_code or 0) if own else 0
    return {
        "exitCode": code,
        "reason": "Completed" if code == 0 else "Error",
        "message": state.message if own else "",
        "startedAt": started,
        "finishedAt": timestamp(),
    }
