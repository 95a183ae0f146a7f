"""Names, Services, storage, access and policies."""

from rehearsal.kubernetes.rules.book import (
    CLAIM,
    CONFIG_MAP,
    CRON_JOB,
    NAMESPACE,
    POD,
    SECRET,
    SERVICE,
    VOLUME,
)
from rehearsal.kubernetes.rules.objects.access import BINDING, CLUSTER_BINDING, CLUSTER_ROLE, ROLE
from rehearsal.kubernetes.rules.objects.policies import (
    ADMISSION_BINDING,
    ADMISSION_POLICY,
    BUDGET,
    NETWORK_POLICY,
)
from rehearsal.kubernetes.rules.objects.storage import CLASS
from tests.rehearsal.kubernetes.rules.building import (
    GONE,
    Example,
    but,
    cron_job,
    named,
    pod,
    spaced,
)

RBAC = "rbac.authorization.k8s.io"
WEB = spaced("web", spec={"selector": {"app": "web"}, "ports": [{"port": 80, "targetPort": "http"}]})
OUTSIDE = spaced("web", spec={"type": "NodePort", "ports": [{"port": 80, "nodePort": 30080}]})
SIZE = {"requests": {"storage": "10Gi"}}
CLAIMED = spaced("data", spec={"accessModes": ["ReadWriteOnce"], "resources": SIZE})
PV = named(
    "v",
    spec={
        "accessModes": ["ReadWriteMany"],
        "capacity": {"storage": "1Ti"},
        "csi": {"driver": "d", "volumeHandle": "h"},
    },
)
BOUND = spaced(
    roleRef={"apiGroup": RBAC, "kind": "Role", "name": "r"},
    subjects=[{"kind": "ServiceAccount", "name": "a"}],
)
WIDE = named(
    roleRef={"apiGroup": RBAC, "kind": "ClusterRole", "name": "r"},
    subjects=[{"kind": "ServiceAccount", "name": "a", "namespace": "lab"}],
)
RULES = named(rules=[{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}])
TOKEN = spaced(type="kubernetes.io/service-account-token")
TOKEN["metadata"]["annotations"] = {"kubernetes.io/service-account.name": "a"}
PEERS = spaced(
    spec={
        "podSelector": {},
        "ingress": [{"from": [{"ipBlock": {"cidr": "10.0.0.0/8"}}], "ports": [{"port": 80}]}],
    }
)
BLOCK, PORT = "spec.ingress.0.from.0", "spec.ingress.0.ports.0"
MATCHED = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
POLICY = named(
    spec={
        "matchConstraints": {"resourceRules": [MATCHED]},
        "validations": [{"expression": "true"}],
    }
)
NOT_THERE = {"key": "team", "operator": "NotIn", "values": ["a"]}
BINDS = named(spec={"policyName": "p", "validationActions": ["Deny"]})
CLASSED = named(provisioner="ebs.csi.aws.com", parameters={"type": "gp3"})
SEALED = spaced(data={"a": "1"}, immutable=True)


EXAMPLES = [
    Example(
        "K8S-WAIT-001",
        CONFIG_MAP,
        spaced(),
        {"metadata.annotations.pulumi~com/waitFor": "{.metadata.uid}"},
        'metadata.annotations["pulumi.com/waitFor"]',
        {"metadata.annotations.pulumi~com/waitFor": "jsonpath={.metadata.uid}"},
    ),
    Example("K8S-NAME-001", CONFIG_MAP, spaced(), {"metadata.name": "Big_Name"}, "metadata.name"),
    Example("K8S-NAME-002", NAMESPACE, named("lab"), {"metadata.name": "a.b"}, "metadata.name"),
    Example(
        "K8S-NAME-004", ROLE, {**RULES}, {"metadata.name": "a/b"}, "metadata.name", {"metadata.name": "Sys:a"}
    ),
    Example(
        "K8S-NAME-005",
        CRON_JOB,
        cron_job(),
        {"metadata.name": "x" * 53},
        "metadata.name",
        {"metadata.name": "x" * 52},
    ),
    Example(
        "K8S-META-001",
        CONFIG_MAP,
        spaced(),
        {"metadata.labels": {"team": "a b"}},
        "metadata.labels",
        {"metadata.labels": {"example.com/team": "a_b"}},
    ),
    Example(
        "K8S-META-002",
        CONFIG_MAP,
        spaced(),
        {"metadata.annotations": {"a b": "c"}},
        "metadata.annotations",
        {"metadata.annotations": {"a.io/B": "c d"}},
    ),
    Example(
        "K8S-META-003",
        CONFIG_MAP,
        spaced(),
        {"metadata.annotations": {"a": "x" * 2**18}},
        "metadata.annotations",
        {"metadata.annotations": {"a": "x" * (2**18 - 1)}},
    ),
    Example(
        "K8S-DATA-001",
        SECRET,
        spaced(data={"a": "YQ=="}),
        {"data.a": "plain text"},
        "data[a]",
    ),
    Example("K8S-DATA-002", CONFIG_MAP, SEALED, {"data": {"a b": "1"}}, "data[a b]"),
    Example("K8S-SVC-001", SERVICE, WEB, {"spec.ports": []}, "spec.ports", {"spec.clusterIP": "None"}),
    Example(
        "K8S-SVC-002",
        SERVICE,
        WEB,
        {"spec.ports": [{"port": 1, "name": "a"}, {"port": 2}]},
        "spec.ports[1].name",
    ),
    Example(
        "K8S-SVC-003",
        SERVICE,
        WEB,
        {"spec.ports.0.port": 65536},
        "spec.ports[0].port",
        {"spec.ports.0.targetPort": 0},
    ),
    Example(
        "K8S-SVC-004",
        SERVICE,
        WEB,
        {"spec.ports": [{"port": 1, "name": "a"}, {"port": 1, "name": "b"}]},
        "spec.ports[1]",
        {"spec.ports": [{"port": 1, "name": "a"}, {"port": 1, "name": "b", "protocol": "UDP"}]},
    ),
    Example("K8S-SVC-005", SERVICE, OUTSIDE, {"spec.type": "ClusterIP"}, "spec.ports[0].nodePort"),
    Example("K8S-SVC-006", SERVICE, OUTSIDE, {"spec.ports.0.nodePort": 8080}, "spec.ports[0].nodePort"),
    Example("K8S-SVC-007", SERVICE, OUTSIDE, {"spec.clusterIP": "None"}, "spec.clusterIP"),
    Example(
        "K8S-SVC-008",
        SERVICE,
        spaced(spec={"type": "ExternalName", "externalName": "a.example"}),
        {"spec.externalName": GONE},
        "spec.externalName",
    ),
    Example("K8S-SVC-009", SERVICE, WEB, {"spec.clusterIP": "10.0.0"}, "spec.clusterIP"),
    Example(
        "K8S-SVC-010", SERVICE, WEB, {"spec.type": "Loadbalancer"}, "spec.type", {"spec.type": "LoadBalancer"}
    ),
    Example("K8S-SVC-011", SERVICE, WEB, {"spec.selector": {"app": "a b"}}, "spec.selector"),
    Example(
        "K8S-VOL-001",
        CLAIM,
        CLAIMED,
        {"spec.accessModes": ["ReadWriteOnce", "ReadWriteOncePod"]},
        "spec.accessModes",
    ),
    Example(
        "K8S-RES-007",
        CLAIM,
        CLAIMED,
        {"spec.resources.requests.storage": "ten"},
        "spec.resources.requests[storage]",
    ),
    Example("K8S-VOL-002", VOLUME, PV, {"spec.storageClassName": "GP3"}, "spec.storageClassName"),
    Example("K8S-PVC-001", CLAIM, CLAIMED, {"spec.resources": {}}, "spec.resources[storage]"),
    Example(
        "K8S-PVC-002",
        CLAIM,
        CLAIMED,
        {"spec.resources.requests.storage": "5Gi"},
        "spec.resources.requests.storage",
        {"spec.resources.requests.storage": "20Gi"},
        [(CLAIM, CLAIMED)],
    ),
    Example("K8S-PV-001", VOLUME, PV, {"spec.nfs": {"server": "s", "path": "/"}}, "spec.csi"),
    Example("K8S-PV-002", VOLUME, PV, {"spec.capacity": {}}, "spec.capacity"),
    Example(
        "K8S-PV-003",
        VOLUME,
        PV,
        {"spec.persistentVolumeReclaimPolicy": "Keep"},
        "spec.persistentVolumeReclaimPolicy",
    ),
    Example("K8S-PV-004", VOLUME, PV, {"spec.csi.volumeHandle": ""}, "spec.csi.volumeHandle"),
    Example("K8S-SC-001", CLASS, CLASSED, {"provisioner": ""}, "provisioner"),
    Example("K8S-SC-002", CLASS, CLASSED, {"reclaimPolicy": "Recycle"}, "reclaimPolicy"),
    Example(
        "K8S-RBAC-001",
        BINDING,
        BOUND,
        {"roleRef.kind": "Roles"},
        "roleRef.kind",
        {"roleRef.apiGroup": ""},
    ),
    Example("K8S-RBAC-002", CLUSTER_BINDING, WIDE, {"subjects.0.namespace": GONE}, "subjects[0].namespace"),
    Example("K8S-RBAC-003", CLUSTER_ROLE, RULES, {"rules.0.verbs": []}, "rules[0].verbs"),
    Example(
        "K8S-SA-001",
        SECRET,
        TOKEN,
        {"metadata.annotations": {}},
        "metadata.annotations[kubernetes.io/service-account.name]",
        world=[("kubernetes:core/v1:ServiceAccount", spaced("a"))],
    ),
    Example(
        "K8S-SA-002",
        POD,
        pod(),
        {"spec.serviceAccountName": "b"},
        "spec.serviceAccountName",
        {"spec.serviceAccountName": "a"},
        [("kubernetes:core/v1:ServiceAccount", spaced("a"))],
    ),
    Example("K8S-NET-001", NETWORK_POLICY, PEERS, {f"{BLOCK}.podSelector": {}}, "spec.ingress[0].from[0]"),
    Example(
        "K8S-NET-002",
        NETWORK_POLICY,
        PEERS,
        {f"{PORT}.endPort": 70},
        "spec.ingress[0].ports[0].endPort",
        {f"{PORT}.endPort": 90},
    ),
    Example(
        "K8S-NET-003",
        NETWORK_POLICY,
        PEERS,
        {f"{BLOCK}.ipBlock.except": ["11.0.0.0/16"]},
        "spec.ingress[0].from[0].ipBlock.except[0]",
        {f"{BLOCK}.ipBlock.except": ["10.1.0.0/16"]},
    ),
    Example("K8S-NET-004", NETWORK_POLICY, PEERS, {"spec.policyTypes": ["In"]}, "spec.policyTypes[0]"),
    Example(
        "K8S-NET-005",
        NETWORK_POLICY,
        but(PEERS, {"spec.podSelector": {"matchLabels": {"app": "web"}}}),
        {"spec.podSelector.matchLabels.app": "web server"},
        "spec.podSelector.matchLabels",
    ),
    Example("K8S-PDB-001", BUDGET, spaced(spec={"minAvailable": 1}), {"spec.maxUnavailable": 1}, "spec"),
    Example(
        "K8S-PDB-002",
        BUDGET,
        spaced(spec={"minAvailable": "50%"}),
        {"spec.minAvailable": "150%"},
        "spec.minAvailable",
    ),
    Example("K8S-VAP-001", ADMISSION_POLICY, POLICY, {"spec.validations": []}, "spec.validations"),
    Example(
        "K8S-VAP-004",
        ADMISSION_POLICY,
        POLICY,
        {"spec.matchConstraints.resourceRules.0.operations": ["READ"]},
        "spec.matchConstraints.resourceRules[0].operations[0]",
        {"spec.matchConstraints.resourceRules.0.operations": ["*"]},
    ),
    Example(
        "K8S-VAP-002",
        ADMISSION_POLICY,
        POLICY,
        {"spec.validations.0.expression": " "},
        "spec.validations[0].expression",
    ),
    Example(
        "K8S-VAP-005",
        ADMISSION_POLICY,
        but(POLICY, {"spec.matchConstraints.namespaceSelector": {"matchExpressions": [NOT_THERE]}}),
        {"spec.matchConstraints.namespaceSelector.matchExpressions.0.operator": "Not"},
        "spec.matchConstraints.namespaceSelector.matchExpressions[0].operator",
    ),
    Example(
        "K8S-VAP-003",
        ADMISSION_BINDING,
        BINDS,
        {"spec.validationActions": ["Deny", "Warn"]},
        "spec.validationActions",
    ),
]
