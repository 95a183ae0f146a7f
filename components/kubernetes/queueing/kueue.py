"""The objects of Kueue's configuration, as plain data (API kueue.x-k8s.io/v1beta2)."""

import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agents.shared import kueue
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
    may_use,
)
from infra.catalog.kubernetes.kueue import DEFAULT_QUEUE, SAMPLES_QUEUE
from infra.naming import flavor_name, gate_queue, pool_queue, team_namespace

API_VERSION = kueue.VERSION
COHORT = "trainstack"
# Scheduled validations: in the gate's namespace, in a queue that owns nothing.
SCHEDULE_QUEUE = "smoke-schedule"
GATE_NAMESPACE = "trainstack-smoke"
TEAM_LABEL = "trainstack.dev/team"
# Annotation of a team's namespace: the team's own name, which members read there, and cannot change.
TEAM_NAME = "trainstack.dev/team-name"
# Annotation of a flavor: namespaces of the teams that its pool is for.
TEAMS = "trainstack.dev/teams"
QUEUE_NAME_LABEL, PRIORITY_LABEL = kueue.QUEUE_NAME_LABEL, kueue.PRIORITY_LABEL
# The taint of every node with GPUs.
GPU_TAINT = {"key": GPU, "value": "present", "effect": "NoSchedule"}
# Kueue tries flavors in their order and stops at the first usable one (pkg/scheduler/flavorassigner,
# `findFlavorForPodSets` and `shouldTryNextFlavor`, v0.19.2). The cheapest comes first, so a job borrows it
# when it is idle rather than boot an expensive node of its own team's: a borrowed node costs no more. It
# tries the next flavor before it preempts: no job is stopped for a price while a node is idle.
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
    """A class of work: order in the queue, and preemption within a team's own queue."""

    name: str
    value: int
    description: str
    internal: bool = False
    """Of the stack's own jobs."""


PRIORITIES = (
    Priority("production", 1_000, "Runs for production, or with a deadline."),
    # 0 is Kueue's value for a job without a class (pkg/constants/constants.go, `DefaultPriority`). The
    # feature WorkloadPriorityClassDefaulting, with which it would use a class of this name, is alpha in 0.19.
    Priority("default", 0, "Jobs that name no class."),
    Priority("sweep", -10, "Sweeps and other work that checkpoints and can wait; preempted first."),
    # It owns its quota, so no job can keep it. It reclaims that only from lower classes.
    Priority(VALIDATION, -20, "The validation that gates a deploy; waits for the work of teams.", True),
    Priority(BACKGROUND, -30, "Validations on a schedule: on idle nodes; preempted by all others.", True),
)


def flavors(args: Sequence[FlavorArgs]) -> Iterator[Body]:
    """One ResourceFlavor for each pool, after the Topology it refers to, if any."""
    seen: set[str] = set()
    for flavor in args:
        levels = flavor.get("topology")
        spec: Body = {"nodeLabels": dict(flavor["node_labels"])}
        if flavor["gpus"]:
            # A job gets GPU nodes only when its own pod template tolerates the taint, so one without GPUs
            # waits rather than boot one, also where no other pool exists. Tolerations of the flavor would
            # prevent that: Kueue counts them as the job's, and writes them into every pod that it admits. The
            # API server adds the toleration to templates that request GPUs (`defaults.py`).
            spec["nodeTaints"] = [GPU_TAINT]
        if "taint" in flavor:
            # Jobs requested such nodes through the queue, so they need no toleration of their own.
            own = {"key": flavor["taint"], "operator": "Equal", "value": "true", "effect": "NoSchedule"}
            spec["tolerations"] = [own]
        if levels:
            topology = _topology(levels)
            spec["topologyName"] = topology["metadata"]["name"]
            if spec["topologyName"] not in seen:
                seen.add(spec["topologyName"])
                yield topology
        metadata: Body = {"name": flavor_name(flavor["name"])}
        if "teams" in flavor:
            metadata["annotations"] = {TEAMS: ",".join(map(team_namespace, flavor["teams"]))}
        yield _object("ResourceFlavor", metadata, spec)


def _topology(levels: Sequence[str]) -> Body:
    # Levels cannot be changed in place: the name carries them, so that other levels are another object.
    digest = hashlib.sha256("\n".join(levels).encode()).hexdigest()[:8]
    return _object(
        "Topology", {"name": f"network-{digest}"}, {"levels": [{"nodeLabel": key} for key in levels]}
    )


def priority_classes() -> Iterator[Body]:
    """The WorkloadPriorityClasses, highest first."""
    for priority in PRIORITIES:
        labels = {kueue.INTERNAL_LABEL: kueue.INTERNAL} if priority.internal else {}
        yield {
            "apiVersion": API_VERSION,
            "kind": "WorkloadPriorityClass",
            "metadata": {"name": priority.name, "labels": labels},
            "value": priority.value,
            "description": priority.description,
        }


def queues(args: Sequence[FlavorArgs], teams: Sequence[TeamArgs], gate: GateArgs) -> Iterator[Body]:
    """The cohort, and one ClusterQueue with one LocalQueue for each pool of the gate and for every team.

    A team has one more of both for each flavor with a queue of its own that it may use; its weight applies in
    each separately.

    A queue of the gate owns the quota that the validation of its pool needs, lends it out while none runs,
    and borrows nothing. The validation waits for the jobs of teams that borrowed it, and no more is lent
    meanwhile; with `drain` it reclaims its quota from them. Either way no team loses its guarantee.
    """
    allotment = allot(args, teams, gate)
    yield _object("Cohort", {"name": COHORT}, {"resourceGroups": _groups(args, allotment.shared)})
    for flavor in args:
        if flavor["name"] in gate["nodes"]:
            name = gate_queue(flavor["name"])
            yield _gate_queue(name, flavor, allotment, drain=gate.get("drain", False))
            yield _local_queue(GATE_NAMESPACE, name, name)
    if gate.get("scheduled", False):
        # Validations measure whole GPUs.
        yield _schedule_queue([flavor for flavor in args if not flavor.get("shared", False)], allotment)
        yield _local_queue(GATE_NAMESPACE, SCHEDULE_QUEUE, SCHEDULE_QUEUE)
    for team in teams:
        namespace = team_namespace(team["name"])
        yield _team_queue(namespace, [flavor for flavor in args if not _alone(flavor)], team, allotment)
        for queue in (DEFAULT_QUEUE, SAMPLES_QUEUE):
            yield _local_queue(namespace, queue, namespace)
        for flavor in (one for one in args if _alone(one) and may_use(one, team)):
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
        # A run that waits at the head reserves what becomes idle in every cycle of the scheduler. With
        # BestEffortFIFO it does so in the first one only, and the next smaller job of a team gets it
        # (pkg/scheduler/scheduler.go, `reserveCapacityForUnreclaimablePreempt`, and
        # pkg/cache/queue/cluster_queue.go, `requeueIfNotPresent`, v0.19.2).
        "queueingStrategy": "StrictFIFO",
        # From lower classes: validations on a schedule, and other background work.
        "preemption": {
            "withinClusterQueue": "Never",
            "reclaimWithinCohort": "Any" if drain else "LowerPriority",
        },
        **strategy([flavor]),
        "resourceGroups": groups,
    }
    return _object("ClusterQueue", {"name": name}, spec)


def _schedule_queue(args: Sequence[FlavorArgs], allotment: Allotment) -> Body:
    """A queue without quota that only borrows idle quota, so that its owner can reclaim it.

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
        # Lent quota is reclaimed by its owner, whatever the borrower's priority: else it would be no
        # guarantee. Among a team's own jobs the priority class decides.
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

    Resources that no job may request are left out; a request for an uncovered one keeps a job waiting.
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
    """Sort key of a flavor in the order in which a job tries them; ties stay as declared."""
    return flavor.get("preference", 0), flavor["gpus"] > 0, flavor.get("usd_per_hour", math.inf)


def _quantity(resource: str, amount: int) -> str:
    return f"{amount}Gi" if resource == MEMORY else str(amount)


def _object(kind: str, metadata: Body, spec: Body) -> Body:
    return {"apiVersion": API_VERSION, "kind": kind, "metadata": metadata, "spec": spec}


def layers(args: Sequence[FlavorArgs], teams: Sequence[TeamArgs], gate: GateArgs) -> Iterator[list[Body]]:
    """Every object, in layers: each refers only to objects of layers before it.

    Finalizers hold an object that is still referred to, so deletion must go through the layers backwards.
    """
    bodies = [*flavors(args), *checks(args, teams), *priority_classes(), *queues(args, teams, gate)]
    for kinds in _LAYERS:
        yield [body for body in bodies if body["kind"] in kinds]
