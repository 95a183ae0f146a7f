"""Risks that are accepted, with their reasons (docs/reference/tenancy.md)."""

from agents.shared.kueue import RETRY_LABEL
from smoke_training.checkpoint_policy import LAST
from tests.cluster.tenancy.attempt import KUEUE, Accepted, acting_as, body, call, create, patch, raw
from tests.cluster.tenancy.scene import SMALL, job_spec, pod_spec

_CLAIMED = {"devices": {"requests": [{"name": "x", "exactly": {"deviceClassName": "gpu.nvidia.com"}}]}}
_LATE = "2099-01-01T00:00:00Z"
_ALL = [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}]
_WITH_ALL = {**pod_spec(), "containers": [{**pod_spec()["containers"][0], "env": _ALL}]}
_LARGE = [{**pod_spec()["containers"][0], "env": [{"name": "TEXT", "value": "x" * 1_000_000}]}]
ACCEPTED = [
    Accepted(
        "all jobs of the highest class",
        create(body("Job", labels={f"{KUEUE}priority-class": "production"}, spec=job_spec())),
        "give all jobs the class `production`",
    ),
    Accepted(
        "a Job of the class of validations",
        create(body("Job", labels={f"{KUEUE}priority-class": "validation"}, spec=job_spec())),
        "give a job the class of validations",
    ),
    Accepted(
        "a pod for a scheduler that does not exist",
        create(body("Pod", spec=pod_spec(schedulerName="mine"))),
        "name a scheduler that does not exist, or set gates of its own in a template",
    ),
    Accepted(
        "a Job whose pods have a gate",
        create(body("Job", spec=job_spec(schedulingGates=[{"name": "example.com/never"}]))),
        "name a scheduler that does not exist, or set gates of its own in a template",
    ),
    Accepted(
        "a pod for one node",
        create(body("Pod", spec=pod_spec(nodeSelector={"kubernetes.io/hostname": "cpu-0"}))),
        "request one node by its name in a label",
    ),
    Accepted(
        "a Secret of 900 KiB",
        create(body("Secret", stringData={"x": "x" * 900 * 1024})),
        "fill the store with ConfigMaps and Secrets of a megabyte each",
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
        "annotate an account with a cloud role",
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
        "act as the team's own account, with a token for any audience",
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
        "act as the team's own account, with a token for any audience",
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
        "write events that name a controller of the platform",
    ),
    Accepted(
        "a Job of 100,000 pods",
        create(body("Job", spec={**job_spec(), "parallelism": 100_000, "completions": 100_000})),
        "create a Job of 100,000 pods, a JobSet of 1,000 Jobs",
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
        "create a Job of 100,000 pods, a JobSet of 1,000 Jobs",
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
        "delay the drain of a node by a PodDisruptionBudget",
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
        "create ResourceClaims and Leases without use",
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
        "fill the disk or the processes of a shared CPU node",
    ),
    Accepted(
        "a lease",
        create(body("Lease", spec={"holderIdentity": "x"})),
        "create ResourceClaims and Leases without use",
    ),
    Accepted(
        "a larger Job that runs",
        patch("Job", "running", {"spec": {"parallelism": 2}}),
        "enlarge a running Job, or change its template while it is suspended",
    ),
    Accepted(
        "a Job of a megabyte",
        create(body("Job", spec=job_spec(containers=_LARGE))),
        "fill the memory of Kueue with jobs of a megabyte each",
    ),
    Accepted(
        "a template of claims",
        create(body("ResourceClaimTemplate", spec={"spec": _CLAIMED})),
        "replace a ResourceClaimTemplate after Kueue counted it",
    ),
    Accepted(
        "the login of the tracking server",
        call("GET", "/api/v1/namespaces/{own}/secrets/given"),
        "read Secrets of its own namespace, the login of the tracking server among them",
    ),
    Accepted(
        "a later end of idle GPUs",
        create(body("Job", annotations={"trainstack.dev/idle-stop-at": _LATE}, spec=job_spec())),
        "keep idle GPUs, by a later time in `trainstack.dev/idle-stop-at`",
    ),
    Accepted(
        "an announced checkpoint",
        patch("Pod", "{job_pod}", {"metadata": {"annotations": {LAST: "1"}}}),
        "hide idle GPUs for 1 h 45 min, by announced checkpoints, or restarts of its containers or pods",
    ),
    Accepted(
        "another attempt",
        patch("Job", "waiting", {"metadata": {"labels": {RETRY_LABEL: "2"}}}),
        "start a job again whose attempts are used up, as often as it writes a new label",
    ),
    Accepted(
        "a job with the name of an exempt one",
        create(body("Job", name="paper", spec=job_spec())),
        "pass the budget check, by the name of an exempt job",
    ),
    Accepted(
        "all devices of a node",
        create(body("Pod", spec=_WITH_ALL)),
        "see all GPUs of a node of which a pod of its own has some, by a container that sets "
        "`NVIDIA_VISIBLE_DEVICES`",
    ),
]
BEYOND_REQUESTS = {"forward a port to the tracking server", "send data to the Internet"}
"""Risks that no request of the scene shows: it has neither a tracking server nor a network of pods."""
