"""A Job whose pod waits for a state, and fails with a reason when it is not reached."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pulumi
from pulumi_kubernetes import batch

from components.base import Child
from components.kubernetes.programs.program import PodSettings, Program, config_map, pod

_MESSAGE = "/dev/termination-log"  # where Kubernetes reads it by default
# A drained or lost node is no result: another pod continues.
_DISRUPTED = {"action": "Ignore", "on_pod_conditions": [{"type": "DisruptionTarget", "status": "True"}]}
# Start time of the pod itself, on nodes that run the platform's own pods already.
START_S = 300


@dataclass(frozen=True)
class WaitingProgram:
    """The program of a Job's pod, its account, and its time limit."""

    program: Program
    arguments: Mapping[str, pulumi.Input[str]]
    name: pulumi.Input[str]
    """Name of the Job, and prefix of the program's ConfigMap."""
    namespace: pulumi.Input[str]
    """A namespace that no queue manages: the pod must never wait for what it waits for."""
    account: str
    """Its service account."""
    image: pulumi.Input[str]
    limit_s: int
    """Time limit of the program itself."""
    environment: Mapping[str, pulumi.Input[str]] = field(default_factory=dict)
    """Variables of the pod."""
    memory_mib: int = 128
    scratch: bool = False
    """An empty folder `/tmp`."""


def waiting_job(
    name: str,
    waits: WaitingProgram,
    needs: Sequence[pulumi.Resource],
    child: Child,
) -> batch.v1.Job:
    """The Job, with its program: completes with it, or fails with its message."""
    config_name = pulumi.Output.concat(waits.name, "-", waits.program.digest)
    made_of = child(pulumi.ResourceOptions(depends_on=needs))
    config = config_map(name, waits.program, config_name, waits.namespace, made_of)
    running = PodSettings(
        container="waits",
        image=waits.image,
        account=waits.account,
        config=config_name,
        arguments={**waits.arguments, "message": _MESSAGE},
        environment=waits.environment,
        memory_mib=waits.memory_mib,
    )
    deadline_s = waits.limit_s + START_S
    # One minute more for the Job controller and the provider to notice the end.
    wait = f"{deadline_s + 60}s"
    template = pod(waits.program, running, "Never")
    if waits.scratch:
        template["volumes"].append({"name": "tmp", "empty_dir": {"size_limit": "1Gi"}})
        template["containers"][0]["volume_mounts"].append({"name": "tmp", "mount_path": "/tmp"})  # noqa: S108
    # Any: mypy needs 10 GB and more for a literal against the SDK's nested types.
    spec: Any = {
        "backoff_limit": 0,
        # From the Job's creation: it is never suspended. Both this and a pod that fails end `up`, for the
        # provider treats BackoffLimitExceeded and DeadlineExceeded as errors, and no other reason.
        "active_deadline_seconds": deadline_s,
        "pod_failure_policy": {"rules": [_DISRUPTED]},
        "template": {"spec": template},
    }
    return batch.v1.Job(
        name,
        metadata={
            "name": waits.name,
            "namespace": waits.namespace,
            # Without it the provider would only read a failed Job again, and fail again.
            "annotations": {"pulumi.com/replaceUnready": "true"},
        },
        spec=spec,
        opts=child(
            pulumi.ResourceOptions(
                depends_on=[*needs, config],
                delete_before_replace=True,
                custom_timeouts=pulumi.CustomTimeouts(create=wait, update=wait),
            )
        ),
    )
