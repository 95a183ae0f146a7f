"""The pools of a job: those whose machines are large enough for each of its pods.

Kueue counts quota, not machines: it admits eight GPUs of one pod to eight machines with one each, where the
pod never runs. On one cluster Kueue evicts it after some minutes and chooses the same pool again; of a
manager, the other cluster refuses the job, which then waits and holds its quota. A required node affinity to
a label of the flavors chooses among them (v0.19.2 pkg/scheduler/flavorassigner, `flavorSelector`).
"""

import json
from collections.abc import Iterator, Mapping, Sequence

from components.kubernetes.queueing import kueue_fields
from components.kubernetes.queueing.policy import Mutation, rule
from components.kubernetes.queueing.quotas import CPU, GPU, MEMORY, FlavorArgs, of_a_pod
from infra.catalog.kubernetes.kueue import DEFAULT_QUEUE, SAMPLES_QUEUE
from infra.gate import POOL_LABEL
from infra.launchers import kubeflow

LARGE_ENOUGH, OF_TRAIN_JOBS = "trainstack-large-enough-pools", "trainstack-pools-of-train-jobs"
MANAGER = "trainstack.dev/pools"
"""Manager of the patch of a TrainJob's runtime."""
_CHANGES = ("CREATE", "UPDATE")
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_GIB = 2**30
# An update keeps what was added, whichever queue the job has by now.
_SHARED = f"{kueue_fields.QUEUE} in {[DEFAULT_QUEUE, SAMPLES_QUEUE]}"
_CONDITION = f"(oldObject != null || {_SHARED}) && !{kueue_fields.owned()}"


def mutations(flavors: Sequence[FlavorArgs], templates: str, before: str) -> Iterator[Mutation]:
    """The policies; none where the machines of all shared pools are equal.

    `templates`, `before`: CEL, the templates of pods of the object, and of the one before an update: `at` and
    `pod`. Jobs with a required node affinity or a pool of their own stay as they are, and so do those that
    fit no machine, which `trainstack-fits` refuses, or which wait.

    `kubectl apply` of a manifest that has not changed sends lists as they were, so it removes the affinity
    from a JobSet and the patch from a TrainJob, which both refuse: updates get what was there before.
    """
    rows = _rows(flavors)
    if not rows:
        return
    variables = {"templates": templates, "before": before, "pools": _literal(rows), "chosen": _chosen()}
    kinds = [
        rule("", "pods"),
        rule("batch", "jobs"),
        rule("jobset.x-k8s.io", "jobsets", operations=_CHANGES),
    ]
    yield Mutation(LARGE_ENOUGH, kinds, [_affinities()], variables, condition=_CONDITION)
    variables = {"pools": _literal(rows), "chosen": _chosen_of_trainer()}
    kinds = [rule("trainer.kubeflow.org", "trainjobs", operations=_CHANGES)]
    yield Mutation(OF_TRAIN_JOBS, kinds, [_patch()], variables, condition=_CONDITION)


def _rows(flavors: Sequence[FlavorArgs]) -> list[Mapping[str, object]]:
    """All pools with sizes; none where all shared ones of a kind are equal, or lack a label of their own."""
    shared = [each for each in flavors if not each.get("own_queue")]
    labels = [each["node_labels"].get(POOL_LABEL) for each in shared]
    sizes = [
        {json.dumps(_size(each)) for each in shared if bool(each["gpus"]) is of_gpus}
        for of_gpus in (True, False)
    ]
    if max(map(len, sizes)) < 2 or None in labels or len({*labels}) < len(labels):
        return []
    return [
        {
            "pool": each["node_labels"][POOL_LABEL],
            "shared": not each.get("own_queue", False),
            "gpus": bool(each["gpus"]),
            **_size(each),
        }
        for each in flavors
        if POOL_LABEL in each["node_labels"]
    ]


def _size(flavor: FlavorArgs) -> Mapping[str, float]:
    return {
        GPU: float(of_a_pod(flavor)),
        CPU: float(flavor["cpu"]),
        MEMORY: float(flavor["memory_gib"] * _GIB),
    }


def _literal(rows: Sequence[Mapping[str, object]]) -> str:
    """CEL: a list of maps with values of several types."""
    maps = (", ".join(f"'{key}': dyn({json.dumps(value)})" for key, value in row.items()) for row in rows)
    return f"[{', '.join(f'{{{each}}}' for each in maps)}]"


def _amount(name: str, resources: str) -> str:
    """CEL: an amount of optional ResourceRequirements; a limit without a request is one."""
    asked = f"{resources}.?requests[?'{name}'].orValue({resources}.?limits[?'{name}'].orValue(dyn('0')))"
    return f"quantity(string({asked})).asApproximateFloat()"


def _enough(amounts: Mapping[str, str]) -> str:
    """CEL: the names of the pools that are large enough, where a shared one of that kind is, and one is not.

    Pools with queues of their own are among the names: a job that waits can be moved to such a queue.
    """
    fits = " && ".join(f"pool['{name}'] >= {amount}" for name, amount in amounts.items())
    kind = f"pool.shared && pool.gpus == ({amounts[GPU]} > 0.0)"
    return f"""
      variables.pools.exists(pool, {kind} && {fits}) && variables.pools.exists(pool, {kind} && !({fits}))
      ? variables.pools.filter(pool, {fits}).map(pool, pool.pool) : []
    """


def _chosen() -> str:
    """CEL: each template that gets an affinity, with its pools."""
    containers = (
        "(dyn(each.pod.containers) + dyn(each.pod.?initContainers.orValue([])"
        ".filter(one, one.?restartPolicy.orValue('') == 'Always')))"
    )
    sums = {
        name: f"{containers}.map(one, {_amount(name, 'one.?resources')}).sum()" for name in (GPU, CPU, MEMORY)
    }
    ours = f"variables.before.filter(old, old.at == each.at && {_is_ours('old.pod')})"
    kept = f"{ours}.map(old, {_values('old.pod')})"
    return f"""
      variables.templates.filter(each, {_is_free("each.pod")}).map(each, {{
        'at': dyn(each.at), 'pod': dyn(each.pod),
        'pools': dyn(oldObject == null ? dyn({_enough(sums).strip()}) : dyn({kept}.flatten()))
      }}).filter(each, each.pools.size() > 0)
    """


def _is_free(pod: str) -> str:
    """CEL: whether a pod names neither nodes nor a pool itself."""
    return (
        f"!('{POOL_LABEL}' in {pod}.?nodeSelector.orValue({{}}))"
        f" && !{pod}.?affinity.?nodeAffinity.?{_REQUIRED}.hasValue()"
    )


def _is_ours(pod: str) -> str:
    """CEL: whether a pod has an affinity of the form that is added here."""
    terms = f"{pod}.?affinity.?nodeAffinity.?{_REQUIRED}.?nodeSelectorTerms.orValue([])"
    return (
        f"{terms}.size() == 1 && {terms}.all(term, term.?matchExpressions.orValue([]).size() == 1"
        f" && term.matchExpressions.all(one, one.key == '{POOL_LABEL}' && one.operator == 'In'))"
    )


def _values(pod: str) -> str:
    return f"{pod}.affinity.nodeAffinity.{_REQUIRED}.nodeSelectorTerms[0].matchExpressions[0].values"


def _terms(pools: str) -> str:
    expression = f"{{'key': dyn('{POOL_LABEL}'), 'operator': dyn('In'), 'values': dyn({pools})}}"
    return f"{{'nodeSelectorTerms': [{{'matchExpressions': [{expression}]}}]}}"


def _affinities() -> str:
    """A required affinity to the pools; affinities of other kinds stay."""
    terms = _terms("each.pools")
    return f"""
      variables.chosen.map(each,
        !has(each.pod.affinity)
        ? JSONPatch{{
            op: 'add', path: each.at + '/affinity', value: {{'nodeAffinity': {{'{_REQUIRED}': {terms}}}}}
          }}
        : !has(each.pod.affinity.nodeAffinity)
        ? JSONPatch{{
            op: 'add', path: each.at + '/affinity/nodeAffinity', value: {{'{_REQUIRED}': {terms}}}
          }}
        : JSONPatch{{op: 'add', path: each.at + '/affinity/nodeAffinity/{_REQUIRED}', value: {terms}}})
    """


def _chosen_of_trainer() -> str:
    """CEL: the patch for the trainer of a TrainJob that declares its resources, in a list.

    Patches of several managers are merged, and their lists replace each other (trainer v2.2.1
    pkg/runtime/core/trainingruntime.go, `mergeRuntimePatches`), so this one has nothing but its affinity.
    """
    amounts = {name: _amount(name, "object.spec.?trainer.?resourcesPerNode") for name in (GPU, CPU, MEMORY)}
    jobs = "patch.?trainingRuntimeSpec.?template.?spec.?replicatedJobs.orValue([])"
    spec = "job.?template.?spec.?template.?spec"
    free = (
        f"object.spec.?runtimePatches.orValue([]).all(patch, {jobs}.filter(job, job.name == 'node'"
        f" && {spec}.hasValue()).all(job, {_is_free(f'{spec}.value()')}))"
    )
    affinity = f"{{'nodeAffinity': {{'{_REQUIRED}': {_terms('names')}}}}}"
    pod = f"{{'spec': {{'template': {{'spec': {{'affinity': {affinity}}}}}}}}}"
    job = f"{{'name': dyn('node'), 'template': dyn({pod})}}"
    runtime = f"{{'template': {{'spec': {{'replicatedJobs': [{job}]}}}}}}"
    patch = f"{{'manager': dyn('{MANAGER}'), 'trainingRuntimeSpec': dyn({runtime})}}"
    mine = f"patch.manager == '{MANAGER}'"
    return f"""
      object.spec.?runtimePatches.orValue([]).exists(patch, {mine}) ? dyn([])
      : oldObject != null ? dyn(oldObject.spec.?runtimePatches.orValue([]).filter(patch, {mine}))
      : object.spec.runtimeRef.name == '{kubeflow.RUNTIME}' && {free}
      ? dyn([{_enough(amounts).strip()}].filter(names, names.size() > 0).map(names, {patch}))
      : dyn([])
    """


def _patch() -> str:
    return """
      variables.chosen.map(patch,
        has(object.spec.runtimePatches)
        ? JSONPatch{op: 'add', path: '/spec/runtimePatches/-', value: patch}
        : JSONPatch{op: 'add', path: '/spec/runtimePatches', value: [patch]})
    """
