"""Pods and their controllers."""

from rehearsal.kubernetes.rules.book import CRON_JOB, DEPLOYMENT, JOB, POD, STATEFUL_SET
from tests.rehearsal.kubernetes.rules.building import (
    GONE,
    Example,
    but,
    cron_job,
    deployment,
    indexed,
    job,
    pod,
)

MAIN = "spec.containers.0"
AT = "spec.containers[0]"
GPU = "nvidia~com/gpu"
MOUNTED = pod(volumes=[{"name": "data", "emptyDir": {}}])
MOUNTED["spec"]["containers"][0]["volumeMounts"] = [{"name": "data", "mountPath": "/data"}]
PROBED = pod()
PROBED["spec"]["containers"][0]["livenessProbe"] = {"httpGet": {"port": 80, "path": "/"}}
POLICY = {
    "rules": [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}]
}

PROJECTED = {"serviceAccountToken": {"path": "token", "expirationSeconds": 600}}
TERMS = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"
EXPRESSION = {"key": "pool", "operator": "In", "values": ["a"]}
NEAR = but(pod(), {TERMS: [{"matchExpressions": [EXPRESSION]}]})
NEEDS = f"{TERMS}.0.matchExpressions.0"
NEEDS_AT = f"{TERMS}[0].matchExpressions[0]"

EXAMPLES = [
    Example("K8S-AFF-001", POD, NEAR, {f"{NEEDS}.operator": "Exists"}, f"{NEEDS_AT}.values"),
    Example("K8S-AFF-002", POD, NEAR, {f"{NEEDS}.values": ["a b"]}, f"{NEEDS_AT}.values[0]"),
    Example("K8S-POD-001", POD, pod(), {f"{MAIN}.image": GONE}, f"{AT}.image"),
    Example(
        "K8S-POD-002",
        POD,
        pod(),
        {"spec.containers.1": {"name": "main", "image": "b"}},
        "spec.containers[1].name",
    ),
    Example(
        "K8S-POD-003",
        POD,
        MOUNTED,
        {"spec.volumes.1": {"name": "data", "emptyDir": {}}},
        "spec.volumes[1].name",
    ),
    Example(
        "K8S-POD-004", POD, MOUNTED, {"spec.volumes.0.secret": {"secretName": "s"}}, "spec.volumes[0].secret"
    ),
    Example(
        "K8S-POD-005", POD, MOUNTED, {f"{MAIN}.volumeMounts.0.name": "dta"}, f"{AT}.volumeMounts[0].name"
    ),
    Example(
        "K8S-POD-006",
        POD,
        MOUNTED,
        {f"{MAIN}.volumeMounts.1": {"name": "data", "mountPath": "/data"}},
        f"{AT}.volumeMounts[1].mountPath",
    ),
    Example(
        "K8S-POD-007",
        POD,
        pod(),
        {f"{MAIN}.ports": [{"containerPort": 70000}]},
        f"{AT}.ports[0].containerPort",
        {f"{MAIN}.ports": [{"containerPort": 80, "hostPort": 0, "name": "http"}]},
    ),
    Example(
        "K8S-POD-008",
        POD,
        pod(),
        {
            f"{MAIN}.env": [
                {"name": "A", "value": "1", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}
            ]
        },
        f"{AT}.env[0].valueFrom",
        {f"{MAIN}.env": [{"name": "A", "value": "1"}]},
    ),
    Example(
        "K8S-POD-009",
        POD,
        pod(),
        {"spec.activeDeadlineSeconds": 0},
        "spec.activeDeadlineSeconds",
        {"spec.activeDeadlineSeconds": 1},
    ),
    Example(
        "K8S-POD-010",
        POD,
        pod(),
        {"spec.tolerations": [{"key": "a", "operator": "Exists", "value": "b"}]},
        "spec.tolerations[0].operator",
        {"spec.tolerations": [{"key": "a", "operator": "Exists"}]},
    ),
    Example(
        "K8S-POD-011",
        POD,
        pod(initContainers=[{"name": "i", "image": "i"}]),
        {"spec.initContainers.0.livenessProbe": {"exec": {"command": ["a"]}}},
        "spec.initContainers[0].livenessProbe",
    ),
    Example(
        "K8S-POD-012", POD, pod(), {"spec.subdomain": "a.b"}, "spec.subdomain", {"spec.subdomain": "peers"}
    ),
    Example(
        "K8S-POD-015",
        POD,
        pod(),
        {f"{MAIN}.env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "status.phase"}}}]},
        f"{AT}.env[0].valueFrom.fieldRef.fieldPath",
        {f"{MAIN}.env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['a']"}}}]},
    ),
    Example(
        "K8S-POD-016",
        POD,
        but(pod(), {"spec.volumes": [{"name": "v", "projected": {"sources": [PROJECTED]}}]}),
        {"spec.volumes.0.projected.sources.0.serviceAccountToken.expirationSeconds": 60},
        "spec.volumes[0].projected.sources[0].serviceAccountToken.expirationSeconds",
    ),
    Example(
        "K8S-POD-017",
        POD,
        pod(volumes=[{"name": "v", "configMap": {"name": "a"}}]),
        {"spec.volumes.0.configMap.name": ""},
        "spec.volumes[0].configMap.name",
    ),
    Example(
        "K8S-POD-014",
        POD,
        pod(),
        {f"{MAIN}.securityContext.seccompProfile": {}},
        f"{AT}.securityContext.seccompProfile.type",
        {f"{MAIN}.securityContext.seccompProfile.type": "RuntimeDefault"},
    ),
    Example(
        "K8S-POD-013",
        DEPLOYMENT,
        deployment(),
        {"spec.template.spec.restartPolicy": "Never"},
        "spec.template.spec.restartPolicy",
        {"spec.template.spec.restartPolicy": "Always"},
    ),
    Example(
        "K8S-PROBE-001", POD, PROBED, {f"{MAIN}.livenessProbe": {"periodSeconds": 5}}, f"{AT}.livenessProbe"
    ),
    Example(
        "K8S-PROBE-002",
        POD,
        PROBED,
        {f"{MAIN}.livenessProbe.successThreshold": 2},
        f"{AT}.livenessProbe.successThreshold",
    ),
    Example(
        "K8S-PROBE-003",
        POD,
        PROBED,
        {f"{MAIN}.livenessProbe.periodSeconds": -1},
        f"{AT}.livenessProbe.periodSeconds",
    ),
    Example(
        "K8S-PROBE-004",
        POD,
        PROBED,
        {f"{MAIN}.livenessProbe.httpGet.port": 0},
        f"{AT}.livenessProbe.httpGet.port",
    ),
    Example(
        "K8S-RES-001",
        POD,
        pod(),
        {f"{MAIN}.resources.requests": {"cpu": "two"}},
        f"{AT}.resources.requests[cpu]",
        {f"{MAIN}.resources.requests": {"cpu": "500m"}},
    ),
    Example(
        "K8S-RES-002",
        POD,
        pod(),
        {f"{MAIN}.resources": {"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}},
        f"{AT}.resources.requests",
        {f"{MAIN}.resources": {"requests": {"cpu": "1"}, "limits": {"cpu": "1"}}},
    ),
    Example(
        "K8S-RES-003",
        POD,
        pod(),
        {f"{MAIN}.resources": {"requests": {"nvidia.com/gpu": "8"}}},
        f"{AT}.resources.limits",
        {f"{MAIN}.resources": {"limits": {"nvidia.com/gpu": "8"}}},
    ),
    Example(
        "K8S-RES-004",
        POD,
        pod(),
        {f"{MAIN}.resources.limits": {"nvidia.com/gpu": "0.5"}},
        f"{AT}.resources.limits[nvidia.com/gpu]",
    ),
    Example(
        "K8S-RES-005",
        POD,
        pod(),
        {f"{MAIN}.resources.limits": {"hugepages-2Mi": "100Mi"}},
        f"{AT}.resources",
        {f"{MAIN}.resources.limits": {"hugepages-2Mi": "100Mi", "memory": "1Gi"}},
    ),
    Example(
        "K8S-RES-006", POD, pod(), {f"{MAIN}.resources.limits": {"gpu": "1"}}, f"{AT}.resources.limits[gpu]"
    ),
    Example(
        "K8S-JOB-001",
        JOB,
        job(),
        {"spec.template.spec.restartPolicy": "Always"},
        "spec.template.spec.restartPolicy",
    ),
    Example("K8S-JOB-002", JOB, indexed(), {"spec.completions": GONE}, "spec.completions"),
    Example("K8S-JOB-003", JOB, job(), {"spec.backoffLimitPerIndex": 1}, "spec.backoffLimitPerIndex"),
    Example(
        "K8S-JOB-004",
        JOB,
        job(podFailurePolicy=POLICY),
        {"spec.template.spec.restartPolicy": "OnFailure"},
        "spec.template.spec.restartPolicy",
    ),
    Example(
        "K8S-JOB-009",
        JOB,
        job(podFailurePolicy=POLICY),
        {"spec.podFailurePolicy.rules.0.onPodConditions.0.status": "Maybe"},
        "spec.podFailurePolicy.rules[0].onPodConditions[0].status",
    ),
    Example(
        "K8S-JOB-010",
        JOB,
        indexed(),
        {"spec.completions": 3},
        "spec.completions",
        {"spec.completions": 3, "spec.parallelism": 3},
        [(JOB, indexed())],
    ),
    Example(
        "K8S-JOB-005",
        JOB,
        job(podFailurePolicy=POLICY),
        {"spec.podFailurePolicy.rules.0.action": "FailIndex"},
        "spec.podFailurePolicy.rules[0].action",
    ),
    Example(
        "K8S-JOB-006",
        JOB,
        job(),
        {"spec.activeDeadlineSeconds": -1},
        "spec.activeDeadlineSeconds",
        {"spec.activeDeadlineSeconds": 600},
    ),
    Example(
        "K8S-JOB-007",
        JOB,
        indexed(),
        {"metadata.name": "x" * 62},
        "metadata.name",
        {"metadata.name": "x" * 61},
    ),
    Example(
        "K8S-JOB-008", CRON_JOB, cron_job(), {"spec.concurrencyPolicy": "Never"}, "spec.concurrencyPolicy"
    ),
    Example(
        "K8S-APP-001",
        DEPLOYMENT,
        deployment(),
        {"spec.selector.matchLabels.app": "db"},
        "spec.template.metadata.labels",
    ),
    Example(
        "K8S-APP-007",
        DEPLOYMENT,
        deployment(),
        {"spec.strategy.rollingUpdate": {"maxUnavailable": "a few"}},
        "spec.strategy.rollingUpdate.maxUnavailable",
        {"spec.strategy.rollingUpdate": {"maxUnavailable": "25%", "maxSurge": 1}},
    ),
    Example(
        "K8S-APP-006",
        DEPLOYMENT,
        deployment(),
        {"spec.selector.matchLabels.app": "a b"},
        "spec.selector.matchLabels",
    ),
    Example("K8S-APP-002", DEPLOYMENT, deployment(), {"spec.selector": {}}, "spec.selector"),
    Example(
        "K8S-APP-003", DEPLOYMENT, deployment(), {"spec.replicas": -1}, "spec.replicas", {"spec.replicas": 0}
    ),
    Example(
        "K8S-APP-004",
        DEPLOYMENT,
        deployment(),
        {"spec.strategy.rollingUpdate": {"maxSurge": 0, "maxUnavailable": 0}},
        "spec.strategy.rollingUpdate.maxUnavailable",
        {"spec.strategy.rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}},
    ),
    Example(
        "K8S-APP-005",
        STATEFUL_SET,
        deployment(serviceName="s"),
        {"spec.template.spec.activeDeadlineSeconds": 60},
        "spec.template.spec.activeDeadlineSeconds",
    ),
]
