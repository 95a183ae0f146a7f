"""Checks of shares, names and queues of Kueue."""

from collections.abc import Callable, Iterator, Sequence

from infra.catalog.kubernetes import limits
from infra.errors import Problem, did_you_mean

HOSTNAME_LABEL, ZONE_LABEL = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
# Kueue gives a job without a queue label the LocalQueue of this name (pkg/controller/constants/constants.go,
# v0.19.2), so that such jobs are accounted, too.
DEFAULT_QUEUE = "default"
# The queue that samples of Kueue's documentation name: another name of the queue of jobs without one.
SAMPLES_QUEUE = "user-queue"
# From this minor version of Kubernetes on, MutatingAdmissionPolicy is on by default, with which jobs get what
# they need for GPU nodes (apiserver v0.36.2 pkg/features/kube_features.go). Managed clusters cannot turn on
# features of versions before.
LEAST_KUBERNETES = 36
# The priority classes of team jobs; a job that names none is `default`.
PRIORITIES = ("production", "default", "sweep")


def name_problems(path: str, names: Sequence[str], become: Callable[[str], str]) -> Iterator[Problem]:
    """Names of pools or teams stay different once `become` turns them into Kubernetes names (`infra.naming`).

    `path` is that of the list; problems are at `path[index].name`.
    """
    seen: dict[str, str] = {}
    for index, name in enumerate(names):
        at = f"{path}[{index}].name"
        try:
            label = become(name)
        except ValueError:
            rule, fix = "holds no letter or digit", "Choose another name."
            yield Problem(at, name, rule, fix, code="name-without-letters")
            continue
        other = seen.get(label)
        if other is None:
            seen[label] = name
        else:
            rule = "the name is taken" if other == name else f"becomes {label!r}, as {other!r} does"
            fix = "Choose names that differ in their letters or digits."
            yield Problem(at, name, rule, fix, code="name-taken")


def version_problems(path: str, version: str) -> Iterator[Problem]:
    """The API server can add to jobs what they need for GPU nodes."""
    if int(version.partition(".")[2]) < LEAST_KUBERNETES:
        rule = (
            f"jobs with GPUs would never start: tolerations are added from Kubernetes 1.{LEAST_KUBERNETES} on"
        )
        fix = (
            f"Set 1.{LEAST_KUBERNETES}. A cluster on an earlier one goes there, one minor version per `up`, "
            "with the release of trainstack that made it."
        )
        yield Problem(path, version, rule, fix, code="kubernetes-version-without-mutations")


def own_queue_problems(path: str, pools: Sequence[tuple[str, bool]]) -> Iterator[Problem]:
    """Not every pool has a queue of its own; `pools` are (name, whether it has one).

    `path` is that of the list; problems are at `path` and at `path[index].name`.
    """
    if pools and all(own for _, own in pools):
        rule = "every pool has a queue of its own: jobs without a queue label could run nowhere"
        fix = "Leave one pool without a queue of its own."
        yield Problem(path, len(pools), rule, fix, code="every-pool-has-own-queue")
    for index, (name, own) in enumerate(pools):
        if own and name in (DEFAULT_QUEUE, SAMPLES_QUEUE):
            rule = "is a queue of jobs that select no pool"
            fix = "Choose another name, or no queue of its own."
            yield Problem(f"{path}[{index}].name", name, rule, fix, code="queue-name-reserved")


def pool_team_problems(
    path: str, teams: Sequence[str], known: Sequence[str], *, own_queue: bool
) -> Iterator[Problem]:
    """The `teams` that alone may use the pool at `path` are `known`, and have a queue for it."""
    if not own_queue:
        rule = "every team may use a pool without a queue of its own"
        fix = f"Set {path}.own_queue to true, or leave the teams out."
        against, code = f"{path}.own_queue", "pool-teams-without-own-queue"
        yield Problem(f"{path}.teams", [*teams], rule, fix, against=against, code=code)
    for index, name in enumerate(teams):
        at = f"{path}.teams[{index}]"
        if name not in known:
            fix = did_you_mean(name, known, f"Teams are {', '.join(known)}.")
            yield Problem(at, name, "is not a team of the stack", fix, against="teams", code="unknown-team")
        elif name in teams[:index]:
            yield Problem(
                at, name, "the team is named twice", "Name each team once.", code="team-named-twice"
            )


def topology_problems(path: str, levels: Sequence[str], *, fixed_size: bool) -> Iterator[Problem]:
    """The network levels of a pool, as node labels from the widest to the narrowest."""
    yield from limits["kueue_levels"].problems(path, len(levels))
    if len(set(levels)) < len(levels):
        rule, fix = "a level is named twice", "Name each level once."
        yield Problem(path, list(levels), rule, fix, code="level-named-twice")
    if HOSTNAME_LABEL in levels[:-1]:
        rule, fix = f"{HOSTNAME_LABEL} is the narrowest level", "Put it last."
        yield Problem(path, list(levels), rule, fix, code="hostname-level-not-last")
    if not fixed_size:
        fix = "Keep the pool at a fixed size, or leave the topology out."
        rule = "topology-aware placement only considers nodes that exist"
        yield Problem(path, list(levels), rule, fix, code="topology-needs-fixed-size")


def gate_problems(path: str, gate_nodes: int, pool: str, nodes: int) -> Iterator[Problem]:
    """A validation on `gate_nodes` nodes (0: none) fits into a pool of at most `nodes`."""
    if gate_nodes > nodes:
        fix = "Validate on fewer nodes, raise the maximum size of the pool, or do not validate it."
        rule = f"pool {pool} has at most {nodes} nodes"
        yield Problem(path, gate_nodes, rule, fix, code="gate-larger-than-pool")


def guarantee_problems(
    path: str, promised: int, *, nodes: int, gpus_per_node: int, gate_nodes: int
) -> Iterator[Problem]:
    """Teams are guaranteed at most the GPUs that a pool of `nodes` has besides those of the validation.

    `path` is that of the number of nodes. `gate_nodes` of them must be free at any time to validate a
    deployment; 0 without a validation.
    """
    free = nodes - gate_nodes
    if promised > free * gpus_per_node:
        kept = f" ({gate_nodes} of {nodes} must be free to validate a deployment)" if gate_nodes else ""
        rule = f"teams are guaranteed {promised} GPUs, more than {free} nodes have{kept}"
        fix = "Guarantee fewer (teams borrow idle GPUs), or raise the maximum size of the pool."
        yield Problem(path, nodes, rule, fix, code="guarantees-exceed-pool")
