"""The objects Kueue is set up with, as plain data (API kueue.x-k8s.io/v1beta2)."""

import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from components.kubernetes.offers import counted
from components.kubernetes.queueing.checks import checks, is_budgeted, strategy
from components.kubernetes.queueing.quotas import (
    CPU,
    GPU,
    MEMORY,
    Allotment,
    FlavorArgs,
    GateArgs,
    Resources,
    TeamArgs,
    allot,
)
from infra.catalog.kubernetes.kueue import DEFAULT_QUEUE
from infra.naming import flavor_name, gate_queue, pool_queue, team_namespace

API_VERSION = "kueue.x-k8s.io/v1beta2"
COHORT = "trainstack"
# Scheduled validations: in the gate's namespace, in a queue that owns nothing.
SCHEDULE_QUEUE = "smoke-schedule"
GATE_NAMESPACE = "trainstack-smoke"
TEAM_LABEL = "trainstack.dev/team"
QUEUE_NAME_LABEL = "kueue.x-k8s.io/queue-name"
PRIORITY_LABEL = "kueue.x-k8s.io/priority-class"
# The taint of every node with GPUs.
GPU_TAINT = {"key": GPU, "value": "present", "effect": "NoSchedule"}
# Kueue tries flavors in their order and stops at the first one that it may (pkg/scheduler/flavorassigner,
# `findFlavorForPodSets` and `shouldTryNextFlavor`, v0.19.2). The cheapest comes first, so a job borrows it
# when it is idle rather than boot an expensive node of its own team's: a borrowed node costs no more. It goes
# on to the next flavor before it preempts: no job is stopped for a price while something is idle.
FUNGIBILITY = {"whenCanBorrow": "MayStopSearch", "whenCanPreempt": "TryNextFlavor"}
VALIDATION, BACKGROUND = "validation", "background"

Body = dict[str, Any]

_LAYERS = (
    ("Topology", "WorkloadPriorityClass", "ProvisioningRequestConfig"),
    ("ResourceFlavor", "AdmissionCheck"),
    ("Cohort",),
    ("ClusterQueue",),
    ("LocalQueue",),
)


@dataclass(frozen=True)
class Priority:
    """A class of work: who goes first, and who makes way within a team's own queue."""

    name: str
    value: int
    description: str


PRIORITIES = (
    Priority("production", 1_000, "Runs whose result goes to production or has a deadline."),
    # 0 is what Kueue gives a job without a class (pkg/constants/constants.go, `DefaultPriority`). The feature
    # WorkloadPriorityClassDefaulting, by which it would look for a class of this name, is alpha in 0.19.
    Priority("default", 0, "What a job has that names no class."),
    Priority("sweep", -10, "Sweeps and other work that checkpoints and can wait; makes way first."),
    # It owns its quota, so no job takes it away. It takes that back only from what ranks below.
    Priority(VALIDATION, -20, "The validation that gates a deploy; waits for the work of teams."),
    Priority(BACKGROUND, -30, "Validations on a schedule: on what is idle; makes way for everything."),
)


def flavors(args: Sequence[FlavorArgs]) -> Iterator[Body]:
    """One ResourceFlavor a pool, after the Topology it refers to, if any."""
    seen: set[str] = set()
    for flavor in args:
        levels = flavor.get("topology")
        spec: Body = {"nodeLabels": dict(flavor["node_labels"])}
        if flavor["gpus"]:
            # A job is given GPU nodes only when its own pod template tolerates the taint, so one without GPUs
            # waits rather than boot one, also where no other pool exists. Tolerations of the flavor would
            # undo that: Kueue counts them as the job's, and writes them into every pod that it admits.
            spec["nodeTaints"] = [GPU_TAINT]
        if "taint" in flavor:
            # Whoever is given such nodes asked for them through the queue, so nobody has to say it twice.
            own = {"key": flavor["taint"], "operator": "Equal", "value": "true", "effect": "NoSchedule"}
            spec["tolerations"] = [own]
        if levels:
            topology = _topology(levels)
            spec["topologyName"] = topology["metadata"]["name"]
            if spec["topologyName"] not in seen:
                seen.add(spec["topologyName"])
                yield topology
        yield _object("ResourceFlavor", {"name": flavor_name(flavor["name"])}, spec)


def _topology(levels: Sequence[str]) -> Body:
    # Levels cannot be changed in place: the name carries them, so that other levels are another object.
    digest = hashlib.sha256("\n".join(levels).encode()).hexdigest()[:8]
    return _object(
        "Topology", {"name": f"network-{digest}"}, {"levels": [{"nodeLabel": key} for key in levels]}
    )


def priority_classes() -> Iterator[Body]:
    """The WorkloadPriorityClasses, highest first."""
    for priority in PRIORITIES:
        yield {
            "apiVersion": API_VERSION,
            "kind": "WorkloadPriorityClass",
            "metadata": {"name": priority.name},
            "value": priority.value,
            "description": priority.description,
        }


def queues(args: Sequence[FlavorArgs], teams: Sequence[TeamArgs], gate: GateArgs) -> Iterator[Body]:
    """The cohort, and one ClusterQueue with one LocalQueue for each pool of the gate and for every team.

    A team has one more of both for each flavor with a queue of its own; its weight counts in each apart.

    A queue of the gate owns the quota that the validation of its pool needs, lends it out while none runs,
    and borrows nothing. The validation waits for the jobs of teams that borrowed it, and nothing more is lent
    meanwhile; with `drain` it takes its quota back from them. No team loses what it was promised, either way.
    """
    allotment = allot(args, teams, gate)
    yield _object("Cohort", {"name": COHORT}, {"resourceGroups": _groups(args, allotment.shared)})
    for flavor in args:
        if flavor["name"] in gate["nodes"]:
            name = gate_queue(flavor["name"])
            yield _gate_queue(name, flavor, allotment, drain=gate.get("drain", False))
            yield _local_queue(GATE_NAMESPACE, name, name)
    if gate.get("scheduled", False):
        yield _schedule_queue(args, allotment)
        yield _local_queue(GATE_NAMESPACE, SCHEDULE_QUEUE, SCHEDULE_QUEUE)
    for team in teams:
        namespace = team_namespace(team["name"])
        yield _team_queue(namespace, [flavor for flavor in args if not _alone(flavor)], team, allotment)
        yield _local_queue(namespace, DEFAULT_QUEUE, namespace)
        for flavor in filter(_alone, args):
            name = pool_queue(team["name"], flavor["name"])
            yield _team_queue(name, [flavor], team, allotment)
            yield _local_queue(namespace, flavor_name(flavor["name"]), name)


def _alone(flavor: FlavorArgs) -> bool:
    return flavor.get("own_queue", False)


def _gate_queue(name: str, flavor: FlavorArgs, allotment: Allotment, *, drain: bool) -> Body:
    groups = _groups([flavor], allotment.gate)
    for group in groups:
        for resource in group["flavors"][0]["resources"]:
            resource["borrowingLimit"] = "0"
    spec = {
        "cohortName": COHORT,
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": GATE_NAMESPACE}},
        # A run that waits at the head keeps what becomes idle in every cycle of the scheduler. With
        # BestEffortFIFO it does so in the first one only, and the next smaller job of a team takes it
        # (pkg/scheduler/scheduler.go, `reserveCapacityForUnreclaimablePreempt`, and
        # pkg/cache/queue/cluster_queue.go, `requeueIfNotPresent`, v0.19.2).
        "queueingStrategy": "StrictFIFO",
        # From what ranks below: validations on a schedule, and whatever else says that it is background work.
        "preemption": {
            "withinClusterQueue": "Never",
            "reclaimWithinCohort": "Any" if drain else "LowerPriority",
        },
        **strategy([flavor]),
        "resourceGroups": groups,
    }
    return _object("ClusterQueue", {"name": name}, spec)


def _schedule_queue(args: Sequence[FlavorArgs], allotment: Allotment) -> Body:
    """A queue that owns nothing and only borrows what lies idle, so that its owner can take it back.

    Weight 0 is an infinite share: among all borrowers, its jobs are preempted first (Kueue
    apis/kueue/v1beta2/fairsharing_types.go, v0.19.2). It preempts no job itself.
    """
    nothing = {name: dict.fromkeys(quota, 0) for name, quota in allotment.gate.items()}
    spec = {
        "cohortName": COHORT,
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": GATE_NAMESPACE}},
        "queueingStrategy": "BestEffortFIFO",
        "preemption": {"withinClusterQueue": "Never", "reclaimWithinCohort": "Never"},
        "fairSharing": {"weight": "0"},
        **strategy(args),
        "resourceGroups": _groups(args, nothing),
    }
    return _object("ClusterQueue", {"name": SCHEDULE_QUEUE}, spec)


def _team_queue(name: str, args: Sequence[FlavorArgs], team: TeamArgs, allotment: Allotment) -> Body:
    spec = {
        "cohortName": COHORT,
        "namespaceSelector": {"matchLabels": {TEAM_LABEL: team_namespace(team["name"])}},
        "queueingStrategy": "BestEffortFIFO",
        "flavorFungibility": FUNGIBILITY,
        # Lent quota comes back when its owner asks, whatever the borrower's priority: else nothing would be
        # guaranteed. Among a team's own jobs the priority class decides.
        "preemption": {"withinClusterQueue": "LowerPriority", "reclaimWithinCohort": "Any"},
        "fairSharing": {"weight": f"{team['weight']:.3f}".rstrip("0").rstrip(".")},
        **strategy(args, budgeted=is_budgeted(team)),
        "resourceGroups": _groups(args, allotment.teams[team["name"]]),
    }
    return _object("ClusterQueue", {"name": name}, spec)


def _local_queue(namespace: str, name: str, cluster_queue: str) -> Body:
    return _object("LocalQueue", {"name": name, "namespace": namespace}, {"clusterQueue": cluster_queue})


def _groups(args: Sequence[FlavorArgs], quota: Mapping[str, Resources]) -> list[Body]:
    """One resource group over the flavors: a job gets all its resources from one pool.

    Resources that no job may ask for are left out; one that is asked for and not covered keeps a job waiting.
    """
    devices = dict.fromkeys(name for flavor in args for name in counted(flavor.get("fabric")))
    covered = [CPU, MEMORY, GPU, *devices]
    return [
        {
            "coveredResources": covered,
            "flavors": [
                {
                    "name": flavor_name(flavor["name"]),
                    "resources": [
                        {"name": key, "nominalQuota": _quantity(key, quota[flavor["name"]].get(key, 0))}
                        for key in covered
                    ],
                }
                for flavor in sorted(args, key=_turn)
            ],
        }
    ]


def _turn(flavor: FlavorArgs) -> tuple[int, bool, float]:
    """Where a flavor stands in the order in which a job tries them; what ties stays as declared."""
    return flavor.get("preference", 0), flavor["gpus"] > 0, flavor.get("usd_per_hour", math.inf)


def _quantity(resource: str, amount: int) -> str:
    return f"{amount}Gi" if resource == MEMORY else str(amount)


def _object(kind: str, metadata: Body, spec: Body) -> Body:
    return {"apiVersion": API_VERSION, "kind": kind, "metadata": metadata, "spec": spec}


def layers(args: Sequence[FlavorArgs], teams: Sequence[TeamArgs], gate: GateArgs) -> Iterator[list[Body]]:
    """Every object, in layers: each refers only to objects of layers before it.

    Finalizers hold an object that is still referred to, so deletion must go through the layers backwards.
    """
    bodies = [
        *flavors(args),
        *checks(args, teams),
        *priority_classes(),
        *queues(args, teams, gate),
    ]
    for kinds in _LAYERS:
        yield [body for body in bodies if body["kind"] in kinds]
