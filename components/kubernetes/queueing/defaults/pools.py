"""The pools of a job: those whose machines are large enough for each of its pods.

Kueue counts quota, not machines: it admits eight GPUs of one pod to eight machines with one each, where the
pod never runs. On one cluster Kueue evicts it after some minutes and chooses the same pool again; of a
manager, the other cluster refuses the job, which then waits and holds its quota. A required node affinity to
a label of the flavors chooses among them (v0.19.2 pkg/scheduler/flavorassigner, `flavorSelector`).
"""

import json
from collections.abc import Mapping, Sequence

from components.kubernetes.queueing import kueue_fields
from components.kubernetes.queueing.kueue import QUEUE_NAME_LABEL
from components.kubernetes.queueing.policy import Mutation, rule
from components.kubernetes.queueing.quotas import CPU, GPU, MEMORY, FlavorArgs, of_a_pod
from infra.catalog.kubernetes.kueue import DEFAULT_QUEUE, SAMPLES_QUEUE
from infra.gate import POOL_LABEL
from infra.launchers import kubeflow

LARGE_ENOUGH = "trainstack-large-enough-pools"
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_GIB = 2**30
_QUEUE = f"object.metadata.?labels[?'{QUEUE_NAME_LABEL}'].orValue('{DEFAULT_QUEUE}')"
_IN_SHARED = f"{_QUEUE} in {[DEFAULT_QUEUE, SAMPLES_QUEUE]}"


def mutation(flavors: Sequence[FlavorArgs], templates: str) -> Mutation | None:
    """The policy; None where the machines of all shared pools are equal. `templates`: CEL, `at` and `pod`.

    Jobs with a node affinity of their own, with a pool, or of a queue for one pool stay as they are, and so
    do those that fit no machine: `trainstack-fits` refuses them, or they wait. Only at creation: what is not
    in a manifest stays when it is applied again.
    """
    rows = _shared(flavors)
    if not rows:
        return None
    variables = {"templates": templates, "pools": _literal(rows), "small": _small()}
    return Mutation(
        LARGE_ENOUGH,
        [rule("", "pods"), rule("batch", "jobs"), rule("jobset.x-k8s.io", "jobsets")],
        [_chosen()],
        variables,
        condition=f"{_IN_SHARED} && !{kueue_fields.owned()}",
    )


def of_trainer(flavors: Sequence[FlavorArgs], patched: str) -> str:
    """CEL: the same pools for the trainer of a TrainJob that declares its resources; empty for all of them.

    `patched`: CEL, the specs of pods in the user's patches of the runtime, in a list.
    """
    rows = _shared(flavors)
    if not rows:
        return "[]"
    own = "object.spec.?trainer.?resourcesPerNode"
    fits = " && ".join(f"pool['{name}'] >= {_amount(name, own)}" for name in (GPU, CPU, MEMORY))
    given = f"{patched}.exists(pod, has(pod.affinity) || '{POOL_LABEL}' in pod.?nodeSelector.orValue({{}}))"
    return f"""
      {_IN_SHARED} && object.spec.runtimeRef.name == '{kubeflow.RUNTIME}' && !{given}
      ? [{_literal(rows)}.filter(pool, {fits}).map(pool, pool.pool)]
        .filter(pools, pools.size() < {len(rows)}).flatten()
      : []
    """


def affinity(pools: str) -> str:
    """CEL: an affinity of a pod to the nodes of pools, a list of names."""
    return f"{{'nodeAffinity': {{'{_REQUIRED}': {_terms(pools)}}}}}"


def _terms(pools: str) -> str:
    expression = f"{{'key': dyn('{POOL_LABEL}'), 'operator': dyn('In'), 'values': dyn({pools})}}"
    return f"{{'nodeSelectorTerms': [{{'matchExpressions': [{expression}]}}]}}"


def _shared(flavors: Sequence[FlavorArgs]) -> list[dict[str, object]]:
    """The pools behind the queue of all jobs with their sizes; none where all are equal."""
    shared = [each for each in flavors if not each.get("own_queue") and POOL_LABEL in each["node_labels"]]
    sizes = [_size(each) for each in shared]
    if all(one == sizes[0] for one in sizes):
        return []
    names = [each["node_labels"][POOL_LABEL] for each in shared]
    return [{"pool": name, **size} for name, size in zip(names, sizes, strict=True)]


def _literal(rows: Sequence[Mapping[str, object]]) -> str:
    """CEL: a list of maps with values of several types."""
    maps = (", ".join(f"'{key}': dyn({json.dumps(value)})" for key, value in row.items()) for row in rows)
    return f"[{', '.join(f'{{{each}}}' for each in maps)}]"


def _size(flavor: FlavorArgs) -> Mapping[str, float]:
    return {
        GPU: float(of_a_pod(flavor)),
        CPU: float(flavor["cpu"]),
        MEMORY: float(flavor["memory_gib"] * _GIB),
    }


def _amount(name: str, resources: str) -> str:
    """CEL: an amount of optional ResourceRequirements; a limit without a request is one."""
    asked = f"{resources}.?requests[?'{name}'].orValue({resources}.?limits[?'{name}'].orValue(dyn('0')))"
    return f"quantity(string({asked})).asApproximateFloat()"


def _requests(name: str) -> str:
    """CEL: the sum of a resource over the containers of a pod."""
    return f"each.pod.containers.map(one, {_amount(name, 'one.?resources')}).sum()"


def _small() -> str:
    """CEL: each template that some of the pools are too small for, with the others."""
    fits = " && ".join(f"pool['{name}'] >= {_requests(name)}" for name in (GPU, CPU, MEMORY))
    return f"""
      variables.templates.filter(each, !('{POOL_LABEL}' in each.pod.?nodeSelector.orValue({{}}))
        && !each.pod.?affinity.?nodeAffinity.?{_REQUIRED}.hasValue())
      .map(each, {{
        'at': dyn(each.at), 'pod': dyn(each.pod),
        'pools': dyn(variables.pools.filter(pool, {fits}).map(pool, pool.pool))
      }}).filter(each, each.pools.size() > 0 && each.pools.size() < variables.pools.size())
    """


def _chosen() -> str:
    """A required affinity to the pools; affinities of other kinds stay."""
    terms = _terms("each.pools")
    return f"""
      variables.small.map(each,
        !has(each.pod.affinity)
        ? JSONPatch{{op: 'add', path: each.at + '/affinity', value: {affinity("each.pools")}}}
        : !has(each.pod.affinity.nodeAffinity)
        ? JSONPatch{{op: 'add', path: each.at + '/affinity/nodeAffinity', value: {{'{_REQUIRED}': {terms}}}}}
        : JSONPatch{{op: 'add', path: each.at + '/affinity/nodeAffinity/{_REQUIRED}', value: {terms}}})
    """
