"""Fields that the API server adds to jobs, so that one without special knowledge starts.

MutatingAdmissionPolicies as plain data (admissionregistration.k8s.io/v1, on by default from Kubernetes 1.36:
apiserver v0.36.2 pkg/features/kube_features.go). They run before the webhooks of Kueue and of the job
controllers (kubernetes v1.36.2 pkg/kubeapiserver/options/plugins.go, `AllOrderedPlugins`): Kueue evaluates
the job with what they added. The plug-in ExtendedResourceToleration changes pods only, and Kueue reads the
templates of jobs (kubernetes-sigs/kueue#170).

They run on updates too: `kubectl apply` of a manifest that has not changed sends its lists as they were and
so removes what was added to them, which a Job that runs and every JobSet refuse. An update gets only what the
object had before, or what the update makes necessary: an object that was made without it, before these
policies, may not be allowed to change.

A policy whose expression fails leaves the object as it is: the API server's own validation then names the
invalid field. It refuses the request instead (503) for the seconds in which an API server that started, or
whose CustomResourceDefinitions changed, has no schema of a custom kind yet: `failurePolicy` does not cover
that (apiserver v0.36.2 pkg/admission/plugin/policy/mutating/dispatcher.go, `dispatchOne`).
"""

import json
from collections.abc import Iterator, Mapping, Sequence

from agents.clusters.fence import ORIGIN_LABEL
from components.kubernetes.queueing.defaults import job_limits, pools
from components.kubernetes.queueing.kueue import GPU_TAINT
from components.kubernetes.queueing.policy import Body, Mutation, rule
from components.kubernetes.queueing.quotas import GPU, FlavorArgs

TOLERATED, TRAIN_JOBS = "trainstack-gpu-tolerations", "trainstack-train-jobs"
BOUNDED, ENDING = "trainstack-gpu-pods", "trainstack-job-limits"
# Shared memory per GPU for data loaders and NCCL; a container has 64 MiB otherwise. It reserves nothing, is
# part of the memory limit, and the kubelet reduces it to that (kubernetes v1.36.2 pkg/volume/emptydir,
# `calculateEmptyDirMemorySize`).
SHM_GIB_PER_GPU = 8
SHM = "trainstack-shm"

_CHANGES = ("CREATE", "UPDATE")
_TOLERATION = json.dumps({"key": GPU, "operator": "Exists", "effect": GPU_TAINT["effect"]})
# Every pod template of an object: its path and its spec.
_TEMPLATES = """
  object.kind == 'Pod' ? dyn([{'at': dyn('/spec'), 'pod': dyn(object.spec)}])
  : object.kind == 'Job' ? dyn([{'at': dyn('/spec/template/spec'), 'pod': dyn(object.spec.template.spec)}])
  : object.kind == 'JobSet' ? dyn(object.spec.replicatedJobs.transformList(index, job, {
    'at': dyn('/spec/replicatedJobs/' + string(index) + '/template/spec/template/spec'),
    'pod': dyn(job.template.spec.template.spec)
  }))
  : dyn(object.spec.template.spec.replicatedJobs.transformList(index, job, {
    'at': dyn('/spec/template/spec/replicatedJobs/' + string(index) + '/template/spec/template/spec'),
    'pod': dyn(job.template.spec.template.spec)
  }))
"""


# The resources of every container of these templates: their path and themselves.
_OF_CONTAINERS = """
  variables.templates.map(one,
    one.pod.containers.transformList(index, each, {
      'at': dyn(one.at + '/containers/' + string(index) + '/resources'),
      'own': dyn(each.?resources.orValue(dyn({})))
    }) + one.pod.?initContainers.orValue([]).transformList(index, each, {
      'at': dyn(one.at + '/initContainers/' + string(index) + '/resources'),
      'own': dyn(each.?resources.orValue(dyn({})))
    })
  ).flatten()
"""
_OF_TRAIN_JOB = """
  object.spec.?trainer.?resourcesPerNode.hasValue()
  ? [{'at': dyn('/spec/trainer/resourcesPerNode'), 'own': dyn(object.spec.trainer.resourcesPerNode)}]
  : []
"""


def _gpus(resources: str) -> str:
    """GPUs of an optional ResourceRequirements.

    In custom resources, the amount may be a number: with a default that is no dyn, `string` takes text only.
    """
    asked = f"{resources}.?limits[?'{GPU}'].orValue({resources}.?requests[?'{GPU}'].orValue(dyn('0')))"
    return f"int(string({asked}))"


def _tolerates(tolerations: str) -> str:
    covers = f"(one.?key.orValue('') in ['', '{GPU}'] && one.?effect.orValue('NoSchedule') == 'NoSchedule'"
    return f"{tolerations}.exists(one, {covers} && one.?operator.orValue('Equal') == 'Exists'))"


def _before(expression: str) -> str:
    """The value of an expression for the object before an update; for a new one, an empty list.

    Runtimes may be changed at any time, so they are always completed.
    """
    of_old = expression.replace("object.", "oldObject.").replace("variables.", "variables.before_")
    return f"oldObject == null || object.kind.endsWith('TrainingRuntime') ? dyn([]) : dyn({of_old})"


def _with_before(variables: Mapping[str, str]) -> dict[str, str]:
    """Each variable, and `before_` with its value before an update."""
    of_old = {f"before_{name}": _before(text) for name, text in variables.items()}
    return {**variables, **of_old}


class _Cel(str):
    """An expression inside of a literal."""


def _literal(value: object) -> str:
    """A value as a CEL literal; values of one map or list may be of several types."""
    if isinstance(value, dict):
        return f"{{{', '.join(f'{key!r}: dyn({_literal(each)})' for key, each in value.items())}}}"
    if isinstance(value, list):
        return f"[{', '.join(f'dyn({_literal(each)})' for each in value)}]"
    return str(value) if isinstance(value, _Cel) else json.dumps(value)


_INDEXED = {
    # Every container of a pod: its path and itself.
    "containers": """
      object.spec.containers.transformList(index, one,
        {'at': dyn('/spec/containers/' + string(index)), 'own': dyn(one)})
      + object.spec.?initContainers.orValue([]).transformList(index, one,
        {'at': dyn('/spec/initContainers/' + string(index)), 'own': dyn(one)})
    """,
    # Those that mount nothing at or below /dev/shm.
    "bare": """
      variables.containers.filter(one, !one.own.?volumeMounts.orValue([]).exists(mount,
        mount.mountPath.startsWith('/dev/shm') || mount.mountPath in ['/dev', '/dev/']))
    """,
    "gpus": f"variables.containers.map(one, {_gpus('one.own.?resources')}).sum()",
}
_TEMPLATED = [
    rule("", "pods", operations=_CHANGES),
    rule("batch", "jobs", operations=_CHANGES),
    rule("jobset.x-k8s.io", "jobsets", operations=_CHANGES),
    rule("trainer.kubeflow.org", "trainingruntimes", "clustertrainingruntimes", operations=_CHANGES),
]


def mutations(flavors: Sequence[FlavorArgs], *, ending: bool = False) -> Iterator[Body]:
    """Every policy with its binding; with `ending`, jobs get the limits that the environment requires."""
    for mutation in _mutations(flavors, ending=ending):
        yield from mutation.objects()


def _mutations(flavors: Sequence[FlavorArgs], *, ending: bool) -> Iterator[Mutation]:
    variables = {"templates": _TEMPLATES, "resources": _OF_CONTAINERS}
    variables |= {"untolerated": _untolerated(), "unrequested": _unrequested()}
    yield Mutation(TOLERATED, _TEMPLATED, [_tolerated(), _requests(), _kept()], _with_before(variables))
    variables = {"resources": _OF_TRAIN_JOB, "untolerated": _untolerated_trainer()}
    variables |= {"unrequested": _unrequested()}
    train_jobs = [rule("trainer.kubeflow.org", "trainjobs", operations=_CHANGES)]
    yield Mutation(TRAIN_JOBS, train_jobs, [_train_job(), _requests()], _with_before(variables))
    yield from pools.mutations(flavors, _TEMPLATES, _before(_TEMPLATES))
    with_gpus = [each for each in flavors if each["gpus"]]
    if with_gpus:
        # Volumes and limits of a pod never change.
        variables = {**_INDEXED, "share": _share(with_gpus)}
        yield Mutation(BOUNDED, [rule("", "pods")], [_shared_memory(), _memory_limits()], variables)
    if ending:
        kinds = [
            rule("batch", "jobs", "cronjobs", operations=_CHANGES),
            rule("jobset.x-k8s.io", "jobsets", operations=_CHANGES),
        ]
        limits = {"jobs": job_limits.JOBS, "endless": job_limits.endless(), "patient": job_limits.patient()}
        variables = {**_with_before(limits), **job_limits.ABOUT}
        yield Mutation(ENDING, kinds, [job_limits.deadlines(), job_limits.retries()], variables)


def _untolerated() -> str:
    """The paths of the templates that request GPUs and do not tolerate their nodes."""
    has_gpus = f"one.pod.?initContainers.orValue([]).exists(each, {_gpus('each.?resources')} > 0)"
    has_gpus += f" || one.pod.containers.exists(each, {_gpus('each.?resources')} > 0)"
    without = f"({has_gpus}) && !{_tolerates('one.pod.?tolerations.orValue([])')}"
    return f"variables.templates.filter(one, {without}).map(one, one.at)"


def _tolerated() -> str:
    """A toleration of GPU nodes in each template that requests GPUs, and in no other.

    A job gets GPU nodes only with it, so one without GPUs never takes such a node.
    """
    return f"""
      variables.templates.filter(one, one.at in variables.untolerated
        && !(one.at in variables.before_untolerated)).map(one, has(one.pod.tolerations)
        ? JSONPatch{{op: 'add', path: one.at + '/tolerations/-', value: {_TOLERATION}}}
        : JSONPatch{{op: 'add', path: one.at + '/tolerations', value: [{_TOLERATION}]}})
    """


def _unrequested() -> str:
    """The paths of the requests of cores and memory that are missing beside a limit."""
    missing = "name in one.own.?limits.orValue({}) && !(name in one.own.?requests.orValue({}))"
    paths = f"['cpu', 'memory'].filter(name, {missing}).map(name, one.at + '/requests/' + name)"
    return f"variables.resources.map(one, {paths}).flatten()"


def _requests() -> str:
    """Requests of cores and memory that equal the limit, where a container declares only that.

    Kubernetes does this for pods. Kueue applies the default requests of the namespace first, and refuses the
    job for ever where they exceed the limit (kueue v0.19.2 pkg/workload/resources.go, `AdjustResources`).
    """
    path = "one.at + '/requests/' + name"
    missing = f"({path} in variables.unrequested && !({path} in variables.before_unrequested))"
    return f"""
      variables.resources.filter(one, ['cpu', 'memory'].exists(name, {missing})).map(one,
        (has(one.own.requests) ? [] : [JSONPatch{{op: 'add', path: one.at + '/requests', value: {{}}}}])
        + ['cpu', 'memory'].filter(name, {missing}).map(name,
          JSONPatch{{op: 'add', path: one.at + '/requests/' + name, value: one.own.limits[name]}})
      ).flatten()
    """


def _untolerated_trainer() -> str:
    """The tolerations that patches give the trainer of a TrainJob with GPUs per node, in a list.

    That list is empty if one of them is of GPU nodes.
    """
    jobs = "patch.?trainingRuntimeSpec.?template.?spec.?replicatedJobs.orValue([])"
    own = "job.?template.?spec.?template.?spec.?tolerations.orValue([])"
    return f"""
      {_gpus("object.spec.?trainer.?resourcesPerNode")} == 0 ? [] : [
        object.spec.?runtimePatches.orValue([]).map(patch, {jobs}.filter(job, job.name == 'node')
          .map(job, {own}).flatten()).flatten()
      ].filter(tolerations, !{_tolerates("tolerations")})
    """


def _train_job() -> str:
    """A patch of the runtime with the toleration, where the TrainJob itself requests GPUs per node.

    The lists of several patches replace each other (trainer v2.2.1 pkg/runtime/core/trainingruntime.go,
    `mergeRuntimePatches`), so those of the user are repeated. The trainer's job is `node` in every runtime
    without MPI.
    """
    pod = {"spec": {"template": {"spec": {"tolerations": _Cel(f"tolerations + [dyn({_TOLERATION})]")}}}}
    runtime = {"template": {"spec": {"replicatedJobs": [{"name": "node", "template": pod}]}}}
    patch = _literal({"manager": "trainstack.dev/tolerations", "trainingRuntimeSpec": runtime})
    return f"""
      variables.before_untolerated.size() > 0 ? []
      : variables.untolerated.map(tolerations, {patch}).map(patch,
        has(object.spec.runtimePatches)
        ? JSONPatch{{op: 'add', path: '/spec/runtimePatches/-', value: patch}}
        : JSONPatch{{op: 'add', path: '/spec/runtimePatches', value: [patch]}})
    """


def _kept() -> str:
    """A job of a manager of several clusters without a time after which this cluster deletes it.

    Kueue 0.19.2 copies that time. Where the job is deleted here before its end is copied back, the manager
    sends it again (kubernetes-sigs/kueue#14734). The manager deletes it when it knows the end.
    """
    sent = f"'{ORIGIN_LABEL}' in object.metadata.?labels.orValue({{}})"
    return f"""
      object.kind in ['Job', 'JobSet'] && object.spec.?ttlSecondsAfterFinished.hasValue() && {sent}
      ? [JSONPatch{{op: 'remove', path: '/spec/ttlSecondsAfterFinished'}}] : []
    """


def _shared_memory() -> str:
    """A volume in memory at /dev/shm of a pod with GPUs, in each container that mounts nothing there.

    Containers of a pod share /dev/shm: all of them get the volume, or those with one of their own keep it.
    """
    size = _Cel(f"string({SHM_GIB_PER_GPU} * variables.gpus) + 'Gi'")
    volume = _literal({"name": SHM, "emptyDir": {"medium": "Memory", "sizeLimit": size}})
    mount = json.dumps({"name": SHM, "mountPath": "/dev/shm"})  # noqa: S108
    return f"""
      object.spec.?hostIPC.orValue(false) ? []
      : !variables.bare.exists(one, {_gpus("one.own.?resources")} > 0) ? []
      : (object.spec.?volumes.orValue([]).exists(one, one.name == '{SHM}') ? []
        : has(object.spec.volumes) ? [JSONPatch{{op: 'add', path: '/spec/volumes/-', value: {volume}}}]
        : [JSONPatch{{op: 'add', path: '/spec/volumes', value: [{volume}]}}])
      + variables.bare.map(one, has(one.own.volumeMounts)
        ? JSONPatch{{op: 'add', path: one.at + '/volumeMounts/-', value: {mount}}}
        : JSONPatch{{op: 'add', path: one.at + '/volumeMounts', value: [{mount}]}})
    """


def _memory_limits() -> str:
    """A memory limit of each container with GPUs that has none: its GPUs' share of the machine's memory.

    The request stays, and so does the number that the queue counts.
    """
    limit = f"string(variables.share * {_gpus('one.own.?resources')}) + 'Gi'"
    request = "string(one.own.?resources.?requests[?'memory'].orValue(dyn('0')))"
    most = f"quantity({request}).isGreaterThan(quantity({limit})) ? {request} : {limit}"
    without = "!one.own.?resources.?limits[?'memory'].hasValue()"
    return f"""
      object.spec.?resources.?limits[?'memory'].hasValue() ? [] :
      variables.containers.filter(one, {_gpus("one.own.?resources")} > 0 && {without}).map(one,
        JSONPatch{{op: 'add', path: one.at + '/resources/limits/memory', value: {most}}})
    """


def _share(flavors: Sequence[FlavorArgs]) -> str:
    """GiB of memory per GPU on the pool of a pod; the largest before it has one."""
    shares = [(each["node_labels"], each["memory_gib"] // each["gpus"]) for each in flavors]
    text = str(max(share for _, share in shares))
    for labels, share in shares:
        of_pool = " && ".join(
            f"object.spec.?nodeSelector[?{json.dumps(key)}].orValue('') == {json.dumps(value)}"
            for key, value in labels.items()
        )
        text = f"{of_pool} ? {share} : {text}"
    return text
