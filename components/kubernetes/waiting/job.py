"""A Job whose pod looks on until something is so, and ends with a reason when it is not."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pulumi
from pulumi_kubernetes import batch, core, meta

_ROOT, _PACKAGE = "/opt/trainstack", "waiting"
_SHARED = "api_server"
_ACCOUNT = "/var/run/trainstack/account"
_TOKEN_S = 3600  # the least that the API server gives; the kubelet renews it
_MESSAGE = "/dev/termination-log"  # where Kubernetes reads it by default
# A node that is drained or lost is no verdict: another pod looks on.
_DISRUPTED = {"action": "Ignore", "on_pod_conditions": [{"type": "DisruptionTarget", "status": "True"}]}
# For the pod itself to start, on nodes that run the platform's own pods already.
START_S = 300


@dataclass(frozen=True)
class Waiting:
    """What a Job's pod runs, as whom, and how long it may look on."""

    program: str
    """A module of this package."""
    arguments: Mapping[str, pulumi.Input[str]]
    name: pulumi.Input[str]
    """Name of the Job; the program's ConfigMap is called after it, too."""
    namespace: pulumi.Input[str]
    """One that no queue manages: the pod must never wait for what it waits for."""
    account: str
    """Its service account."""
    image: pulumi.Input[str]
    limit_s: int
    """Seconds in which the program ends by itself."""
    files: Mapping[str, str] = field(default_factory=dict)
    """Modules that the program imports besides, by file name."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Variables of the pod."""
    memory_mib: int = 128


def program(module: str) -> dict[str, str]:
    """The files that a program of this package consists of."""
    return {
        f"{name}.py": Path(__file__).with_name(f"{name}.py").read_text(encoding="utf-8")
        for name in (_SHARED, module)
    }


def digest(*texts: str) -> str:
    """A short name for what is said in `texts`."""
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:10]


def waiting_job(
    name: str,
    waits: Waiting,
    needs: Sequence[pulumi.Resource],
    child: Callable[..., pulumi.ResourceOptions],
) -> batch.v1.Job:
    """The Job, with its program: done when that ends well, failed with its words when it does not."""
    files = {**program(waits.program), **waits.files}
    config_name = pulumi.Output.concat(waits.name, "-", digest(*files.values()))
    config = core.v1.ConfigMap(
        f"{name}-program",
        metadata=meta.v1.ObjectMetaArgs(name=config_name, namespace=waits.namespace),
        data=files,
        immutable=True,
        opts=child(pulumi.ResourceOptions(depends_on=needs)),
    )
    deadline_s = waits.limit_s + START_S
    # One minute more for the Job controller and the provider to see the end.
    wait = f"{deadline_s + 60}s"
    # Any: mypy needs 10 GB and more for a literal against the SDK's nested types.
    spec: Any = {
        "backoff_limit": 0,
        # From the Job's creation: it is never suspended. Both this and a pod that fails end `up`, for the
        # provider takes BackoffLimitExceeded and DeadlineExceeded for errors, and no other reason.
        "active_deadline_seconds": deadline_s,
        "pod_failure_policy": {"rules": [_DISRUPTED]},
        "template": {"spec": _pod(waits, config_name, sorted(files))},
    }
    return batch.v1.Job(
        name,
        metadata={
            "name": waits.name,
            "namespace": waits.namespace,
            # Without it the provider would only look at a failed Job again, and fail again.
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


def _pod(waits: Waiting, config: pulumi.Input[str], files: Sequence[str]) -> dict[str, Any]:
    """An unprivileged pod with the program, and a token that is mounted here only."""
    given = {**waits.arguments, "account": _ACCOUNT, "message": _MESSAGE}
    token = {"service_account_token": {"path": "token", "expiration_seconds": _TOKEN_S}}
    # Kubernetes puts its own authority into every namespace.
    authority = {"config_map": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}}
    package = [{"key": file, "path": f"{_PACKAGE}/{file}"} for file in files]
    return {
        "restart_policy": "Never",
        "service_account_name": waits.account,
        "automount_service_account_token": False,
        "security_context": {
            "run_as_non_root": True,
            "run_as_user": 65534,
            "run_as_group": 65534,
            "fs_group": 65534,
            "seccomp_profile": {"type": "RuntimeDefault"},
        },
        "containers": [
            {
                "name": "waits",
                "image": waits.image,
                "working_dir": _ROOT,
                "command": ["python", "-m", f"{_PACKAGE}.{waits.program}"],
                "args": [word for key, value in given.items() for word in (f"--{key}", value)],
                "env": [{"name": name, "value": value} for name, value in waits.environment.items()],
                "resources": {
                    "requests": {"cpu": "50m", "memory": f"{waits.memory_mib // 2}Mi"},
                    "limits": {"memory": f"{waits.memory_mib}Mi"},
                },
                "security_context": {
                    "allow_privilege_escalation": False,
                    "read_only_root_filesystem": True,
                    "capabilities": {"drop": ["ALL"]},
                },
                "volume_mounts": [
                    {"name": "program", "mount_path": _ROOT, "read_only": True},
                    {"name": "account", "mount_path": _ACCOUNT, "read_only": True},
                ],
            }
        ],
        "volumes": [
            {"name": "program", "config_map": {"name": config, "items": package}},
            {"name": "account", "projected": {"sources": [token, authority]}},
        ],
    }
