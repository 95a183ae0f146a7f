"""Attempts to run before other teams, or where and how only the scheduler and controllers decide."""

from components.kubernetes.queueing.kueue_fields import FIELDS, PODS
from tests.cluster.tenancy.attempt import RBAC, Attempt, body, call, create, delete, patch
from tests.cluster.tenancy.scene import job_spec, pod_spec

TOLERANT = {
    "runtimeRef": {"name": "torch-distributed"},
    "runtimePatches": [
        {
            "manager": "mine",
            "trainingRuntimeSpec": {
                "template": {
                    "spec": {
                        "replicatedJobs": [
                            {
                                "name": "node",
                                "template": {
                                    "spec": {"template": {"spec": {"tolerations": [{"operator": "Exists"}]}}}
                                },
                            }
                        ]
                    }
                }
            },
        }
    ],
}
AHEAD = [
    Attempt(
        "a workload of Kueue", create(body("Workload", spec={"queueName": "default", "podSets": []})), RBAC
    ),
    Attempt(
        "a higher priority for a workload", patch("Workload", "{workload}", {"spec": {"priority": 9}}), RBAC
    ),
    Attempt(
        "admit a workload",
        patch("Workload", "{workload}", {"status": {"conditions": []}}, sub="status"),
        RBAC,
    ),
    Attempt(
        "a LocalQueue of the other team's ClusterQueue",
        create(body("LocalQueue", spec={"clusterQueue": "{other}"})),
        RBAC,
    ),
    Attempt("delete the queue", delete("LocalQueue", "default"), RBAC),
    Attempt("more quota", patch("ClusterQueue", "{own}", {"spec": {"cohortName": "none"}}, where=""), RBAC),
    Attempt(
        "other nodes behind a flavor",
        patch("ResourceFlavor", "cpu", {"spec": {"nodeLabels": {}}}, where=""),
        RBAC,
    ),
    Attempt("no check of budgets", delete("AdmissionCheck", "gpu-budget", where=""), RBAC),
    Attempt("a priority class of Kueue", create(body("WorkloadPriorityClass", value=10**6), where=""), RBAC),
    Attempt("a priority class", create(body("PriorityClass", value=10**6), where=""), RBAC),
    Attempt(
        "a pod that ranks with the system",
        create(body("Pod", spec=pod_spec(priorityClassName="system-node-critical"))),
        ("no-system-priority", PODS),
    ),
    Attempt(
        "a pod with a class that evicts others",
        create(body("Pod", spec=pod_spec(priorityClassName="above-others"))),
        (PODS,),
    ),
    Attempt(
        "a pod that does not end when preempted",
        create(body("Pod", spec=pod_spec(terminationGracePeriodSeconds=10**6))),
        (PODS,),
    ),
    Attempt(
        "a runtime of its own for TrainJobs",
        create(
            body(
                "TrainingRuntime",
                spec={
                    "template": {"spec": {"replicatedJobs": []}},
                },
            )
        ),
        RBAC,
    ),
    Attempt("stop the policies", delete("ValidatingAdmissionPolicyBinding", FIELDS, where=""), RBAC),
    Attempt(
        "change a policy",
        patch("ValidatingAdmissionPolicy", FIELDS, {"spec": {"failurePolicy": "Ignore"}}, where=""),
        RBAC,
    ),
    Attempt(
        "stop the webhooks of Kueue",
        delete("MutatingWebhookConfiguration", "kueue-mutating-webhook-configuration", where=""),
        RBAC,
    ),
    Attempt(
        "a namespace that is not queued",
        patch("Namespace", "{own}", {"metadata": {"labels": {"trainstack.dev/queueing": None}}}, where=""),
        RBAC,
    ),
    Attempt("another namespace", create(body("Namespace"), where=""), RBAC),
    Attempt("label or taint a node", patch("Node", "cpu-0", {"spec": {"taints": None}}, where=""), RBAC),
    Attempt(
        "bind a pod",
        call(
            "POST",
            "/api/v1/namespaces/{own}/pods/gated/binding",
            {
                "apiVersion": "v1",
                "kind": "Binding",
                "metadata": {"name": "gated"},
                "target": {"kind": "Node", "name": "cpu-0"},
            },
        ),
        RBAC,
    ),
    Attempt(
        "resize a pod that runs",
        patch(
            "Pod",
            "{job_pod}",
            {
                "spec": {
                    "containers": [
                        {"name": "main", "resources": {"requests": {"cpu": "4"}}},
                    ]
                }
            },
            sub="resize",
        ),
        RBAC,
    ),
    Attempt(
        "a debug container",
        patch(
            "Pod",
            "{job_pod}",
            {
                "spec": {
                    "ephemeralContainers": [
                        {"name": "debug", "image": "example.com/x:1"},
                    ]
                }
            },
            sub="ephemeralcontainers",
        ),
        RBAC,
    ),
    Attempt(
        "write the status of a pod",
        patch("Pod", "{job_pod}", {"status": {"phase": "Failed"}}, sub="status"),
        RBAC,
    ),
    *(
        Attempt(
            f"a {what} without GPUs on their nodes",
            create(body(kind, spec=spec)),
            (FIELDS, PODS),
        )
        for what, kind, spec in (
            ("pod", "Pod", pod_spec(tolerations=[{"key": "nvidia.com/gpu", "operator": "Exists"}])),
            ("Job", "Job", job_spec(tolerations=[{"operator": "Exists"}])),
            ("TrainJob", "TrainJob", TOLERANT),
        )
    ),
    Attempt(
        "no pods of others in the zone",
        create(
            body(
                "Pod",
                spec=pod_spec(
                    affinity={
                        "podAntiAffinity": {
                            "requiredDuringSchedulingIgnoredDuringExecution": [
                                {
                                    "topologyKey": "topology.kubernetes.io/zone",
                                    "labelSelector": {},
                                    "namespaceSelector": {},
                                }
                            ]
                        }
                    }
                ),
            )
        ),
        ("no-affinity-across-namespaces",),
    ),
]
