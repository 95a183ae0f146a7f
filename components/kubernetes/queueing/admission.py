"""What the API server refuses in queued namespaces (admissionregistration.k8s.io/v1, as plain data)."""

from typing import Any

from components.kubernetes.queueing.kueue import QUEUE_NAME_LABEL
from components.kubernetes.queueing.kueue_values import MANAGED, MANAGED_LABEL
from components.kubernetes.queueing.tenancy import GIVEN_LABEL
from infra.naming import GROUP_PREFIX

Body = dict[str, Any]

_API_VERSION = "admissionregistration.k8s.io/v1"
# The kinds that Kueue queues here (`kueue_values`, frameworks): group and resource.
_QUEUED = {"": "pods", "batch": "jobs", "jobset.x-k8s.io": "jobsets", "trainer.kubeflow.org": "trainjobs"}
# What these make is queued with them.
_OWNERS = ["Job", "JobSet", "TrainJob"]
# The kinds of volumes that bring no data from outside of the namespace.
_VOLUMES = (
    "configMap",
    "downwardAPI",
    "emptyDir",
    "ephemeral",
    "persistentVolumeClaim",
    "projected",
    "secret",
)


def policies() -> list[Body]:
    """Every policy with its binding."""
    return [*_every_job_is_queued(), *_volumes_are_claimed(), *_what_is_given_stays()]


def _every_job_is_queued() -> list[Body]:
    """A job without a queue is refused.

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
    return _policy("trainstack-queued", rules, refusal)


def _volumes_are_claimed() -> list[Body]:
    """Pods get data from outside only by claims.

    A pod that could name a file server would mount all of it, past the folder that its team was given. The
    standard `baseline` of Pod Security forbids only folders of the node.
    """
    kinds = " || ".join(f"has(volume.{kind})" for kind in _VOLUMES)
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
    refusal = {
        "expression": f"object.spec.?volumes.orValue([]).all(volume, {kinds})",
        "message": f"volumes here are of the kinds {', '.join(_VOLUMES)}: mount a claim of the namespace",
    }
    return _policy("trainstack-volumes", [rule], refusal)


def _what_is_given_stays() -> list[Body]:
    """Members cannot change or delete what the stack put into their namespace.

    They may do so with all else of the kind. A claim that was deleted by mistake could not be made again: its
    volume would stay bound to the old one.
    """
    rule = {
        "apiGroups": [""],
        "apiVersions": ["v1"],
        "operations": ["UPDATE", "DELETE"],
        "resources": ["persistentvolumeclaims", "secrets"],
    }
    given = f"oldObject.metadata.?labels[?'{GIVEN_LABEL}'].hasValue()"
    member = f"request.userInfo.groups.exists(group, group.startsWith('{GROUP_PREFIX}'))"
    refusal = {
        "expression": f"!({given} && {member})",
        "message": "the stack gave this to the team, and its administrators change it",
    }
    return _policy("trainstack-given", [rule], refusal)


def _policy(name: str, rules: list[Body], refusal: Body) -> list[Body]:
    """A policy for every queued namespace, and its binding."""
    policy = {
        "failurePolicy": "Fail",
        "matchConstraints": {
            "namespaceSelector": {"matchLabels": {MANAGED_LABEL: MANAGED}},
            "resourceRules": rules,
        },
        "validations": [refusal],
    }
    return [
        _object("ValidatingAdmissionPolicy", name, policy),
        _object(
            "ValidatingAdmissionPolicyBinding", name, {"policyName": name, "validationActions": ["Deny"]}
        ),
    ]


def _object(kind: str, name: str, spec: Body) -> Body:
    return {"apiVersion": _API_VERSION, "kind": kind, "metadata": {"name": name}, "spec": spec}
