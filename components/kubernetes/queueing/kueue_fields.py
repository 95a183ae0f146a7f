"""Policies that keep jobs in their queue: fields of Kueue that members cannot write (pure).

Kueue trusts what it finds on objects of the namespace: it skips pods without its label, and objects that
belong to a job, or claim to (kubernetes-sigs/kueue v0.19.2 pkg/controller/jobs/pod/pod_controller.go, `Skip`;
pod_webhook.go, `Default`; pkg/controller/jobframework/reconciler.go, `FindAncestorJobManagedByKueue`).
"""

import json
from collections.abc import Iterator

from components.kubernetes.queueing.kueue import PRIORITIES, PRIORITY_LABEL
from components.kubernetes.queueing.policy import Mutation, Policy, rule
from components.kubernetes.queueing.quotas import GPU

FIELDS, PODS, ORPHANS = "trainstack-kueue", "trainstack-pods", "trainstack-orphans"
ROLES, CLASSES = "trainstack-pod-roles", "trainstack-priority-classes"
# A preempted job frees its quota at once, its pods stay until they end: no longer than this, which is less
# than the time in which its successor has to be ready, and than the time limit of a namespace's deletion.
MOST_GRACE_S = 600

_KUEUE = "kueue.x-k8s.io/"
# Labels and annotations with which users describe their job (kueue v0.19.2 pkg/controller/constants,
# pkg/controller/jobs/pod/constants and apis/kueue/v1beta2/topology_types.go).
_OF_USERS = [
    _KUEUE + key
    for key in (
        *("queue-name", "priority-class", "max-exec-time-seconds", "job-min-parallelism"),
        *("job-completions-equal-parallelism", "podset-group-name", "podset-slice-size"),
        *("podset-required-topology", "podset-preferred-topology", "podset-unconstrained-topology"),
        *("podset-slice-required-topology", "podset-slice-required-topology-constraints"),
        *("pod-group-name", "pod-group-total-count", "pod-group-fast-admission", "retriable-in-group"),
    )
]
# What Kueue's webhook writes into a pod within the request that creates it.
_OF_WEBHOOK = [_KUEUE + "managed", _KUEUE + "role-hash"]
_OWNERS = ["Job", "JobSet", "TrainJob"]
_CHANGES = ("CREATE", "UPDATE")
# The templates of jobs and pods in an object, in groups: of a TrainJob those of each patch, else one.
_TEMPLATES = """
  request.kind.kind == 'Pod' ? [] : request.kind.kind == 'TrainJob'
  ? OBJECT.spec.?runtimePatches.orValue([]).map(patch, patch.?trainingRuntimeSpec.?template).map(set,
    [dyn(set.orValue({}))]
    + set.?spec.?replicatedJobs.orValue([]).map(job, dyn(job.?template.orValue({})))
    + set.?spec.?replicatedJobs.orValue([]).map(job, dyn(job.?template.?spec.?template.orValue({}))))
  : request.kind.kind == 'JobSet'
  ? [OBJECT.spec.?replicatedJobs.orValue([]).map(job, dyn(job.template))
    + OBJECT.spec.?replicatedJobs.orValue([]).map(job, dyn(job.template.spec.template))]
  : request.kind.kind == 'CronJob'
  ? [[dyn(OBJECT.spec.jobTemplate), dyn(OBJECT.spec.jobTemplate.spec.template)]]
  : [[dyn(OBJECT.spec.?template.orValue({}))]]
"""
_NEW = "request.operation == 'CREATE'"
_NODE = "the scheduler chooses the node: leave nodeName out; select a pool by its queue"
# Every GKE cluster from 1.34.1-gke.1829001 has the classes `autopilot` and `autopilot-spot`, for which GKE
# makes nodes beside all pools (GKE documentation, "About built-in ComputeClasses").
COMPUTE_CLASS = "cloud.google.com/compute-class"
_MACHINES = f"nodes are those of the stack's pools: leave {COMPUTE_CLASS} out; select a pool by its queue"
_GPUS = f"only pods that request {GPU} run on its nodes: leave the toleration out"
_GRACE = f"terminationGracePeriodSeconds: {MOST_GRACE_S} at most, as a preempted pod keeps its node"


def policies(member: str) -> list[Policy]:
    """All of them; `member`: CEL, true for requests of members."""
    return [_fields(member), _pods(member), _orphans(member), _classes()]


def mutation() -> Mutation:
    """Remove the role of a new pod.

    Kueue counts the first pod of a role for all pods of it in a group, and computes the role of a pod only
    where it has none (pod_controller.go, `getRoleHash`): a user who writes it gets large pods for the quota
    of a small one. It runs before Kueue's webhook; a validation comes after, when the author is unknown.
    """
    role = _OF_WEBHOOK[1]
    written = f"'{role}' in object.metadata.?annotations.orValue({{}})"
    path = "/metadata/annotations/" + role.replace("/", "~1")
    return Mutation(
        ROLES,
        [rule("", "pods")],
        [f"[JSONPatch{{op: 'remove', path: '{path}'}}]"],
        condition=written,
        failure_policy="Fail",
    )


def owned(of: str = "object") -> str:
    """CEL: whether an object belongs to a job of a queued kind, or claims to."""
    return f"{of}.metadata.?ownerReferences.orValue([]).exists(owner, owner.kind in {json.dumps(_OWNERS)})"


def _fields(member: str) -> Policy:
    described = [
        rule("", "pods", "replicationcontrollers", operations=_CHANGES),
        rule("apps", "deployments", "replicasets", "statefulsets", "daemonsets", operations=_CHANGES),
        rule("batch", "jobs", "cronjobs", operations=_CHANGES),
        rule("jobset.x-k8s.io", "jobsets", operations=_CHANGES),
        rule("trainer.kubeflow.org", "trainjobs", operations=_CHANGES),
    ]
    now, was = (_TEMPLATES.strip().replace("OBJECT", each) for each in ("object", "oldObject"))
    variables = {
        "templates": now,
        "described": "variables.templates + [[dyn(object)]]",
        "before": f"{_NEW} ? [] : ({was}) + [[dyn(oldObject)]]",
        "owned": f"!({_NEW}) && {owned('oldObject')}",
        **{
            f"{key}_before": f"{_NEW} ? {{}} : oldObject.metadata.?{key}.orValue({{}})"
            for key in ("labels", "annotations")
        },
    }
    return Policy(
        FIELDS,
        described,
        [*_metadata(), *_templates(), *_states()],
        variables,
        only_from=member,
    )


def _metadata() -> Iterator[tuple[str, str]]:
    named = ", ".join(key.removeprefix(_KUEUE) for key in _OF_USERS)
    for field in ("labels", "annotations"):
        of_kueue = f"key.startsWith('{_KUEUE}') && !(key in {json.dumps(_OF_USERS)})"
        yield (
            f"variables.described.all(group, group.all(one, one.?metadata.?{field}.orValue({{}}).all(key,"
            f" !({of_kueue}) || ({_NEW} && request.kind.kind == 'Pod' && key in {json.dumps(_OF_WEBHOOK)})"
            f" || variables.before.exists(group, group.exists(old, old.?metadata.?{field}[?key]"
            f" == optional.of(one.metadata.{field}[key]))))))",
            f"{field} of {_KUEUE} are written by Kueue: set none but {named}",
        )
        kept = f"variables.owned || ({of_kueue})" if field == "labels" else of_kueue
        yield (
            f"variables.{field}_before.all(key, !({kept})"
            f" || object.metadata.?{field}[?key] == optional.of(variables.{field}_before[key]))",
            f"{field} of Kueue, and labels of what belongs to a job, stay: they keep it in its queue. Delete "
            "the job instead",
        )
    yield (
        f"object.metadata.?ownerReferences.orValue([]) == ({_NEW} ? []"
        " : oldObject.metadata.?ownerReferences.orValue([]))",
        "only controllers create objects that belong to a job: leave ownerReferences out",
    )


def _templates() -> Iterator[tuple[str, str]]:
    """The rules of `_pods` for templates of members, whose pods controllers create."""
    each = "variables.templates.all(group, group.all(one, {}))"
    yield (
        each.format("one.?metadata.?finalizers.orValue([]).size() == 0"),
        "finalizers are set by controllers, which remove them again: leave them out of templates",
    )
    yield (each.format("one.?spec.?nodeName.orValue('') == ''"), _NODE)
    yield (f"variables.described.all(group, group.all(one, {_of_pools('one.?spec')}))", _MACHINES)
    # The patches of a TrainJob have no resources: its trainer has them.
    of_trainer = _gpus("object.spec.?trainer.?resourcesPerNode")
    yield (f"{of_trainer} > 0 || {each.format(_counted('one.?spec'))}", _GPUS)
    yield (
        each.format(f"one.?spec.?terminationGracePeriodSeconds.orValue(0) <= {MOST_GRACE_S}"),
        _GRACE,
    )


def _of_pools(spec: str) -> str:
    """CEL: whether a pod requests no nodes outside of the pools that the quota counts."""
    terms = "affinity.?nodeAffinity.?requiredDuringSchedulingIgnoredDuringExecution.?nodeSelectorTerms"
    return (
        f"(!('{COMPUTE_CLASS}' in {spec}.?nodeSelector.orValue({{}}))"
        f" && {spec}.?{terms}.orValue([]).all(term,"
        f" term.?matchExpressions.orValue([]).all(each, each.key != '{COMPUTE_CLASS}')))"
    )


def _gpus(resources: str) -> str:
    """CEL: GPUs of an optional ResourceRequirements."""
    requested = f"{resources}.?requests[?'{GPU}'].orValue(dyn('0'))"
    return f"int(string({resources}.?limits[?'{GPU}'].orValue({requested})))"


def _counted(spec: str) -> str:
    """CEL: whether a pod either requests GPUs or does not tolerate the taint of nodes with GPUs.

    On such a node a container without a request can see all GPUs: NVIDIA's runtime takes
    `NVIDIA_VISIBLE_DEVICES` from the image (NVIDIA/nvidia-container-toolkit, `accept-nvidia-visible-devices-
    envvar-when-unprivileged`).
    """
    containers = f"dyn({spec}.?containers.orValue([])) + dyn({spec}.?initContainers.orValue([]))"
    tolerated = (
        f"{spec}.?tolerations.orValue([]).exists(one, one.?effect.orValue('') in ['', 'NoSchedule']"
        f" && one.?key.orValue('') in ['', '{GPU}'])"
    )
    return f"(!{tolerated} || ({containers}).exists(one, {_gpus('one.?resources')} > 0))"


def _states() -> Iterator[tuple[str, str]]:
    gates = "spec.?schedulingGates.orValue([])"
    yield (
        f"{_NEW} || request.kind.kind != 'Pod' || oldObject.{gates}.all(gate,"
        f" !gate.name.startsWith('{_KUEUE}') || object.{gates}.exists(now, now.name == gate.name))",
        "Kueue removes its scheduling gates when the quota has room: wait (see `trainstack queue`)",
    )
    yield (
        f"{_NEW} || !(request.kind.kind in {json.dumps(_OWNERS)}) || object.spec.?suspend.orValue(false)"
        " || !oldObject.spec.?suspend.orValue(false)",
        "Kueue starts a job when the quota has room: leave `suspend` as it is, or request less",
    )
    yield (
        "!variables.owned || object.spec == oldObject.spec",
        "it belongs to a job, which Kueue counted as a whole: delete that job, and create a larger one",
    )
    yield (
        f"request.kind.kind != 'DaemonSet' || !({_NEW})",
        "no DaemonSets: nodes are shared by all teams. Use a Deployment, or a Job with parallelism",
    )


def _pods(member: str) -> Policy:
    """Every pod is gated by Kueue or belongs to a Job that Kueue counts, also pods of controllers.

    Kueue leaves pods alone that are annotated with a suspending parent; of the integrations that set it
    (Deployment, StatefulSet, LeaderWorkerSet) none is enabled here (`kueue_values`).
    """
    of_job = "object.metadata.?ownerReferences.orValue([]).exists(owner, owner.kind == 'Job')"
    gated = (
        f"object.metadata.?labels[?'{_KUEUE}managed'].orValue('') == 'true'"
        f" && !('{_KUEUE}pod-suspending-parent' in object.metadata.?annotations.orValue({{}}))"
        f" && object.spec.?schedulingGates.orValue([]).exists(gate, gate.name == '{_KUEUE}admission')"
    )
    return Policy(
        PODS,
        [rule("", "pods")],
        [
            (
                f"({of_job} && !{member}) || ({gated})",
                "Kueue would not count this pod: leave its annotations (pod-suspending-parent) and "
                "ownerReferences out",
            ),
            ("object.spec.?nodeName.orValue('') == ''", _NODE),
            (_of_pools("object.?spec"), _MACHINES),
            (f"!{member} || {_counted('object.spec')}", _GPUS),
            (
                "object.spec.?priority.orValue(0) <= 0",
                "no priorityClassName: it would evict pods of other teams. Rank jobs by the label "
                f"{_KUEUE}priority-class",
            ),
            (
                f"!{member} || object.spec.?terminationGracePeriodSeconds.orValue(0) <= {MOST_GRACE_S}",
                _GRACE,
            ),
        ],
    )


def _orphans(member: str) -> Policy:
    """A job is deleted with its pods: left behind they would run outside of every quota."""
    jobs = [
        rule("batch", "jobs", operations=("DELETE",)),
        rule("jobset.x-k8s.io", "jobsets", operations=("DELETE",)),
        rule("trainer.kubeflow.org", "trainjobs", operations=("DELETE",)),
    ]
    orphaned = (
        "request.?options.?propagationPolicy.orValue('') == 'Orphan'"
        " || request.?options.?orphanDependents.orValue(false)"
    )
    message = "its pods would run outside of the quota: delete it without --cascade=orphan"
    return Policy(ORPHANS, jobs, [(f"!({orphaned})", message)], only_from=member)


def _classes() -> Policy:
    """A job changes its priority class only to one that exists, and so do the pods of a group.

    With an unknown one, Kueue fails before it does anything else with the job (kubernetes-sigs/kueue v0.19.2
    pkg/controller/jobframework/reconciler.go, `ensureOneWorkload`): no preemption, no deactivation and no
    time limit stops it any more, and its quota never comes back. A new job is never started instead, but a
    running group takes the class of any of its pods, also of a replacement (jobs/pod/pod_controller.go) or of
    one that joins it, which Kueue allows a pod without a group (pod_webhook.go, `ValidateUpdate`).

    A policy cannot see which classes exist. Those of administrators are known by rights: of who may create
    classes, and of who may `use` this one.
    """
    kinds = [
        rule("", "pods", operations=_CHANGES),
        rule("batch", "jobs", operations=("UPDATE",)),
        rule("jobset.x-k8s.io", "jobsets", operations=("UPDATE",)),
        rule("trainer.kubeflow.org", "trainjobs", operations=("UPDATE",)),
    ]
    named = f"metadata.?labels[?'{PRIORITY_LABEL}'].orValue('')"
    known = [one.name for one in PRIORITIES]
    of_teams = ", ".join(one.name for one in PRIORITIES if not one.internal)
    grouped, was_grouped = (
        "("
        + " || ".join(
            f"'{_KUEUE}pod-group-name' in {of}.metadata.?{part}.orValue({{}})"
            for part in ("labels", "annotations")
        )
        + ")"
        for of in ("object", "oldObject")
    )
    classes = f"authorizer.group('{_KUEUE.rstrip('/')}').resource('workloadpriorityclasses')"
    refusal = (
        f"object.{named} in {json.dumps(['', *known])}"
        f" || ({_NEW} ? !{grouped} : object.{named} == oldObject.{named} && (!{grouped} || {was_grouped}))"
        f" || {classes}.check('create').allowed()"
        f" || {classes}.name(object.{named}).check('use').allowed()",
        f"Kueue could not stop a job or group with an unknown class: name one of {of_teams} in label "
        f"{PRIORITY_LABEL}, create the job again, or ask an administrator for the right to `use` the class",
    )
    return Policy(CLASSES, kinds, [refusal])
