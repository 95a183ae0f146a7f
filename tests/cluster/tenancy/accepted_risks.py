"""Risks that are accepted, with their reasons (docs/reference/tenancy.md)."""

from tests.cluster.tenancy.attempt import KUEUE, Accepted, acting_as, body, create, raw
from tests.cluster.tenancy.scene import SMALL, job_spec, pod_spec

ACCEPTED = [
    Accepted(
        "all jobs of the highest class",
        create(body("Job", labels={f"{KUEUE}priority-class": "production"}, spec=job_spec())),
        "a class ranks the team's own jobs; between teams shares decide",
    ),
    Accepted(
        "a Job of the class of validations",
        create(body("Job", labels={f"{KUEUE}priority-class": "validation"}, spec=job_spec())),
        "it ranks below all classes of teams",
    ),
    Accepted(
        "a pod for a scheduler that does not exist",
        create(body("Pod", spec=pod_spec(schedulerName="mine"))),
        "it holds the team's quota until it is evicted; the rights to bind pods are RBAC's",
    ),
    Accepted(
        "an account with the annotation of a cloud role",
        create(
            {
                **body("ServiceAccount"),
                "metadata": {
                    "name": "attempt",
                    "annotations": {"eks.amazonaws.com/role-arn": "arn:aws:iam::1:role/admin"},
                },
            }
        ),
        "the role trusts accounts by namespace and name; the cloud refuses this one",
    ),
    Accepted(
        "a token for another audience",
        create(
            body(
                "Pod",
                spec=pod_spec(
                    volumes=[
                        {
                            "name": "t",
                            "projected": {
                                "sources": [
                                    {"serviceAccountToken": {"audience": "sts.amazonaws.com", "path": "t"}}
                                ],
                            },
                        }
                    ]
                ),
            )
        ),
        "it proves the team's own account, which is all that the team has",
    ),
    Accepted(
        "a request as the account of its namespace",
        acting_as(
            "system:serviceaccount:{own}:default",
            raw(
                "POST",
                "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews",
                {"spec": {"namespace": "{own}"}},
            ),
        ),
        "the account has one right, which a policy narrows",
    ),
    Accepted(
        "a forged event",
        create(
            body(
                "Event",
                involvedObject={
                    "apiVersion": "v1",
                    "kind": "Pod",
                    "name": "gated",
                    "namespace": "{own}",
                },
                reason="Admitted",
                message="x",
                type="Normal",
                reportingComponent="kueue-admission",
                reportingInstance="x",
            )
        ),
        "only members of the team read it; no program acts on events, and they end after an hour",
    ),
    Accepted(
        "a Job of 100,000 pods",
        create(body("Job", spec={**job_spec(), "parallelism": 100_000, "completions": 100_000})),
        "no pod exists before Kueue admits all of them, which it never does",
    ),
    Accepted(
        "a JobSet of 1,000 Jobs",
        create(
            body(
                "JobSet",
                spec={
                    "replicatedJobs": [
                        {"name": "node", "replicas": 1000, "template": {"spec": job_spec()}},
                    ]
                },
            )
        ),
        "no Job exists before Kueue admits all of them",
    ),
    Accepted(
        "a budget of disruptions that allows none",
        create(
            body(
                "PodDisruptionBudget",
                spec={
                    "maxUnavailable": 0,
                    "selector": {"matchLabels": {"app": "own"}},
                },
            )
        ),
        "it delays a drain of nodes; the update of nodes reports the pod by name",
    ),
    Accepted(
        "a claim for devices",
        create(
            body(
                "ResourceClaim",
                spec={
                    "devices": {
                        "requests": [{"name": "x", "exactly": {"deviceClassName": "gpu.nvidia.com"}}]
                    },
                },
            )
        ),
        "Kueue admits no pod whose device class it does not count",
    ),
    Accepted(
        "a pod that requests little and uses much",
        create(
            body(
                "Pod",
                spec={
                    **pod_spec(),
                    "containers": [{**pod_spec()["containers"][0], "resources": {"requests": SMALL}}],
                },
            )
        ),
        "the kernel shares CPUs by requests; memory past the request is evicted first",
    ),
    Accepted("a lease", create(body("Lease", spec={"holderIdentity": "x"})), "counted by quota"),
]
