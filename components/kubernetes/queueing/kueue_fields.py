"""Policies that keep jobs in their queue: fields of Kueue that members cannot write (pure).

Kueue trusts what it finds on objects of the namespace: it skips pods without its label, and objects that
belong to a job, or claim to (kubernetes-sigs/kueue v0.19.2 pkg/controller/jobs/pod/pod_controller.go, `Skip`;
pod_webhook.go, `Default`; pkg/controller/jobframework/reconciler.go, `FindAncestorJobManagedByKueue`).
"""

import json
from collections.abc import Iterator

from components.kubernetes.people import by_controllers
from components.kubernetes.queueing.kueue import QUEUE_NAME_LABEL
from components.kubernetes.queueing.policy import Policy, rule
from components.kubernetes.queueing.quotas import GPU
from infra.catalog.kubernetes.kueue import DEFAULT_QUEUE

FIELDS, PODS = "trainstack-kueue", "trainstack-pods"
# A preempted job frees its quota at once, its pods stay until they end: no longer than this, which is less
# than the time in which its successor has to be ready, and than the time limit of a namespace's deletion.
MOST_GRACE_S = 600

KUEUE, JOBSET = "kueue.x-k8s.io/", "jobset.sigs.k8s.io/"
# Labels and annotations with which users describe their job (kueue v0.19.2 pkg/controller/constants,
# pkg/controller/jobs/pod/constants and apis/kueue/v1beta2/topology_types.go).
_OF_USERS = [
    KUEUE + key
    for key in (
        *("queue-name", "priority-class", "max-exec-time-seconds", "job-min-parallelism"),
        *("job-completions-equal-parallelism", "podset-group-name", "podset-slice-size"),
        *("podset-required-topology", "podset-preferred-topology", "podset-unconstrained-topology"),
        *("podset-slice-required-topology", "podset-slice-required-topology-constraints"),
    )
]
# What Kueue's webhook writes into a pod within the request that creates it.
_OF_WEBHOOK = [KUEUE + "managed", KUEUE + "role-hash"]
# CEL: a label or annotation of groups of pods, which are refused for all authors (`stopping`).
GROUPED = f"(key.startsWith('{KUEUE}pod-group-') || key == '{KUEUE}retriable-in-group')"
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
NEW = "request.operation == 'CREATE'"
_NODE = "the scheduler chooses the node: leave nodeName out; select a pool by its queue"
# Every GKE cluster from 1.34.1-gke.1829001 has the classes `autopilot` and `autopilot-spot`, for which GKE
# makes nodes beside all pools (GKE documentation, "About built-in ComputeClasses").
COMPUTE_CLASS = "cloud.google.com/compute-class"
_MACHINES = f"nodes are those of the stack's pools: leave {COMPUTE_CLASS} out; select a pool by its queue"
_GPUS = f"only pods that request {GPU} run on its nodes: leave the toleration out"
_GRACE = f"terminationGracePeriodSeconds: {MOST_GRACE_S} at most, as a preempted pod keeps its node"


def policies(member: str) -> list[Policy]:
    """All of them; `member`: CEL, true for requests of members."""
    return [_fields(member), _pods(member)]


QUEUE = f"object.metadata.?labels[?'{QUEUE_NAME_LABEL}'].orValue('{DEFAULT_QUEUE}')"
"""CEL: name of the queue of a job, before Kueue has set that of a job without one."""


def owned(of: str = "object") -> str:
    """CEL: whether an object belongs to a job of a queued kind, or claims to."""
    return f"{of}.metadata.?ownerReferences.orValue([]).exists(owner, owner.kind in {json.dumps(_OWNERS)})"


# The kinds that describe pods.
DESCRIBED = [
    rule("", "pods", "replicationcontrollers", operations=_CHANGES),
    rule("apps", "deployments", "replicasets", "statefulsets", "daemonsets", operations=_CHANGES),
    rule("batch", "jobs", "cronjobs", operations=_CHANGES),
    rule("jobset.x-k8s.io", "jobsets", operations=_CHANGES),
    rule("trainer.kubeflow.org", "trainjobs", operations=_CHANGES),
]


def described() -> dict[str, str]:
    """CEL variables: an object and its templates, in groups; and those that it had before."""
    now, was = (_TEMPLATES.strip().replace("OBJECT", each) for each in ("object", "oldObject"))
    return {
        "templates": now,
        "described": "variables.templates + [[dyn(object)]]",
        "before": f"{NEW} ? [] : ({was}) + [[dyn(oldObject)]]",
    }


def unchanged(field: str, refused: str, but: str = "false") -> str:
    """CEL: no key of labels or annotations (`field`) that is `refused`, but those of before and `but`."""
    return (
        f"variables.described.all(group, group.all(one, one.?metadata.?{field}.orValue({{}}).all(key,"
        f" !({refused}) || ({but}) || variables.before.exists(group, group.exists(old,"
        f" old.?metadata.?{field}[?key] == optional.of(one.metadata.{field}[key]))))))"
    )


def _fields(member: str) -> Policy:
    variables = {
        **described(),
        "owned": f"!({NEW}) && {owned('oldObject')}",
        **{
            f"{key}_before": f"{NEW} ? {{}} : oldObject.metadata.?{key}.orValue({{}})"
            for key in ("labels", "annotations")
        },
    }
    return Policy(
        FIELDS,
        DESCRIBED,
        [*_metadata(), *_templates(), *_states()],
        variables,
        only_from=member,
    )


def _metadata() -> Iterator[tuple[str, str]]:
    named = ", ".join(key.removeprefix(KUEUE) for key in _OF_USERS)
    for field in ("labels", "annotations"):
        of_kueue = f"key.startsWith('{KUEUE}') && !(key in {json.dumps(_OF_USERS)})"
        if field == "labels":
            # By them the watch of idle GPUs takes the pod of a Job for one of a JobSet, and stops that.
            of_kueue += f" || key.startsWith('{JOBSET}')"
        webhook = f"{NEW} && request.kind.kind == 'Pod' && key in {json.dumps(_OF_WEBHOOK)}"
        yield (
            unchanged(field, of_kueue, f"{webhook} || {GROUPED}"),  # which has a message of its own
            f"{field} of {KUEUE} and {JOBSET} are written by their controllers: set none but {named}",
        )
        kept = f"variables.owned || ({of_kueue})" if field == "labels" else of_kueue
        yield (
            f"variables.{field}_before.all(key, !({kept})"
            f" || object.metadata.?{field}[?key] == optional.of(variables.{field}_before[key]))",
            f"{field} of Kueue, and labels of what belongs to a job, stay: they keep it in its queue. Delete "
            "the job instead",
        )
    yield (
        f"object.metadata.?ownerReferences.orValue([]) == ({NEW} ? []"
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
    envvar-when-unprivileged`), but for nodes with shared GPUs (`components/aws/pools/user_data.py`).
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
        f"{NEW} || request.kind.kind != 'Pod' || oldObject.{gates}.all(gate,"
        f" !gate.name.startsWith('{KUEUE}') || object.{gates}.exists(now, now.name == gate.name))",
        "Kueue removes its scheduling gates when the quota has room: wait (see `trainstack queue`)",
    )
    yield (
        f"{NEW} || !(request.kind.kind in {json.dumps(_OWNERS)}) || object.spec.?suspend.orValue(false)"
        " || !oldObject.spec.?suspend.orValue(false)",
        "Kueue starts a job when the quota has room: leave `suspend` as it is, or request less",
    )
    yield (
        "!variables.owned || object.spec == oldObject.spec",
        "it belongs to a job, which Kueue counted as a whole: delete that job, and create a larger one",
    )
    yield (
        f"request.kind.kind != 'DaemonSet' || !({NEW})",
        "no DaemonSets: nodes are shared by all teams. Use a Deployment, or a Job with parallelism",
    )


def _pods(member: str) -> Policy:
    """Every pod is gated by Kueue or belongs to a Job that Kueue counts, also pods of controllers.

    Kueue leaves pods alone that are annotated with a suspending parent; of the integrations that set it
    (Deployment, StatefulSet, LeaderWorkerSet) none is enabled here (`kueue_values`).
    """
    of_job = "object.metadata.?ownerReferences.orValue([]).exists(owner, owner.kind == 'Job')"
    gated = (
        f"object.metadata.?labels[?'{KUEUE}managed'].orValue('') == 'true'"
        f" && !('{KUEUE}pod-suspending-parent' in object.metadata.?annotations.orValue({{}}))"
        f" && object.spec.?schedulingGates.orValue([]).exists(gate, gate.name == '{KUEUE}admission')"
    )
    return Policy(
        PODS,
        [rule("", "pods")],
        [
            (
                f"({of_job} && {by_controllers('job-controller')}) || ({gated})",
                "Kueue would not count this pod: leave its annotations (pod-suspending-parent) and "
                "ownerReferences out",
            ),
            ("object.spec.?nodeName.orValue('') == ''", _NODE),
            (_of_pools("object.?spec"), _MACHINES),
            (f"!{member} || {_counted('object.spec')}", _GPUS),
            (
                "object.spec.?priority.orValue(0) <= 0",
                "no priorityClassName: it would evict pods of other teams. Rank jobs by the label "
                f"{KUEUE}priority-class",
            ),
            (
                f"!{member} || object.spec.?terminationGracePeriodSeconds.orValue(0) <= {MOST_GRACE_S}",
                _GRACE,
            ),
        ],
    )
