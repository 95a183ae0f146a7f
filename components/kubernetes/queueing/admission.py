"""Admission policies of queued namespaces (admissionregistration.k8s.io/v1, as plain data)."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from components.kubernetes.people import SubjectArgs, asked_by
from components.kubernetes.queueing import node_access, own_pod
from components.kubernetes.queueing.kueue import QUEUE_NAME_LABEL
from components.kubernetes.queueing.kueue_values import MANAGED, MANAGED_LABEL
from components.kubernetes.queueing.quotas import GPU, FlavorArgs
from components.kubernetes.queueing.tenancy import GIVEN_LABEL
from infra.catalog.kubernetes.kueue import DEFAULT_QUEUE, SAMPLES_QUEUE
from infra.naming import flavor_name

Body = dict[str, Any]

_API_VERSION = "admissionregistration.k8s.io/v1"
# The kinds that Kueue queues here (`kueue_values`, frameworks): group and resource.
_QUEUED = {"": "pods", "batch": "jobs", "jobset.x-k8s.io": "jobsets", "trainer.kubeflow.org": "trainjobs"}
# Objects that these create are queued with them.
_OWNERS = ["Job", "JobSet", "TrainJob"]
_OWNED = f"object.metadata.?ownerReferences.orValue([]).exists(owner, owner.kind in {_OWNERS})"
_SUSPENDED_BY_PARENT = "'kueue.x-k8s.io/pod-suspending-parent' in object.metadata.?annotations.orValue({})"
# The pods of a created object: a pod itself, those of a Job, of a JobSet, of a TrainJob that declares its
# resources.
_PODS = """
  has(object.spec.replicatedJobs)
  ? dyn(object.spec.replicatedJobs.map(job, job.template.spec.template.spec))
  : has(object.spec.template) ? dyn([object.spec.template.spec])
  : has(object.spec.containers) ? dyn([object.spec])
  : has(object.spec.trainer) && has(object.spec.trainer.resourcesPerNode)
  ? dyn([{'containers': [{'resources': object.spec.trainer.resourcesPerNode}]}])
  : dyn([])
"""
# The policy that depends on the pools.
FITS = "trainstack-fits"
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


def policies(flavors: Sequence[FlavorArgs], people: Sequence[SubjectArgs]) -> list[Body]:
    """Every policy with its binding; `people` are the members of all teams."""
    member = asked_by(people)
    return [
        *_every_job_is_queued(member),
        *_pods_fit_a_machine(flavors),
        *_volumes_are_claimed(reaching=node_access.needs_node(flavors)),
        *_what_is_given_stays(member),
        *_policy(own_pod.NAME, [own_pod.RULE], own_pod.refusals(), own_pod.variables()),
        *(_nodes_are_kept(flavors) if node_access.needs_node(flavors) else ()),
    ]


def _every_job_is_queued(member: str) -> list[Body]:
    """A job without a queue is rejected.

    Kueue suspends such a job and never processes it, silently. A job has none where there is no queue
    `default`, and also where Kueue has not read the queue yet: its webhooks respond before its caches are
    filled (controller-runtime v0.24.1 pkg/manager/runnable_group.go), so after every restart.
    """
    labelled = f"'{QUEUE_NAME_LABEL}' in object.metadata.?labels.orValue({{}})"
    refusal = {
        "expression": f"{labelled} || {_OWNED}",
        "message": f"no queue: Kueue set none yet; retry, or name one in label {QUEUE_NAME_LABEL}",
    }
    # Kueue does not manage objects that belong to a Job that it manages, or that claim to: it trusts both
    # from members of the namespace (kubernetes-sigs/kueue v0.19.2 pkg/controller/jobframework/reconciler.go,
    # `FindAncestorJobManagedByKueue`; pkg/controller/jobs/pod/pod_webhook.go, `Default`).
    own = {
        "expression": f"!({member} && ({_OWNED} || {_SUSPENDED_BY_PARENT}))",
        "message": "only controllers create objects that belong to a job: leave ownerReferences out",
    }
    return _policy("trainstack-queued", _queued_kinds(), [refusal, own])


def _pods_fit_a_machine(flavors: Sequence[FlavorArgs]) -> list[Body]:
    """A pod requests no more GPUs than a node behind its queue has.

    Kueue counts quota: it would admit eight GPUs of one pod to eight nodes with one each, where the pod never
    runs, and block them until it evicts the job, again and again. Where a queue has nodes of several sizes,
    only requests above the largest are rejected.
    """
    shared = max((_of_a_pod(each) for each in flavors if not each.get("own_queue")), default=0)
    most = {DEFAULT_QUEUE: shared, SAMPLES_QUEUE: shared}
    most |= {flavor_name(each["name"]): _of_a_pod(each) for each in flavors if each.get("own_queue")}
    asked = f"pod.containers.map(one, int(string(one.?resources.?limits[?'{GPU}'].orValue('0')))).sum()"
    known = ", ".join(f"{queue} {gpus}" for queue, gpus in most.items() if queue != SAMPLES_QUEUE)
    refusal = {
        "expression": f"{_OWNED} || !(variables.queue in variables.most)"
        f" || variables.pods.all(pod, {asked} <= variables.most[variables.queue])",
        "message": "no machine behind its queue has so many GPUs for one pod; most GPUs of one machine by "
        f"queue: {known}. Label {QUEUE_NAME_LABEL} selects another queue",
    }
    variables = {
        "most": json.dumps(most),
        "queue": f"object.metadata.?labels[?'{QUEUE_NAME_LABEL}'].orValue('{DEFAULT_QUEUE}')",
        "pods": _PODS.strip(),
    }
    return _policy(FITS, _queued_kinds(), [refusal], variables)


def _of_a_pod(flavor: FlavorArgs) -> int:
    return min(flavor["gpus"], flavor.get("gpus_per_pod", flavor["gpus"]))


def _queued_kinds() -> list[Body]:
    return [
        {"apiGroups": [group], "apiVersions": ["*"], "operations": ["CREATE"], "resources": [resource]}
        for group, resource in _QUEUED.items()
    ]


def _volumes_are_claimed(*, reaching: bool) -> list[Body]:
    """Pods mount data from outside only by claims.

    A pod that could name a file server would mount all of it, beyond its team's folder. The standard
    `baseline` of Pod Security forbids only folders of the node, and so does `_nodes_are_kept` where pods are
    `reaching` for some.
    """
    named = (*_VOLUMES, *(("hostPath",) if reaching else ()))
    kinds = " || ".join(f"has(volume.{kind})" for kind in named)
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
    refusal = {
        "expression": f"object.spec.?volumes.orValue([]).all(volume, {kinds})",
        "message": f"volumes here must be of the kinds {', '.join(_VOLUMES)}: mount a claim of the namespace",
    }
    return _policy("trainstack-volumes", [rule], [refusal])


def _nodes_are_kept(flavors: Sequence[FlavorArgs]) -> list[Body]:
    """Only a fabric's daemon may mount folders of its node (`node_access`)."""
    pods = {
        "apiGroups": [""],
        "apiVersions": ["v1"],
        "operations": ["CREATE", "UPDATE"],
        "resources": ["pods", "pods/ephemeralcontainers"],
    }
    shells = {**pods, "operations": ["CONNECT"], "resources": ["pods/exec", "pods/attach"]}
    known = node_access.variables(flavors)
    return [
        *_policy(node_access.NAME, [pods], node_access.refusals(flavors), known),
        *_policy(node_access.SHELLS, [shells], node_access.shell_refusals(flavors)),
    ]


def _what_is_given_stays(member: str) -> list[Body]:
    """Members cannot change or delete objects that the stack created in their namespace.

    They may change all other objects of the kind. A deleted claim could not be created again: its volume
    would stay bound to the old one.
    """
    rule = {
        "apiGroups": [""],
        "apiVersions": ["v1"],
        "operations": ["UPDATE", "DELETE"],
        "resources": ["persistentvolumeclaims", "secrets", "configmaps"],
    }
    given = f"oldObject.metadata.?labels[?'{GIVEN_LABEL}'].hasValue()"
    refusal = {
        "expression": f"!({given} && {member})",
        "message": "the stack created this for the team; only administrators change it",
    }
    return _policy("trainstack-given", [rule], [refusal])


def _policy(
    name: str, rules: list[Body], refusals: list[Body], variables: Mapping[str, str] | None = None
) -> list[Body]:
    policy: Body = {
        "failurePolicy": "Fail",
        "matchConstraints": {
            "namespaceSelector": {"matchLabels": {MANAGED_LABEL: MANAGED}},
            "resourceRules": rules,
        },
        "validations": refusals,
    }
    if variables:
        policy["variables"] = [{"name": key, "expression": text} for key, text in variables.items()]
    return [
        _object("ValidatingAdmissionPolicy", name, policy),
        _object(
            "ValidatingAdmissionPolicyBinding", name, {"policyName": name, "validationActions": ["Deny"]}
        ),
    ]


def _object(kind: str, name: str, spec: Body) -> Body:
    return {"apiVersion": _API_VERSION, "kind": kind, "metadata": {"name": name}, "spec": spec}
