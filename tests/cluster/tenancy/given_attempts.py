"""Attempts to change what the stack gave, and to fill the store."""

from components.kubernetes.queueing.given import CLAIMS, EVENTS, FINALIZERS, GIVEN
from rehearsal.controlplane.api import Object
from tests.cluster.tenancy.attempt import RBAC, Attempt, body, create, delete, patch
from tests.cluster.tenancy.scene import job_spec

GIVEN_STAYS = (GIVEN,)
EVENT: Object = {
    "involvedObject": {"apiVersion": "v1", "kind": "Pod", "name": "gated", "namespace": "{own}"},
    "reason": "Started",
    "message": "x",
    "type": "Normal",
}
CLAIM = {
    "accessModes": ["ReadWriteMany"],
    "storageClassName": "",
    "volumeName": "{other}-checkpoints",
    "resources": {"requests": {"storage": "1Gi"}},
}


GIVEN_OBJECTS = [
    *(
        Attempt(f"delete what the stack gave: {kind} {name}", delete(kind, name), GIVEN_STAYS)
        for kind, name in (
            ("PersistentVolumeClaim", "checkpoints"),
            ("Secret", "given"),
            ("ConfigMap", "given"),
            ("ConfigMap", "trainstack-checkpoints"),
            ("ConfigMap", "gpu-ledger"),
            ("ConfigMap", ""),
        )
    ),
    Attempt(
        "write the book of its own team",
        patch("ConfigMap", "gpu-ledger", {"data": {"book.json": "[]"}}),
        GIVEN_STAYS,
    ),
    Attempt(
        "other settings of checkpoints",
        patch("ConfigMap", "trainstack-checkpoints", {"data": None}),
        GIVEN_STAYS,
    ),
    Attempt(
        "unmark what the stack gave",
        patch("ConfigMap", "given", {"metadata": {"labels": {"trainstack.dev/given": None}}}),
        GIVEN_STAYS,
    ),
    Attempt(
        "mark an object as the stack's",
        create(body("ConfigMap", labels={"trainstack.dev/given": "yes"})),
        GIVEN_STAYS,
    ),
    Attempt(
        "mark an existing object as the stack's",
        patch("Secret", "token", {"metadata": {"labels": {"trainstack.dev/given": "yes"}}}),
        GIVEN_STAYS,
    ),
    Attempt("the book of a month to come", create(body("ConfigMap", name="gpu-ledger-2031-01")), GIVEN_STAYS),
    Attempt(
        "the login of the tracking server before it exists",
        create(body("Secret", name="mlflow-login")),
        GIVEN_STAYS,
    ),
    *(
        Attempt(
            f"a claim {name} of its own",
            create(body("PersistentVolumeClaim", name=name, spec=CLAIM)),
            (CLAIMS,),
        )
        for name in ("datasets", "shared-datasets", "home", "attempt")
    ),
    Attempt(
        "a template with the name of one for a pool to come",
        create(body("ResourceClaimTemplate", name="torch-b200", spec={"spec": {"devices": {}}})),
        GIVEN_STAYS,
    ),
    Attempt("a class of volumes", create(body("StorageClass", provisioner="x.example"), where=""), RBAC),
    Attempt(
        "more in a volume of the team",
        patch("PersistentVolume", "{own}-checkpoints", {"spec": {"mountOptions": []}}, where=""),
        RBAC,
    ),
    *(
        Attempt(f"delete what limits it: {kind} {name}", delete(kind, name), RBAC)
        for kind, name in (
            ("LimitRange", "default-requests"),
            ("ResourceQuota", "objects"),
            ("ResourceQuota", "no-system-priority"),
            ("RoleBinding", "members-edit"),
        )
    ),
    *(
        Attempt(
            f"a {kind} that cannot be deleted",
            create(
                {
                    **made,
                    "metadata": {
                        "name": "stays",
                        "finalizers": ["example.com/never"],
                    },
                }
            ),
            (FINALIZERS,),
        )
        for kind, made in (("ConfigMap", body("ConfigMap")), ("Job", body("Job", spec=job_spec())))
    ),
    Attempt(
        "keep an object that exists",
        patch("Service", "served", {"metadata": {"finalizers": ["example.com/never"]}}),
        (FINALIZERS,),
    ),
    *(
        Attempt(
            f"an Event with {what} of a megabyte",
            create(body("Event", **{**EVENT, **large})),
            (EVENTS,),
        )
        for what, large in (
            ("a message", {"message": "x" * 10**6}),
            ("an object", {"involvedObject": {**EVENT["involvedObject"], "fieldPath": "x" * 10**6}}),
            ("labels", {"labels": {f"key-{index}": "x" * 60 for index in range(10**4)}}),
        )
    ),
    Attempt(
        "a ConfigMap of two MiB", create(body("ConfigMap", data={"x": "x" * 2 * 1024**2})), ("validation",)
    ),
    Attempt(
        "a Secret of two MiB", create(body("Secret", stringData={"x": "x" * 2 * 1024**2})), ("validation",)
    ),
    Attempt(
        "an annotation of one MiB",
        create(body("ConfigMap", annotations={"x": "x" * 1024**2})),
        ("validation",),
    ),
]
