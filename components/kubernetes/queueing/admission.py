"""What the API server refuses in queued namespaces (admissionregistration.k8s.io/v1, as plain data)."""

from typing import Any

from components.kubernetes.queueing.kueue import QUEUE_NAME_LABEL
from components.kubernetes.queueing.kueue_values import MANAGED, MANAGED_LABEL

Body = dict[str, Any]

_API_VERSION = "admissionregistration.k8s.io/v1"
_NAME = "trainstack-queued"
# The kinds that Kueue queues here (`kueue_values`, frameworks): group and resource.
_QUEUED = {"": "pods", "batch": "jobs", "jobset.x-k8s.io": "jobsets", "trainer.kubeflow.org": "trainjobs"}
# What these make is queued with them.
_OWNERS = ["Job", "JobSet", "TrainJob"]


def every_job_is_queued() -> list[Body]:
    """A policy that refuses a job without a queue, and its binding.

    Kueue suspends such a job and never looks at it again, without a word. A person gets one where there is no
    queue `default`, and also where there is one that Kueue has not read yet: its webhooks answer before its
    caches are filled (controller-runtime v0.24.1 pkg/manager/runnable_group.go), so after every restart.
    """
    labelled = f"'{QUEUE_NAME_LABEL}' in object.metadata.?labels.orValue({{}})"
    owned = f"object.metadata.?ownerReferences.orValue([]).exists(owner, owner.kind in {_OWNERS})"
    rules = [
        {"apiGroups": [group], "apiVersions": ["*"], "operations": ["CREATE"], "resources": [resource]}
        for group, resource in _QUEUED.items()
    ]
    refusal = {
        "expression": f"{labelled} || {owned}",
        "message": f"no queue: Kueue gave it none yet; try again, or name one in label {QUEUE_NAME_LABEL}",
    }
    policy = {
        "failurePolicy": "Fail",
        "matchConstraints": {
            "namespaceSelector": {"matchLabels": {MANAGED_LABEL: MANAGED}},
            "resourceRules": rules,
        },
        "validations": [refusal],
    }
    return [
        _object("ValidatingAdmissionPolicy", policy),
        _object("ValidatingAdmissionPolicyBinding", {"policyName": _NAME, "validationActions": ["Deny"]}),
    ]


def _object(kind: str, spec: Body) -> Body:
    return {"apiVersion": _API_VERSION, "kind": kind, "metadata": {"name": _NAME}, "spec": spec}
