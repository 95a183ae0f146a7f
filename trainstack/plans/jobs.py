"""Jobs that a change of a stack ends, stops or leaves, from the state of its queues and from its new spec."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from components.kubernetes.accelerators import POOL_LABEL
from components.kubernetes.queueing.kueue import COHORT
from components.kubernetes.queueing.kueue_fields import COMPUTE_CLASS
from components.kubernetes.queueing.tenancy import LEAST_REQUEST
from components.kubernetes.runtime_names import CLUSTER_RUNTIME, POOL_RUNTIME
from infra.engine.plan import PlannedStep
from infra.launchers.gcp import gke
from infra.naming import flavor_name
from infra.quantity import parse
from trainstack.queues.state import Job, State

ENDS: Final = "job ends"
STOPS: Final = "job stops and waits"
RESUBMIT: Final = "submit the job again"
"""Effect on a job that waits: its pods name what will not exist, and would never start."""
STAYS: Final = "job continues"
BLOCKS: Final = "delete before the pool"
"""Effect of a TrainJob on the change: `up` waits for the runtime that it names, and then fails."""
Effect = Literal["job ends", "job stops and waits", "submit the job again", "job continues"]
_LEAST_CPU: Final = parse(LEAST_REQUEST["cpu"])
_NETWORK: Final = ":networking.gke.io/v1:Network"


@dataclass(frozen=True)
class Removal:
    """Parts of the queues that a change removes; all names are of the cluster."""

    namespaces: frozenset[str] = frozenset()
    """Namespaces of jobs."""
    queues: frozenset[str] = frozenset()
    """ClusterQueues, those of the namespaces included."""
    flavors: frozenset[str] = frozenset()
    """ResourceFlavors: pools."""

    def __bool__(self) -> bool:
        return bool(self.namespaces or self.queues or self.flavors)


@dataclass(frozen=True)
class JobEffect:
    """The effect of a change on one job that has not finished."""

    job: Job
    effect: Effect
    why: str

    def __str__(self) -> str:
        job = self.job
        pools = ", ".join(sorted({flavor for flavor, _ in job.assigned}))
        where = f"runs on {pools}" if job.holding else "waits"
        size = f"{job.gpus} GPUs" if job.gpus else "no GPU"
        return f"{job.namespace}/{job.name} ({size}, {where}): {self.why}"


def removal(state: State, wanted: Iterable[Any]) -> Removal:
    """The parts of the stack's queues in a cluster that are not among the `wanted` objects of Kueue.

    No wanted object: everything is removed. Queues of other cohorts and their flavors do not belong to the
    stack.
    """
    kept: dict[str, set[str]] = {}
    spaces: set[str] = set()
    for body in wanted:
        kept.setdefault(body["kind"], set()).add(body["metadata"]["name"])
        if body["kind"] == "LocalQueue":
            spaces.add(body["metadata"]["namespace"])
    own = {name: one for name, one in (state.cluster_queues or {}).items() if one.cohort == COHORT}
    local = [one for one in state.local_queues if one.cluster_queue in own]
    used = {flavor for one in own.values() for flavor in one.flavors}
    return Removal(
        frozenset({one.namespace for one in local} - spaces),
        frozenset(own.keys() - kept.get("ClusterQueue", set())),
        frozenset(used - kept.get("ResourceFlavor", set())),
    )


def effects(
    state: State, removed: Removal, wanted: Iterable[Any] = (), networks: Collection[str] = ()
) -> Iterator[JobEffect]:
    """The effect on each job that the change concerns, in the order of the state.

    `networks`: those that are removed (`lost_networks`).
    """
    flavors = {
        body["metadata"]["name"]: set(_flavors(body)) for body in wanted if body["kind"] == "ClusterQueue"
    }
    for job in state.jobs:
        if job.finished:
            continue
        pools = {flavor for flavor, _ in job.assigned}
        lost = sorted(pools & removed.flavors)
        if job.namespace in removed.namespaces:
            yield JobEffect(job, ENDS, f"namespace {job.namespace} is removed")
        elif job.cluster_queue in removed.queues:
            yield JobEffect(job, STOPS, f"queue {job.local_queue} is removed: submit it to another queue")
        elif lost:
            yield JobEffect(job, STOPS, f"pool {', '.join(lost)} is removed")
        elif moved := sorted(pools - flavors.get(job.cluster_queue, pools)):
            yield JobEffect(
                job, STAYS, f"pool {', '.join(moved)} is no longer behind queue {job.local_queue}"
            )
        elif gone := _gone(job, networks):
            if job.holding:
                yield JobEffect(job, STAYS, f"{gone}: once it has stopped, submit it again")
            else:
                yield JobEffect(job, RESUBMIT, gone)
        elif job.grouped:
            # Kueue starts a whole group also after the change, but no pod of it is created any more.
            why = "new pods of groups are refused, also replacements: submit a Job or a JobSet instead"
            yield JobEffect(job, STAYS, why)


def _gone(job: Job, networks: Collection[str]) -> str:
    """Nodes, networks or a plugin that the pods of a job name and will not have; empty: none."""
    named = {one for each in job.pod_sets for one in each.networks}
    if lost := sorted(named.intersection(networks)):
        return f"networks {', '.join(lost)} are removed"
    for each in job.pod_sets:
        if each.each.get("cpu", _LEAST_CPU) < _LEAST_CPU:
            return f"its pods are refused: request {LEAST_REQUEST['cpu']} of CPU for each, at least"
        if COMPUTE_CLASS in each.selector:
            return f"its pods are refused: remove {COMPUTE_CLASS} from their nodeSelector"
        if each.plugin and (newer := gke.other_version(each.plugin)):
            return f"its daemon needs plugin {_tag(each.plugin)}, and nodes have {_tag(newer)}"
    return ""


def _tag(image: str) -> str:
    return image.rpartition(":")[2]


@dataclass(frozen=True)
class RuntimeUse:
    """A TrainJob that keeps the runtime of a removed pool: Kubernetes deletes the runtime after it."""

    namespace: str
    name: str
    runtime: str
    finished: bool

    def __str__(self) -> str:
        state = "finished" if self.finished else "not finished"
        return (
            f"TrainJob {self.namespace}/{self.name} ({state}) names runtime {self.runtime}: "
            f"kubectl -n {self.namespace} delete trainjob {self.name}"
        )


def lost_runtimes(deployed: Iterable[Mapping[str, Any]], wanted: Collection[str]) -> set[str]:
    """Runtimes in a state that are not among the `wanted` names (`stacks.queues.runtime_names`)."""
    return _names(deployed, f":{CLUSTER_RUNTIME}") - {*wanted}


def lost_networks(deployed: Iterable[Mapping[str, Any]], wanted: Collection[str]) -> set[str]:
    """Networks of pods in a state that are not among the `wanted` names (`stacks.queues.network_names`)."""
    return _names(deployed, _NETWORK) - {*wanted}


def _names(deployed: Iterable[Mapping[str, Any]], kind: str) -> set[str]:
    """Names of the objects of Kubernetes in a state whose type ends in `kind`."""
    found = (one for one in deployed if str(one["type"]).endswith(kind))
    return {str(((one.get("inputs") or {}).get("metadata") or {}).get("name")) for one in found}


def runtime_uses(
    train_jobs: Iterable[Any], removed: Removal, lost: Collection[str] = ()
) -> Iterator[RuntimeUse]:
    """TrainJobs, ended ones too, with runtimes of removed pools or `lost`; not in removed namespaces."""
    runtimes = {f"{POOL_RUNTIME}{pool}" for pool in removed.flavors} | {*lost}
    for body in train_jobs:
        about, reference = body["metadata"], body["spec"]["runtimeRef"]
        if reference.get("kind", CLUSTER_RUNTIME) != CLUSTER_RUNTIME or reference["name"] not in runtimes:
            continue
        if about["namespace"] not in removed.namespaces:
            rows = (body.get("status") or {}).get("conditions") or ()
            ended = any(row["type"] in ("Complete", "Failed") and row["status"] == "True" for row in rows)
            yield RuntimeUse(about["namespace"], about["name"], reference["name"], ended)


def on_ending_nodes(state: State, steps: Iterable[PlannedStep], ended: Sequence[str]) -> Iterator[JobEffect]:
    """Jobs on pools whose nodes end by the lines of `drains`, each of which begins with a node group."""
    groups = {line.partition(":")[0] for line in ended}
    pools = {flavor_name(pool): step.name for step in steps if step.name in groups and (pool := _pool(step))}
    for job in state.jobs:
        for flavor in sorted({flavor for flavor, _ in job.assigned} & pools.keys()):
            if job.holding:
                yield JobEffect(job, STOPS, f"nodes of {pools[flavor]} end")


def _flavors(queue: Any) -> Iterator[str]:
    for group in queue["spec"]["resourceGroups"]:
        yield from (row["name"] for row in group["flavors"])


def _pool(step: PlannedStep) -> str:
    """The pool of a node group's nodes."""
    for inputs in (step.before, step.inputs):
        labels = inputs.get("labels") or (inputs.get("nodeConfig") or {}).get("labels") or {}
        if POOL_LABEL in labels:
            return str(labels[POOL_LABEL])
    return ""
