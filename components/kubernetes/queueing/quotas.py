"""Guaranteed quota of teams by pool: the arithmetic behind the queues, without Kubernetes objects."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NotRequired, TypedDict

from components.kubernetes.capacity.args import WindowArgs
from components.kubernetes.offers import NodeOffer, beside, counted
from components.kubernetes.people import SubjectArgs

CPU = "cpu"
MEMORY = "memory"
GPU = "nvidia.com/gpu"

# Whole units of each resource: cores, GiB, devices.
Resources = Mapping[str, int]


class FlavorArgs(NodeOffer):
    """A pool as a kind of node for jobs, with the resources of each node."""

    name: str
    """Name of the pool."""
    node_labels: Mapping[str, str]
    """Labels of every node of the pool; jobs admitted to the flavor are bound to them."""
    max_nodes: int
    """Nodes the pool can grow to."""
    usd_per_hour: NotRequired[float]
    """Price of one more node per hour; default: unknown, tried after all known ones."""
    preference: NotRequired[int]
    """Jobs try flavors of a lower number first, at any price; default 0. Among equals those without GPUs come
    first, then the cheapest."""
    own_queue: NotRequired[bool]
    """Whether jobs get the flavor only through the queue of its name; default False."""
    teams: NotRequired[Sequence[str]]
    """Names of the teams with a queue for it, which needs `own_queue`. Default: all. Where pods take turns on
    its GPUs, naming several states that they share memory and faults."""
    topology: NotRequired[Sequence[str]]
    """Node labels from the widest network layer to the narrowest, for topology-aware placement."""
    provisioning_class: NotRequired[str]
    """The class of ProvisioningRequests with which all nodes of a job are requested at once, before it
    starts. Default: nodes are added as pods wait for them."""
    taint: NotRequired[str]
    """A further taint of the nodes (value `true`, NoSchedule), which the queue lets jobs of this flavor
    tolerate. Default: none."""
    window: NotRequired[WindowArgs]
    """Times at which jobs may use it. Default: any time. A deactivated job tries the same flavor again, and
    never the next one, so such a flavor has a queue of its own."""
    fixed_size: NotRequired[bool]
    """True when all `nodes` always exist. Topology-aware placement needs it: it only sees nodes that exist,
    so a job for a pool that is scaled to zero would wait forever."""


class TeamArgs(TypedDict):
    """One tenant of the cluster."""

    name: str
    """Name of the team."""
    weight: float
    """Its share relative to the others' weights, above 0."""
    gpus: NotRequired[Mapping[str, int]]
    """GPUs guaranteed per flavor name, as pods count them; other flavors are shared out by weight."""
    budgeted: NotRequired[bool]
    """Whether its jobs wait while they do not fit the month's budget (`components.kubernetes.accounting`);
    default False."""
    people: NotRequired[Sequence[SubjectArgs]]
    """Its members. Default: the group of its name (`infra.naming.team_group`)."""


class GateArgs(TypedDict):
    """Requirements of the deploy validation, so that it can be admitted at any time."""

    nodes: Mapping[str, int]
    """Whole nodes it takes, by the name of their flavor; empty where deployments are not validated."""
    scheduled: NotRequired[bool]
    """Whether the same validation also runs on a schedule, on idle quota; default False."""
    drain: NotRequired[bool]
    """Whether it stops jobs that borrowed its nodes; default False: it waits for them to end."""


@dataclass(frozen=True)
class Allotment:
    """Quota per flavor name and resource; the parts add up to exactly the capacity of the pools."""

    gate: Mapping[str, Resources]
    teams: Mapping[str, Mapping[str, Resources]]
    """By team name, as given."""
    shared: Mapping[str, Resources]
    """Guaranteed to no team and lent to all: the remainder of weights and whole devices."""


def of_a_pod(flavor: FlavorArgs) -> int:
    """Most GPUs that one pod gets on a node of the flavor."""
    return min(flavor["gpus"], flavor.get("gpus_per_pod", flavor["gpus"]))


def per_node(flavor: FlavorArgs) -> Resources:
    """Resources of one node of the flavor, sidecars included: a queue counts these too."""
    cpu, memory_gib = beside(flavor)
    return {
        CPU: flavor["cpu"] + cpu,
        MEMORY: flavor["memory_gib"] + memory_gib,
        GPU: flavor["gpus"],
        **counted(flavor.get("fabric")),
    }


def capacity(flavor: FlavorArgs) -> Resources:
    """Resources of the flavor at its largest."""
    return {name: flavor["max_nodes"] * amount for name, amount in per_node(flavor).items()}


def split(total: int, weights: Sequence[float]) -> list[int]:
    """Whole shares of `total` in proportion to `weights` (all above 0), by largest remainder, earlier first.

    The shares add up to `total`, and each is within one unit of the exact proportion.
    """
    if not weights:
        return []
    scale = math.fsum(weights)
    exact = [total * weight / scale for weight in weights]
    shares = [math.floor(value) for value in exact]
    by_remainder = sorted(range(len(weights)), key=lambda index: (shares[index] - exact[index], index))
    # Rounding errors of huge totals could leave more units than weights; cycling hands out every one.
    for turn in range(total - sum(shares)):
        shares[by_remainder[turn % len(weights)]] += 1
    return shares


def allot(flavors: Sequence[FlavorArgs], teams: Sequence[TeamArgs], gate: GateArgs) -> Allotment:
    """Divide every flavor among the gate, the teams and the shared rest.

    GPUs (cores, on a flavor without) are divided; the other resources follow in proportion, so that a team
    with half the GPUs also gets half the memory and half the network devices.
    """
    owed: dict[str, dict[str, Resources]] = {team["name"]: {} for team in teams}
    reserved: dict[str, Resources] = {}
    shared: dict[str, Resources] = {}
    for flavor in flavors:
        name = flavor["name"]
        whole = capacity(flavor)
        of_gate = gate["nodes"].get(name, 0)
        reserved[name] = {key: of_gate * amount for key, amount in per_node(flavor).items()}
        free = {key: whole[key] - reserved[name][key] for key in whole}
        for team, units in zip(teams, _units(flavor, teams, free), strict=True):
            owed[team["name"]][name] = _in_proportion(free, _unit(flavor), units)
        shared[name] = {key: free[key] - sum(owed[team["name"]][name][key] for team in teams) for key in free}
    return Allotment(gate=reserved, teams=owed, shared=shared)


def _unit(flavor: FlavorArgs) -> str:
    return GPU if flavor["gpus"] else CPU


def may_use(flavor: FlavorArgs, team: TeamArgs) -> bool:
    """Return whether a team has a queue for the flavor."""
    return team["name"] in flavor.get("teams", [team["name"]])


def _units(flavor: FlavorArgs, teams: Sequence[TeamArgs], free: Resources) -> list[int]:
    """Each team's units of the divided resource: its guarantee, else its share of the rest."""
    promised = [_promised(flavor, team) for team in teams]
    left = free[_unit(flavor)] - sum(units for units in promised if units is not None)
    by_weight = iter(
        split(left, [team["weight"] for team, units in zip(teams, promised, strict=True) if units is None])
    )
    return [next(by_weight) if units is None else units for units in promised]


def _promised(flavor: FlavorArgs, team: TeamArgs) -> int | None:
    """Units that a team has whatever its weight; None: by weight."""
    if not may_use(flavor, team):
        return 0
    return team.get("gpus", {}).get(flavor["name"]) if flavor["gpus"] else None


def _in_proportion(free: Resources, unit: str, units: int) -> Resources:
    total = free[unit]
    return {key: amount * units // total if total else 0 for key, amount in free.items()}
