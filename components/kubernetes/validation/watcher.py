"""The Job that `up` waits for in place of the validation's own, which is queued (docs/adr/0010)."""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any

import pulumi
from pulumi_kubernetes import batch, core, meta, networking, rbac

# Apart from the validation: in its namespace every pod is queued, and this one must never wait in a queue.
NAMESPACE = "trainstack-watch"
NAME = "smoke-watch"
_FOLDER, _PROGRAM = "/opt/trainstack", "watch.py"
_ACCOUNT = "/var/run/trainstack/account"
_TOKEN_S = 3600  # the least that the API server gives; the kubelet renews it
_CONTAINER = "watch"
_MESSAGE = "/dev/termination-log"  # where Kubernetes reads it by default
# A node that is drained or lost is no verdict: another pod looks on.
_DISRUPTED = {"action": "Ignore", "on_pod_conditions": [{"type": "DisruptionTarget", "status": "True"}]}
# For the pod itself to start, on nodes that run the platform's own pods already.
START_S = 300


@dataclass(frozen=True)
class Watched:
    """The Job to watch, and how long its parts may take, seconds."""

    namespace: pulumi.Input[str]
    name: pulumi.Input[str]
    uid: pulumi.Input[str]
    queue_s: int
    start_s: int
    total_s: int


def rights(
    name: str, namespace: pulumi.Input[str], child: Callable[..., pulumi.ResourceOptions]
) -> list[pulumi.Resource]:
    """The watcher's namespace, closed to all, and an account that may read runs in `namespace` only."""
    home = core.v1.Namespace(
        f"{name}-watch-namespace",
        metadata=meta.v1.ObjectMetaArgs(
            name=NAMESPACE,
            labels={f"pod-security.kubernetes.io/{mode}": "restricted" for mode in ("enforce", "warn")},
        ),
        opts=child(),
    )
    inside = child(pulumi.ResourceOptions(depends_on=[home]))
    closed = networking.v1.NetworkPolicy(
        f"{name}-watch-policy",
        metadata=meta.v1.ObjectMetaArgs(name=NAME, namespace=NAMESPACE),
        spec=networking.v1.NetworkPolicySpecArgs(
            pod_selector=meta.v1.LabelSelectorArgs(), policy_types=["Ingress"]
        ),
        opts=inside,
    )
    account = core.v1.ServiceAccount(
        f"{name}-watch-account",
        metadata=meta.v1.ObjectMetaArgs(name=NAME, namespace=NAMESPACE),
        automount_service_account_token=False,
        opts=inside,
    )
    role = rbac.v1.Role(
        f"{name}-watch-role",
        metadata=meta.v1.ObjectMetaArgs(name=NAME, namespace=namespace),
        rules=[
            _may("batch", "jobs", "get"),
            _may("", "pods", "list"),
            _may("kueue.x-k8s.io", "workloads", "list"),
        ],
        opts=child(),
    )
    binding = rbac.v1.RoleBinding(
        f"{name}-watch-binding",
        metadata=meta.v1.ObjectMetaArgs(name=NAME, namespace=namespace),
        role_ref=rbac.v1.RoleRefArgs(api_group="rbac.authorization.k8s.io", kind="Role", name=NAME),
        subjects=[rbac.v1.SubjectArgs(kind="ServiceAccount", name=NAME, namespace=NAMESPACE)],
        opts=child(pulumi.ResourceOptions(depends_on=[role, account])),
    )
    return [closed, account, binding]


def watcher(
    name: str,
    watched: Watched,
    image: pulumi.Input[str],
    needs: Sequence[pulumi.Resource],
    child: Callable[..., pulumi.ResourceOptions],
) -> batch.v1.Job:
    """The Job, named as the one it watches; it fails, with the reason, unless that one completes."""
    text = resources.files("components.kubernetes.validation").joinpath(_PROGRAM).read_text()
    config = f"{NAME}-{hashlib.sha256(text.encode()).hexdigest()[:10]}"
    program = core.v1.ConfigMap(
        f"{name}-watch-program",
        metadata=meta.v1.ObjectMetaArgs(name=config, namespace=NAMESPACE),
        data={_PROGRAM: text},
        immutable=True,
        opts=child(pulumi.ResourceOptions(depends_on=needs)),
    )
    deadline_s = watched.total_s + START_S
    # One minute more for the Job controller and the provider to see the end.
    wait = f"{deadline_s + 60}s"
    # Any: mypy needs 10 GB and more for a literal against the SDK's nested types.
    spec: Any = {
        "backoff_limit": 0,
        # From the Job's creation: it is never suspended. Both this and a pod that fails end `up`, for the
        # provider takes BackoffLimitExceeded and DeadlineExceeded for errors, and no other reason.
        "active_deadline_seconds": deadline_s,
        "pod_failure_policy": {"rules": [_DISRUPTED]},
        "template": {"spec": _pod(watched, image, config)},
    }
    return batch.v1.Job(
        f"{name}-watch",
        metadata={
            "name": watched.name,
            "namespace": NAMESPACE,
            # Without it the provider would only look at a failed Job again, and fail again.
            "annotations": {"pulumi.com/replaceUnready": "true"},
        },
        spec=spec,
        opts=child(
            pulumi.ResourceOptions(
                depends_on=[*needs, program],
                delete_before_replace=True,
                custom_timeouts=pulumi.CustomTimeouts(create=wait, update=wait),
            )
        ),
    )


def _may(group: str, resource: str, verb: str) -> rbac.v1.PolicyRuleArgs:
    return rbac.v1.PolicyRuleArgs(api_groups=[group], resources=[resource], verbs=[verb])


def _pod(watched: Watched, image: pulumi.Input[str], config: str) -> dict[str, Any]:
    """An unprivileged pod with the program, and a token that is mounted here only."""
    given = {
        "namespace": watched.namespace,
        "job": watched.name,
        # Another Job of the same name is another run: it gets a watcher of its own.
        "uid": watched.uid,
        "queue-seconds": str(watched.queue_s),
        "start-seconds": str(watched.start_s),
        "total-seconds": str(watched.total_s),
        "account": _ACCOUNT,
        "message": _MESSAGE,
    }
    token = {"service_account_token": {"path": "token", "expiration_seconds": _TOKEN_S}}
    # Kubernetes puts its own authority into every namespace.
    authority = {"config_map": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}}
    return {
        "restart_policy": "Never",
        "service_account_name": NAME,
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
                "name": _CONTAINER,
                "image": image,
                "command": ["python", f"{_FOLDER}/{_PROGRAM}"],
                "args": [word for key, value in given.items() for word in (f"--{key}", value)],
                "resources": {
                    "requests": {"cpu": "50m", "memory": "64Mi"},
                    "limits": {"memory": "128Mi"},
                },
                "security_context": {
                    "allow_privilege_escalation": False,
                    "read_only_root_filesystem": True,
                    "capabilities": {"drop": ["ALL"]},
                },
                "volume_mounts": [
                    {"name": "program", "mount_path": _FOLDER, "read_only": True},
                    {"name": "account", "mount_path": _ACCOUNT, "read_only": True},
                ],
            }
        ],
        "volumes": [
            {"name": "program", "config_map": {"name": config}},
            {"name": "account", "projected": {"sources": [token, authority]}},
        ],
    }
