"""Attempts to run outside of the queue."""

from components.kubernetes.queueing.given import FINALIZERS
from components.kubernetes.queueing.kueue_fields import (
    FIELDS,
    PODS,
)
from components.kubernetes.queueing.own_pod import NAME as OWN_POD
from components.kubernetes.queueing.stopping import UNSUPPORTED
from rehearsal.controlplane.api import Object
from tests.cluster.tenancy.attempt import (
    KUEUE,
    Attempt,
    acting_as,
    body,
    create,
    patch,
    raw,
)
from tests.cluster.tenancy.scene import HUGE, job_set, job_spec, labelled, lasting, pod_spec

PARENT = {f"{KUEUE}pod-suspending-parent": "deployment"}
MANAGED = f"/metadata/labels/{KUEUE.replace('/', '~1')}managed"
OWNER = [{"apiVersion": "batch/v1", "kind": "Job", "name": "running", "uid": "{job_uid}", "controller": True}]
AUTOPILOT = {"cloud.google.com/compute-class": "autopilot"}
IN_KUEUE, IN_PODS = (FIELDS,), (PODS, FIELDS)
OF_JOBSET = {"jobset.sigs.k8s.io/jobset-name": "none"}


def required(labels: Object) -> Object:
    terms = [{"key": key, "operator": "In", "values": [value]} for key, value in labels.items()]
    required = {"nodeSelectorTerms": [{"matchExpressions": terms}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}


def owned(kind: str, spec: Object) -> Object:
    made = body(kind, spec=spec)
    made["metadata"]["ownerReferences"] = OWNER
    return made


LEAVE = [
    *(
        Attempt(
            f"a {kind} that claims to be of a JobSet, whose idle GPUs are then not found",
            create(body(kind, spec=spec, labels=labels)),
            IN_KUEUE,
        )
        for kind, spec, labels in (
            ("Pod", pod_spec(), OF_JOBSET),
            ("Job", labelled(OF_JOBSET), None),
        )
    ),
    Attempt(
        "remove the label of Kueue and its gates from a pod",
        patch(
            "Pod",
            "gated",
            [
                {"op": "remove", "path": MANAGED},
                {"op": "remove", "path": "/spec/schedulingGates"},
            ],
        ),
        IN_KUEUE,
    ),
    Attempt(
        "remove the gates of a pod", patch("Pod", "gated", {"spec": {"schedulingGates": None}}), IN_KUEUE
    ),
    Attempt(
        "remove the label of Kueue", patch("Pod", "gated", [{"op": "remove", "path": MANAGED}]), IN_KUEUE
    ),
    Attempt(
        "set the label of Kueue to something else",
        patch("Pod", "gated", {"metadata": {"labels": {f"{KUEUE}managed": "false"}}}),
        (FIELDS, "Kueue"),
    ),
    Attempt(
        "forge the role of a pod",
        patch("Pod", "gated", {"metadata": {"annotations": {f"{KUEUE}role-hash": "0"}}}),
        IN_KUEUE,
    ),
    Attempt(
        "remove the finalizer of Kueue",
        patch("Pod", "gated", {"metadata": {"finalizers": None}}),
        (FINALIZERS,),
    ),
    Attempt(
        "a pod with a suspending parent",
        create(
            body("Pod", labels={f"{KUEUE}queue-name": "default"}, annotations=PARENT, spec=pod_spec(HUGE))
        ),
        IN_PODS,
    ),
    Attempt(
        "a suspending parent for a pod that waits",
        patch("Pod", "gated", {"metadata": {"annotations": PARENT}}),
        IN_KUEUE,
    ),
    *(
        Attempt(
            f"a {kind} whose pods have a suspending parent",
            create(body(kind, spec=lasting(annotations=PARENT))),
            IN_KUEUE,
        )
        for kind in ("Deployment", "StatefulSet", "ReplicaSet")
    ),
    Attempt(
        "a ReplicationController whose pods have a suspending parent",
        create(
            body("ReplicationController", spec={**lasting(annotations=PARENT), "selector": {"app": "own"}})
        ),
        IN_KUEUE,
    ),
    Attempt(
        "a suspending parent for the pods of a Deployment that runs",
        patch("Deployment", "notebook", {"spec": {"template": {"metadata": {"annotations": PARENT}}}}),
        IN_KUEUE,
    ),
    Attempt(
        "a DaemonSet",
        create(body("DaemonSet", spec={key: value for key, value in lasting().items() if key != "replicas"})),
        IN_KUEUE,
    ),
    Attempt(
        "a CronJob whose pods have a suspending parent",
        create(
            body(
                "CronJob",
                spec={
                    "schedule": "* * * * *",
                    "jobTemplate": {
                        "spec": {
                            **job_spec(),
                            "template": {
                                **job_spec()["template"],
                                "metadata": {"annotations": PARENT},
                            },
                        }
                    },
                },
            )
        ),
        IN_KUEUE,
    ),
    Attempt(
        "a CronJob of elastic Jobs",
        create(
            body(
                "CronJob",
                spec={
                    "schedule": "* * * * *",
                    "jobTemplate": {
                        "metadata": {"annotations": {f"{KUEUE}elastic-job": "true"}},
                        "spec": job_spec(),
                    },
                },
            )
        ),
        IN_KUEUE,
    ),
    Attempt(
        "a JobSet whose Jobs are managed already",
        create(body("JobSet", spec=job_set(job_spec(), metadata={"labels": {f"{KUEUE}managed": "true"}}))),
        IN_KUEUE,
    ),
    *(
        Attempt(
            f"a TrainJob that annotates {what}",
            create(
                body(
                    "TrainJob",
                    spec={
                        "runtimeRef": {"name": "torch-distributed"},
                        "runtimePatches": [
                            {"manager": "mine", "trainingRuntimeSpec": {"template": template}}
                        ],
                    },
                )
            ),
            IN_KUEUE,
        )
        for what, template in (
            ("its JobSet", {"metadata": {"annotations": PARENT}}),
            (
                "its pods",
                {
                    "spec": {
                        "replicatedJobs": [
                            {
                                "name": "node",
                                "template": {"spec": {"template": {"metadata": {"annotations": PARENT}}}},
                            },
                        ]
                    }
                },
            ),
        )
    ),
    Attempt(
        "a Job of pods that cannot be deleted",
        create(
            body(
                "Job",
                spec={
                    **job_spec(),
                    "template": {
                        **job_spec()["template"],
                        "metadata": {"finalizers": ["example.com/never"]},
                    },
                },
            )
        ),
        IN_KUEUE,
    ),
    Attempt(
        "a Job of pods that do not end when preempted",
        create(body("Job", spec=job_spec(terminationGracePeriodSeconds=10**6))),
        IN_KUEUE,
    ),
    *(
        Attempt(f"a {kind} on nodes that GKE makes beside the pools, by {how}", attempt, IN_PODS)
        for kind, how, attempt in (
            ("Job", "a selector", create(body("Job", spec=job_spec(nodeSelector=AUTOPILOT)))),
            ("Job", "an affinity", create(body("Job", spec=job_spec(affinity=required(AUTOPILOT))))),
            ("JobSet", "a selector", create(body("JobSet", spec=job_set(job_spec(nodeSelector=AUTOPILOT))))),
            ("Pod", "a selector", create(body("Pod", spec=pod_spec(nodeSelector=AUTOPILOT)))),
            ("waiting Pod", "a selector", patch("Pod", "gated", {"spec": {"nodeSelector": AUTOPILOT}})),
        )
    ),
    Attempt("a Job on a node of its choice", create(body("Job", spec=job_spec(nodeName="cpu-0"))), IN_KUEUE),
    Attempt(
        "an elastic Job",
        create(body("Job", annotations={f"{KUEUE}elastic-job": "true"}, spec=job_spec())),
        IN_KUEUE,
    ),
    Attempt(
        "an elastic Job out of one that runs",
        patch("Job", "running", {"metadata": {"annotations": {f"{KUEUE}elastic-job": "true"}}}),
        IN_KUEUE,
    ),
    Attempt(
        "a Deployment of a group that grows",
        create(body("Deployment", spec=lasting(annotations={f"{KUEUE}pod-group-serving": "true"}))),
        (UNSUPPORTED,),
    ),
    Attempt(
        "a Job with the workload of another",
        create(body("Job", labels={f"{KUEUE}prebuilt-workload-name": "{workload}"}, spec=job_spec(HUGE))),
        IN_KUEUE,
    ),
    Attempt(
        "a Job for another cluster's Kueue",
        create(body("Job", labels={f"{KUEUE}multikueue-origin": "multikueue"}, spec=job_spec(HUGE))),
        IN_KUEUE,
    ),
    *(
        Attempt(f"a {kind} that belongs to a running Job", create(owned(kind, spec)), IN_PODS)
        for kind, spec in (
            ("Pod", pod_spec(HUGE)),
            ("Job", job_spec(HUGE)),
            ("ReplicaSet", lasting()),
            ("Deployment", lasting()),
            ("JobSet", job_set(job_spec(HUGE))),
        )
    ),
    Attempt(
        "give a waiting Job to one that runs",
        patch("Job", "waiting", {"metadata": {"ownerReferences": OWNER}}),
        IN_KUEUE,
    ),
    Attempt(
        "take a pod from its Job, which makes another",
        patch("Pod", "{job_pod}", {"metadata": {"ownerReferences": None}}),
        IN_KUEUE,
    ),
    Attempt(
        "relabel a pod, so that its Job lets it go",
        patch("Pod", "{job_pod}", {"metadata": {"labels": {"batch.kubernetes.io/controller-uid": "none"}}}),
        IN_KUEUE,
    ),
    Attempt(
        "more pods of a Job of a JobSet", patch("Job", "set-node-0", {"spec": {"parallelism": 100}}), IN_KUEUE
    ),
    Attempt("start a waiting Job", patch("Job", "waiting", {"spec": {"suspend": False}}), IN_KUEUE),
    Attempt("start a waiting JobSet", patch("JobSet", "waiting-set", {"spec": {"suspend": False}}), IN_KUEUE),
    Attempt(
        "have the pods of a Job kept when it is deleted",
        patch("Job", "running", {"metadata": {"finalizers": ["orphan"]}}),
        (FINALIZERS,),
    ),
    Attempt(
        "another queue for a Job that runs",
        patch("Job", "running", {"metadata": {"labels": {f"{KUEUE}queue-name": "other"}}}),
        ("Kueue",),
    ),
    Attempt(
        "more time for a Job that runs",
        patch("Job", "running", {"metadata": {"labels": {f"{KUEUE}max-exec-time-seconds": "999999"}}}),
        ("Kueue",),
    ),
    Attempt(
        "a pod on a node of its choice", create(body("Pod", spec=pod_spec(nodeName="cpu-0"))), ("validation",)
    ),
    Attempt(
        "remove gates as the account of the namespace",
        acting_as(
            "system:serviceaccount:{own}:default",
            raw(
                "PATCH",
                "/api/v1/namespaces/{own}/pods/gated",
                {"spec": {"schedulingGates": None}},
                "application/merge-patch+json",
            ),
        ),
        (OWN_POD, FIELDS),
    ),
]
