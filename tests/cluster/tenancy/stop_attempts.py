"""Attempts to run, or to hold quota or nodes, where Kueue can no longer stop or count it."""

from components.kubernetes.queueing.stopping import CLASSES, FORCED, ORPHANS, UNSUPPORTED
from tests.cluster.tenancy.attempt import KUEUE, Attempt, body, call, create, delete, patch
from tests.cluster.tenancy.scene import job_set, job_spec, labelled, lasting, pod_spec

UNKNOWN, GROUP = {f"{KUEUE}priority-class": "none"}, {f"{KUEUE}pod-group-name": "group"}
GROUPED = {f"{KUEUE}pod-group-total-count": "2"}
EXCLUSIVE = {"alpha.jobset.sigs.k8s.io/exclusive-topology": "kubernetes.io/hostname"}
IN_GROUPS = (UNSUPPORTED,)

STAY = [
    *(
        Attempt(
            f"an unknown priority class for the {kind} {name}: Kueue could not stop it any more",
            patch(kind, name, {"metadata": {"labels": {f"{KUEUE}priority-class": "none"}}}),
            (CLASSES,),
        )
        for kind, name in (("Job", "running"), ("Job", "waiting"), ("JobSet", "set"), ("Pod", "gated"))
    ),
    *(
        Attempt(
            f"a pod of a group, named by {part}: its annotations decide what Kueue counts",
            create(body("Pod", labels=labels, annotations={**GROUPED, **notes}, spec=pod_spec())),
            IN_GROUPS,
        )
        for part, labels, notes in (("a label", GROUP, {}), ("an annotation", None, GROUP))
    ),
    *(
        Attempt(
            f"a {state} pod that joins a group, by {part}: Kueue could not stop it any more",
            patch("Pod", name, {"metadata": {part: GROUP, "annotations": {**GROUPED, **extra}}}),
            IN_GROUPS,
        )
        for state, name in (("waiting", "gated"), ("running", "{notebook_pod}"))
        for part, extra in (("labels", {}), ("annotations", GROUP))
    ),
    *(
        Attempt(f"a {kind} whose pods are a group", create(body(kind, spec=spec)), IN_GROUPS)
        for kind, spec in (
            ("Deployment", lasting(labels={"app": "own", **GROUP}, annotations=GROUPED)),
            ("StatefulSet", lasting(annotations={**GROUP, **GROUPED})),
            ("JobSet", job_set(labelled(GROUP))),
        )
    ),
    *(
        Attempt(
            f"a JobSet with an exclusive topology {where}: admitted, and never with a pod",
            create(body("JobSet", annotations=outer, spec=job_set(job_spec(), **inner))),
            (UNSUPPORTED,),
        )
        for where, outer, inner in (
            ("of all its Jobs", EXCLUSIVE, {}),
            ("of one of its Jobs", None, {"metadata": {"annotations": EXCLUSIVE}}),
        )
    ),
    *(
        Attempt(f"a {kind} of Jobs without a controller", create(body(kind, spec=spec)), (UNSUPPORTED,))
        for kind, spec in (
            ("Job", {**job_spec(), "managedBy": "example.com/none"}),
            ("JobSet", job_set({**job_spec(), "managedBy": "example.com/none"})),
        )
    ),
    *(
        Attempt(
            f"{how} a running pod by force: its GPUs would be given away while it still runs", send, (FORCED,)
        )
        for how, send in (
            ("delete", delete("Pod", "{notebook_pod}", gracePeriodSeconds=0)),
            ("delete all with", delete("Pod", "", gracePeriodSeconds=0)),
            (
                "evict",
                call(
                    "POST",
                    "/api/v1/namespaces/{own}/pods/{notebook_pod}/eviction",
                    {
                        "apiVersion": "policy/v1",
                        "kind": "Eviction",
                        "metadata": {"name": "{notebook_pod}"},
                        "deleteOptions": {"gracePeriodSeconds": 0},
                    },
                ),
            ),
        )
    ),
    Attempt(
        "a pod that requests nothing: no quota limits how many of the nodes' places they take",
        create(body("Pod", spec=pod_spec({"cpu": "0", "memory": "0"}))),
        ("LimitRange",),
    ),
    Attempt(
        "delete a Job and keep its pods", delete("Job", "running", propagationPolicy="Orphan"), (ORPHANS,)
    ),
    Attempt(
        "delete a Job and keep its pods, the old way",
        delete("Job", "running", orphanDependents=True),
        (ORPHANS,),
    ),
    Attempt("delete all Jobs and keep their pods", delete("Job", "", propagationPolicy="Orphan"), (ORPHANS,)),
    Attempt(
        "delete a JobSet and keep its Jobs", delete("JobSet", "set", propagationPolicy="Orphan"), (ORPHANS,)
    ),
]
