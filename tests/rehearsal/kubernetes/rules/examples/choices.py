"""Images, ports of nodes, words of pods and workloads, ingresses, autoscalers."""

from rehearsal.kubernetes.rules.book import DAEMON_SET, DEPLOYMENT, POD, SECRET, SERVICE, STATEFUL_SET
from rehearsal.kubernetes.rules.objects.ingresses import INGRESS
from rehearsal.kubernetes.rules.objects.scaling import SCALER
from tests.rehearsal.kubernetes.rules.building import Example, but, deployment, pod, spaced
from tests.rehearsal.kubernetes.rules.examples.objects import WEB

MAIN, AT = "spec.containers.0", "spec.containers[0]"
SHARED = pod(hostNetwork=True)
SHARED["spec"]["containers"][0]["ports"] = [{"containerPort": 80, "hostPort": 80}]
SPREAD = {"maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "DoNotSchedule"}
APART = {"weight": 100, "podAffinityTerm": {"topologyKey": "kubernetes.io/hostname"}}
PREFERRED = "spec.affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution"
MOUNTED = pod(volumes=[{"name": "data", "emptyDir": {}}])
MOUNTED["spec"]["containers"][0]["volumeMounts"] = [{"name": "data", "mountPath": "/data", "subPath": "a"}]
SERVED = {
    "path": "/x",
    "pathType": "Prefix",
    "backend": {"service": {"name": "web", "port": {"number": 80}}},
}
ROUTED = spaced(
    "web",
    spec={"ingressClassName": "nginx", "rules": [{"host": "a.example.com", "http": {"paths": [SERVED]}}]},
)
PATH, PATH_AT = "spec.rules.0.http.paths.0", "spec.rules[0].http.paths[0]"
USE = {
    "type": "Resource",
    "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 1}},
}
SCALED = spaced(
    "web",
    spec={
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
        "minReplicas": 1,
        "maxReplicas": 1,
        "metrics": [USE],
        "behavior": {"scaleDown": {"stabilizationWindowSeconds": 3600}},
    },
)

EXAMPLES = [
    Example(
        "K8S-POD-018", POD, pod(), {f"{MAIN}.image": " busybox"}, f"{AT}.image", {f"{MAIN}.image": "busybox"}
    ),
    Example(
        "K8S-POD-019",
        POD,
        pod(),
        {f"{MAIN}.image": "Busybox:1.36"},
        f"{AT}.image",
        {f"{MAIN}.image": f"registry.k8s.io:443/a/b_c.d--e:V1.2_x@sha256:{'0' * 64}"},
    ),
    Example("K8S-POD-020", POD, SHARED, {f"{MAIN}.ports.0.hostPort": 8080}, f"{AT}.ports[0].hostPort"),
    Example(
        "K8S-POD-021",
        POD,
        SHARED,
        {"spec.containers.1": {"name": "b", "image": "b", "ports": [{"containerPort": 80, "hostPort": 80}]}},
        "spec.containers[1].ports[0].hostPort",
        {"spec.containers.1": {"name": "b", "image": "b", "ports": [{"containerPort": 81, "hostPort": 81}]}},
    ),
    Example(
        "K8S-POD-022",
        POD,
        pod(),
        {f"{MAIN}.imagePullPolicy": "IfMissing"},
        f"{AT}.imagePullPolicy",
        {f"{MAIN}.imagePullPolicy": "IfNotPresent"},
    ),
    Example(
        "K8S-POD-023",
        POD,
        pod(topologySpreadConstraints=[SPREAD]),
        {"spec.topologySpreadConstraints.0.maxSkew": 0},
        "spec.topologySpreadConstraints[0].maxSkew",
    ),
    Example(
        "K8S-AFF-003",
        POD,
        but(pod(), {PREFERRED: [APART]}),
        {f"{PREFERRED}.0.weight": 101},
        f"{PREFERRED}[0].weight",
    ),
    Example(
        "K8S-POD-024",
        POD,
        pod(),
        {"spec.dnsPolicy": "None"},
        "spec.dnsConfig.nameservers",
        {"spec.dnsPolicy": "None", "spec.dnsConfig": {"nameservers": ["10.0.0.10"]}},
    ),
    Example(
        "K8S-POD-025",
        POD,
        MOUNTED,
        {f"{MAIN}.volumeMounts.0.subPath": "../a"},
        f"{AT}.volumeMounts[0].subPath",
        {f"{MAIN}.volumeMounts.0.subPath": "..a/b"},
    ),
    Example(
        "K8S-APP-008",
        DEPLOYMENT,
        deployment(),
        {"spec.strategy": {"type": "Recreate", "rollingUpdate": {"maxSurge": 1}}},
        "spec.strategy.rollingUpdate",
        {"spec.strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}},
    ),
    Example(
        "K8S-APP-009",
        DAEMON_SET,
        deployment(),
        {"spec.updateStrategy.type": "Recreate"},
        "spec.updateStrategy.type",
        {"spec.updateStrategy.type": "OnDelete"},
    ),
    Example("K8S-ING-001", INGRESS, ROUTED, {f"{PATH}.path": "x"}, f"{PATH_AT}.path", {f"{PATH}.path": "/"}),
    Example(
        "K8S-ING-002",
        INGRESS,
        ROUTED,
        {f"{PATH}.backend.service.port": {}},
        f"{PATH_AT}.backend.service",
        {f"{PATH}.backend.service.port": {"name": "http"}},
    ),
    Example(
        "K8S-ING-003",
        INGRESS,
        ROUTED,
        {"spec.rules.0.host": "10.0.0.1"},
        "spec.rules[0].host",
        {"spec.rules.0.host": "*.example.com"},
    ),
    Example(
        "K8S-ING-004",
        INGRESS,
        ROUTED,
        {"metadata.annotations": {"kubernetes.io/ingress.class": "alb"}},
        "metadata.annotations.kubernetes.io/ingress.class",
        {"metadata.annotations": {"kubernetes.io/ingress.class": "nginx"}},
    ),
    Example(
        "K8S-SVC-013",
        SERVICE,
        WEB,
        {
            "spec.sessionAffinity": "ClientIP",
            "spec.sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 86401}},
        },
        "spec.sessionAffinityConfig.clientIP.timeoutSeconds",
        {
            "spec.sessionAffinity": "ClientIP",
            "spec.sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 86400}},
        },
    ),
    Example(
        "K8S-SVC-014",
        SERVICE,
        WEB,
        {"spec.externalIPs": ["10.1.2.3", "web.example.com"]},
        "spec.externalIPs[1]",
        {"spec.externalIPs": ["2001:db8::1"]},
    ),
    Example(
        "K8S-STS-001",
        STATEFUL_SET,
        deployment(serviceName="a"),
        {"spec.updateStrategy": {"type": "OnDelete", "rollingUpdate": {"partition": 1}}},
        "spec.updateStrategy.rollingUpdate",
        {"spec.updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 1}}},
    ),
    Example(
        "K8S-STS-002",
        STATEFUL_SET,
        deployment(serviceName="a"),
        {"spec.ordinals": {"start": -1}},
        "spec.ordinals.start",
        {"spec.ordinals": {"start": 1}},
    ),
    Example("K8S-HPA-001", SCALER, SCALED, {"spec.minReplicas": 2}, "spec.maxReplicas"),
    Example("K8S-HPA-002", SCALER, SCALED, {"spec.scaleTargetRef.name": ""}, "spec.scaleTargetRef.name"),
    Example(
        "K8S-HPA-003",
        SCALER,
        SCALED,
        {"spec.metrics.0.resource.target.averageUtilization": 0},
        "spec.metrics[0].resource.target.averageUtilization",
    ),
    Example(
        "K8S-HPA-004",
        SCALER,
        SCALED,
        {"spec.behavior.scaleDown.stabilizationWindowSeconds": 3601},
        "spec.behavior.scaleDown.stabilizationWindowSeconds",
    ),
    Example(
        "K8S-WORD-001",
        SERVICE,
        WEB,
        {"spec.ports.0.protocol": "HTTP"},
        "spec.ports[0].protocol",
        {"spec.ports.0.protocol": "UDP"},
    ),
    Example(
        "K8S-SVC-012",
        SERVICE,
        WEB,
        {"spec.externalTrafficPolicy": "Local"},
        "spec.externalTrafficPolicy",
        {"spec.type": "NodePort", "spec.externalTrafficPolicy": "Local"},
    ),
    Example(
        "K8S-DATA-003",
        SECRET,
        spaced("s", type="kubernetes.io/ssh-auth", stringData={"ssh-privatekey": "k"}),
        {"stringData": {"key": "k"}},
        "data[ssh-privatekey]",
        {"stringData": {"ssh-privatekey": "k", "more": "m"}},
    ),
]
