"""Limits of a namespace on its pods."""

from typing import Any

from rehearsal.kubernetes.rules.book import DEPLOYMENT, LIMIT_RANGE, NAMESPACE, POD, QUOTA
from rehearsal.kubernetes.rules.pods.scheduling import PRIORITY_CLASS
from tests.rehearsal.kubernetes.rules.building import Changes, Example, but, deployment, named, pod, spaced

URGENT = {"scopeName": "PriorityClass", "operator": "In", "values": ["urgent"]}
MAIN, AT = "spec.containers.0", "spec.containers[0]"
ENFORCE = "pod-security.kubernetes.io/enforce"
SAFE = {
    "runAsNonRoot": True, "allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]},
    "seccompProfile": {"type": "RuntimeDefault"},
}  # fmt: skip
HARDENED = but(pod(), {f"{MAIN}.securityContext": SAFE})
CONTEXT = f"{MAIN}.securityContext"


def level(name: str) -> list[tuple[str, dict[str, Any]]]:
    return [(NAMESPACE, but(named("lab"), {"metadata.labels": {ENFORCE: name}}))]


def kept_out(number: int, by: str, bad: Changes, path: str) -> Example:
    return Example(f"K8S-PSA-{number:03}", POD, HARDENED, bad, path, world=level(by))


def asks(**requests: str) -> dict[str, Any]:
    return but(pod(), {f"{MAIN}.resources": {"requests": requests, "limits": requests}})


CPU_QUOTA = (QUOTA, spaced("team", spec={"hard": {"requests.cpu": "4"}}))
BUSY = (POD, but(asks(cpu="2"), {"metadata.name": "busy"}))
RANGE = (LIMIT_RANGE, spaced("sizes", spec={"limits": [{"type": "Container", "max": {"memory": "8Gi"}}]}))

EXAMPLES = [
    Example(
        "K8S-PSA-001",
        NAMESPACE,
        named("lab"),
        {"metadata.labels": {ENFORCE: "strict"}},
        f"metadata.labels[{ENFORCE}]",
        {"metadata.labels": {ENFORCE: "baseline"}},
    ),
    kept_out(
        2,
        "baseline",
        {f"{CONTEXT}.privileged": True, f"{CONTEXT}.allowPrivilegeEscalation": True},
        f"{AT}.securityContext.privileged",
    ),
    kept_out(3, "baseline", {"spec.hostNetwork": True}, "spec.hostNetwork"),
    kept_out(
        4,
        "baseline",
        {"spec.volumes": [{"name": "v", "hostPath": {"path": "/"}}]},
        "spec.volumes[0].hostPath",
    ),
    kept_out(
        5, "baseline", {f"{MAIN}.ports": [{"containerPort": 80, "hostPort": 80}]}, f"{AT}.ports[0].hostPort"
    ),
    kept_out(
        6,
        "baseline",
        {f"{CONTEXT}.capabilities.add": ["SYS_ADMIN"]},
        f"{AT}.securityContext.capabilities.add",
    ),
    kept_out(
        7, "restricted", {f"{CONTEXT}.capabilities.drop": []}, f"{AT}.securityContext.capabilities.drop"
    ),
    kept_out(8, "restricted", {f"{CONTEXT}.runAsNonRoot": False}, f"{AT}.securityContext.runAsNonRoot"),
    kept_out(
        9,
        "restricted",
        {f"{CONTEXT}.allowPrivilegeEscalation": True},
        f"{AT}.securityContext.allowPrivilegeEscalation",
    ),
    kept_out(
        10,
        "restricted",
        {f"{CONTEXT}.seccompProfile.type": "Unconfined"},
        f"{AT}.securityContext.seccompProfile.type",
    ),
    kept_out(
        11,
        "restricted",
        {"spec.volumes": [{"name": "v", "nfs": {"server": "s", "path": "/"}}]},
        "spec.volumes[0]",
    ),
    Example(
        "K8S-QUOTA-001",
        QUOTA,
        spaced(spec={"hard": {"requests.nvidia.com/gpu": "8"}}),
        {"spec.hard.gpus": "8"},
        "spec.hard[gpus]",
    ),
    Example(
        "K8S-QUOTA-004",
        QUOTA,
        spaced(spec={"hard": {"pods": "0"}, "scopeSelector": {"matchExpressions": [URGENT]}}),
        {"spec.scopeSelector.matchExpressions.0.values": []},
        "spec.scopeSelector.matchExpressions.values",
        {"spec.scopeSelector.matchExpressions.0": {"scopeName": "BestEffort", "operator": "Exists"}},
    ),
    Example(
        "K8S-QUOTA-002", POD, asks(cpu="1"), {f"{MAIN}.resources": {}}, "spec.containers", world=[CPU_QUOTA]
    ),
    Example(
        "K8S-QUOTA-003",
        POD,
        asks(cpu="2"),
        {f"{MAIN}.resources": {"limits": {"cpu": "3"}}},
        "spec.containers",
        world=[CPU_QUOTA, BUSY],
    ),
    Example(
        "K8S-LIMIT-001",
        LIMIT_RANGE,
        RANGE[1],
        {"spec.limits.0.min": {"memory": "9Gi"}},
        "spec.limits[0].min[memory]",
    ),
    Example(
        "K8S-LIMIT-002",
        POD,
        asks(memory="8Gi"),
        {f"{MAIN}.resources": {"limits": {"memory": "9Gi"}}},
        AT,
        {f"{MAIN}.resources": {"requests": {"memory": "1Gi"}}},
        world=[RANGE],
    ),
    Example("K8S-PRIO-001", PRIORITY_CLASS, named(value=10), {"value": 2_000_000_000}, "value"),
    Example(
        "K8S-PRIO-003",
        PRIORITY_CLASS,
        named(value=10),
        {"preemptionPolicy": "Always"},
        "preemptionPolicy",
        {"preemptionPolicy": "Never"},
    ),
    Example(
        "K8S-PRIO-002",
        DEPLOYMENT,
        deployment(),
        {"spec.template.spec.priorityClassName": "urgent"},
        "spec.template.spec.priorityClassName",
        {"spec.template.spec.priorityClassName": "high"},
        world=[(PRIORITY_CLASS, named("high", value=10))],
    ),
]
