"""The objects Kueue is set up with, as plain data (API kueue.x-k8s.io/v1beta2)."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

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
from infra.naming import flavor_name, team_namespace

API_VERSION = "kueue.x-k8s.io/v1beta2"
COHORT = "trainstack"
GATE_QUEUE = "smoke"
# Scheduled validations: in the gate's namespace, in a queue that owns nothing.
SCHEDULE_QUEUE = "smoke-schedule"
GATE_NAMESPACE = "trainstack-smoke"
TEAM_LABEL = "trainstack.dev/team"
# Kueue gives a job without a queue label the LocalQueue of this name, and a job without a priority label the
# priority class of this name (pkg/controller/constants/constants.go), so the easy way is the accounted way.
DEFAULT = "default"
QUEUE_NAME_LABEL = "kueue.x-k8s.io/queue-name"
PRIORITY_LABEL = "kueue.x-k8s.io/priority-class"
GPU_TOLERATION = {"key": GPU, "operator": "Exists", "effect": "NoSchedule"}

Body = dict[str, Any]

_LAYERS = (
    ("Topology", "WorkloadPriorityClass"),
    ("ResourceFlavor",),
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
    Priority("validation", 10_000, "The validation that gates a deploy; short, and rarely run."),
    Priority("production", 1_000, "Runs whose result goes to production or has a deadline."),
    Priority(DEFAULT, 100, "What a job gets that names no class."),
    Priority("sweep", 10, "Sweeps and other work that checkpoints and can wait; makes way first."),
    Priority("background", 1, "Validations on a schedule: on what is idle; makes way for everything."),
)


def flavors(args: Sequence[FlavorArgs]) -> Iterator[Body]:
    """One ResourceFlavor a pool, after the Topology it refers to, if any."""
    seen: set[str] = set()
    for flavor in args:
        levels = flavor.get("topology")
        spec: Body = {"nodeLabels": dict(flavor["node_labels"])}
        if flavor["gpus"]:
            # Topology-aware placement checks a job's own tolerations and the flavor's, not those that an
            # admission plugin adds to the pods later.
            spec["tolerations"] = [GPU_TOLERATION]
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
    """The cohort, and one ClusterQueue with one LocalQueue for the gate and for every team.

    The gate owns the quota that one validation needs and lends it out while none runs. It takes it back
    (`reclaimWithinCohort: Any`) from any borrower, so that a deploy never waits for a training run to
    end and no team loses what it was promised. It borrows nothing itself. Owned quota is the only way: no
    priority lets a job preempt in a queue that stays within its own quota.
    """
    allotment = allot(args, teams, gate)
    yield _object("Cohort", {"name": COHORT}, {"resourceGroups": _groups(args, allotment.shared)})
    yield _gate_queue(args, allotment)
    yield _local_queue(GATE_NAMESPACE, GATE_QUEUE, GATE_QUEUE)
    if gate.get("scheduled", False):
        yield _schedule_queue(args, allotment)
        yield _local_queue(GATE_NAMESPACE, SCHEDULE_QUEUE, SCHEDULE_QUEUE)
    for team in teams:
        name = team_namespace(team["name"])
        yield _team_queue(args, team, allotment)
        yield _local_queue(name, DEFAULT, name)


def _gate_queue(args: Sequence[FlavorArgs], allotment: Allotment) -> Body:
    groups = _groups(args, allotment.gate)
    for group in groups:
        for flavor in group["flavors"]:
            for resource in flavor["resources"]:
                resource["borrowingLimit"] = "0"
    spec = {
        "cohortName": COHORT,
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": GATE_NAMESPACE}},
        "preemption": {"withinClusterQueue": "Never", "reclaimWithinCohort": "Any"},
        "resourceGroups": groups,
    }
    return _object("ClusterQueue", {"name": GATE_QUEUE}, spec)


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
        "resourceGroups": _groups(args, nothing),
    }
    return _object("ClusterQueue", {"name": SCHEDULE_QUEUE}, spec)


def _team_queue(args: Sequence[FlavorArgs], team: TeamArgs, allotment: Allotment) -> Body:
    spec = {
        "cohortName": COHORT,
        "namespaceSelector": {"matchLabels": {TEAM_LABEL: team_namespace(team["name"])}},
        "queueingStrategy": "BestEffortFIFO",
        # Lent quota comes back when its owner asks, whatever the borrower's priority: else nothing would be
        # guaranteed. Among a team's own jobs the priority class decides.
        "preemption": {"withinClusterQueue": "LowerPriority", "reclaimWithinCohort": "Any"},
        "fairSharing": {"weight": f"{team['weight']:.3f}".rstrip("0").rstrip(".")},
        "resourceGroups": _groups(args, allotment.teams[team["name"]]),
    }
    return _object("ClusterQueue", {"name": team_namespace(team["name"])}, spec)


def _local_queue(namespace: str, name: str, cluster_queue: str) -> Body:
    return _object("LocalQueue", {"name": name, "namespace": namespace}, {"clusterQueue": cluster_queue})


def _groups(args: Sequence[FlavorArgs], quota: Mapping[str, Resources]) -> list[Body]:
    """One resource group over all flavors: a job gets all its resources from one pool.

    A pool without GPUs comes first, so that work without GPUs does not take a GPU node. Resources that no job
    may ask for are left out; one that is asked for and not covered keeps a job waiting.
    """
    devices = dict.fromkeys(flavor["fabric"]["resource"] for flavor in args if "fabric" in flavor)
    covered = [CPU, MEMORY, GPU, *devices]
    ordered = sorted(args, key=lambda flavor: flavor["gpus"] > 0)
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
                for flavor in ordered
            ],
        }
    ]


def _quantity(resource: str, amount: int) -> str:
    return f"{amount}Gi" if resource == MEMORY else str(amount)


def _object(kind: str, metadata: Body, spec: Body) -> Body:
    return {"apiVersion": API_VERSION, "kind": kind, "metadata": metadata, "spec": spec}


def layers(args: Sequence[FlavorArgs], teams: Sequence[TeamArgs], gate: GateArgs) -> Iterator[list[Body]]:
    """Every object, in layers: each refers only to objects of layers before it.

    Finalizers hold an object that is still referred to, so deletion must go through the layers backwards.
    """
    bodies = [*flavors(args), *priority_classes(), *queues(args, teams, gate)]
    for kinds in _LAYERS:
        yield [body for body in bodies if body["kind"] in kinds]
