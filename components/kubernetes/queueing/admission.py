"""Admission policies of queued namespaces (admissionregistration.k8s.io/v1, as plain data)."""

import json
from collections.abc import Sequence

from components.kubernetes.people import SubjectArgs, asked_by
from components.kubernetes.queueing import exposure, given, kueue_fields, node_access, own_pod, room, stopping
from components.kubernetes.queueing.kueue import QUEUE_NAME_LABEL
from components.kubernetes.queueing.policy import Body, Policy, rule
from components.kubernetes.queueing.quotas import GPU, FlavorArgs, of_a_pod
from infra.catalog.kubernetes.kueue import DEFAULT_QUEUE, SAMPLES_QUEUE
from infra.naming import flavor_name

# The kinds that Kueue queues here (`kueue_values`, frameworks): group and resource.
_QUEUED = {"": "pods", "batch": "jobs", "jobset.x-k8s.io": "jobsets", "trainer.kubeflow.org": "trainjobs"}
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


def policies(
    flavors: Sequence[FlavorArgs], people: Sequence[SubjectArgs], *, sends: bool = False
) -> list[Body]:
    """Every policy of this package with its binding, but those that complete jobs (`defaults`).

    `people` are the members of all teams. `sends`: jobs run on other clusters.
    """
    member = asked_by(people)
    reaching = node_access.needs_node(flavors)
    found = [
        _every_job_is_queued(),
        _pods_fit_a_machine(flavors),
        _volumes_are_claimed(reaching=reaching),
        *kueue_fields.policies(member),
        *stopping.policies(member, sends=sends),
        room.policy(sends=sends),
        *exposure.policies(member),
        *given.policies(member),
        own_pod.POLICY,
        *(node_access.policies(flavors) if reaching else ()),
        stopping.mutation(),
    ]
    return [body for policy in found for body in policy.objects()]


def _every_job_is_queued() -> Policy:
    """A job without a queue is rejected.

    Kueue suspends such a job and never processes it, silently. A job has none where there is no queue
    `default`, and also where Kueue has not read the queue yet: its webhooks respond before its caches are
    filled (controller-runtime v0.24.1 pkg/manager/runnable_group.go), so after every restart. Members cannot
    claim that a job is part of another (`kueue_fields`).
    """
    labelled = f"'{QUEUE_NAME_LABEL}' in object.metadata.?labels.orValue({{}})"
    refusal = (
        f"{labelled} || {kueue_fields.owned()}",
        f"no queue: Kueue set none yet; retry, or name one in label {QUEUE_NAME_LABEL}",
    )
    return Policy("trainstack-queued", _queued_kinds(), [refusal])


def _pods_fit_a_machine(flavors: Sequence[FlavorArgs]) -> Policy:
    """A pod requests no more GPUs than a node behind its queue has.

    Kueue counts quota: it would admit eight GPUs of one pod to eight nodes with one each, where the pod never
    runs, and block them until it evicts the job, again and again. Where a queue has nodes of several sizes,
    only requests above the largest are rejected, and others get the pools that are large enough
    (`defaults.pools`).
    """
    shared = max((of_a_pod(each) for each in flavors if not each.get("own_queue")), default=0)
    most = {DEFAULT_QUEUE: shared, SAMPLES_QUEUE: shared}
    most |= {flavor_name(each["name"]): of_a_pod(each) for each in flavors if each.get("own_queue")}
    gpus = f"int(string(one.?resources.?limits[?'{GPU}'].orValue('0')))"
    sidecar = "one.?restartPolicy.orValue('') == 'Always'"
    inits, limit = "pod.?initContainers.orValue([])", "variables.most[variables.queue]"
    # Kubernetes' sum: sidecars run beside the containers, and beside the init containers after them
    # (k8s.io/component-helpers v0.36.2 resource/helpers.go, `AggregateContainerRequests`).
    fits = (
        f"pod.containers.map(one, {gpus}).sum() + {inits}.filter(one, {sidecar}).map(one, {gpus}).sum()"
        f" <= {limit} && {inits}.all(at, one, {sidecar} || {gpus} == 0 || {gpus}"
        f" + {inits}.transformList(before, one, before < at && {sidecar}, {gpus}).sum() <= {limit})"
    )
    known = ", ".join(f"{queue} {gpus}" for queue, gpus in most.items() if queue != SAMPLES_QUEUE)
    refusal = (
        f"{kueue_fields.owned()} || !(variables.queue in variables.most) || variables.pods.all(pod, {fits})",
        "no machine behind its queue has so many GPUs for one pod; most GPUs of one machine by "
        f"queue: {known}. Label {QUEUE_NAME_LABEL} selects another queue",
    )
    variables = {
        "most": json.dumps(most),
        "queue": kueue_fields.QUEUE,
        "pods": _PODS.strip(),
    }
    return Policy(FITS, _queued_kinds(), [refusal], variables)


def _queued_kinds() -> list[Body]:
    return [rule(group, resource) for group, resource in _QUEUED.items()]


def _volumes_are_claimed(*, reaching: bool) -> Policy:
    """Pods mount data from outside only by claims.

    A pod that could name a file server would mount all of it, beyond its team's folder. The standard
    `baseline` of Pod Security forbids only folders of the node, and so does `node_access` where pods are
    `reaching` for some.
    """
    named = (*_VOLUMES, *(("hostPath",) if reaching else ()))
    kinds = " || ".join(f"has(volume.{kind})" for kind in named)
    refusal = (
        f"object.spec.?volumes.orValue([]).all(volume, {kinds})",
        f"volumes here must be of the kinds {', '.join(_VOLUMES)}: mount a claim of the namespace",
    )
    return Policy("trainstack-volumes", [rule("", "pods", versions=("v1",))], [refusal])
