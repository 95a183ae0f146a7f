"""What is wrong with a set of flavors, teams and gate: every problem at once."""

from collections.abc import Iterator, Sequence

from components.kubernetes.queueing.quotas import FlavorArgs, GateArgs, TeamArgs
from infra.errors import Problem, UserError
from infra.naming import sanitize

HOSTNAME_LABEL = "kubernetes.io/hostname"
# Limits of the CustomResourceDefinitions of Kueue 0.19.2 (config/components/crd/bases): flavors of a resource
# group, levels of a topology.
MAX_FLAVORS = 64
MAX_LEVELS = 16
# Kueue rejects weights between 0 and 1e-9; shares further apart than this are a mistake.
MIN_WEIGHT, MAX_WEIGHT = 0.001, 1000


def check(flavors: Sequence[FlavorArgs], teams: Sequence[TeamArgs], gate: GateArgs) -> None:
    """Raise a UserError that names every rule broken; return quietly when there is none."""
    problems = [
        *_count_problems(flavors, teams),
        *_name_problems("flavors", [flavor["name"] for flavor in flavors]),
        *_name_problems("teams", [team["name"] for team in teams]),
        *(problem for index, flavor in enumerate(flavors) for problem in _flavor_problems(index, flavor)),
        *(problem for index, team in enumerate(teams) for problem in _team_problems(index, team, flavors)),
        *_gate_problems(gate, flavors),
    ]
    problems += _promise_problems(flavors, teams, gate)
    if problems:
        raise UserError(problems)


def _count_problems(flavors: Sequence[FlavorArgs], teams: Sequence[TeamArgs]) -> Iterator[Problem]:
    if not 1 <= len(flavors) <= MAX_FLAVORS:
        yield Problem("flavors", len(flavors), f"1 to {MAX_FLAVORS} are possible", "Add or remove pools.")
    if not teams:
        yield Problem("teams", 0, "a queue belongs to a team", "Name at least one team.")


def _name_problems(path: str, names: Sequence[str]) -> Iterator[Problem]:
    seen: dict[str, str] = {}
    for index, name in enumerate(names):
        try:
            label = sanitize(name, max_length=40)
        except ValueError:
            yield Problem(f"{path}[{index}].name", name, "holds no letter or digit", "Choose another name.")
            continue
        if label in seen:
            rule = f"becomes {label!r}, and so does {seen[label]!r}"
            yield Problem(f"{path}[{index}].name", name, rule, "Let names differ in letters or digits.")
        seen.setdefault(label, name)


def _flavor_problems(index: int, flavor: FlavorArgs) -> Iterator[Problem]:
    path = f"flavors[{index}]"
    counts = {
        "nodes": (flavor["nodes"], 1),
        "cpu": (flavor["cpu"], 1),
        "memory_gib": (flavor["memory_gib"], 1),
        "gpus": (flavor["gpus"], 0),
        "efa": (flavor["efa"], 0),
    }
    for key, (value, least) in counts.items():
        if value < least:
            yield Problem(f"{path}.{key}", value, f"must be at least {least}", "Give the node type's figure.")
    if not flavor["node_labels"]:
        fix = "Give the labels of the pool."
        yield Problem(f"{path}.node_labels", None, "without labels a job lands on any node", fix)
    yield from _topology_problems(path, flavor)


def _topology_problems(path: str, flavor: FlavorArgs) -> Iterator[Problem]:
    if "topology" not in flavor:
        return
    levels = list(flavor["topology"])
    if not 1 <= len(levels) <= MAX_LEVELS or len(set(levels)) != len(levels):
        rule = f"needs 1 to {MAX_LEVELS} different labels"
        yield Problem(f"{path}.topology", levels, rule, "Name each network layer once.")
    if HOSTNAME_LABEL in levels[:-1]:
        rule = f"{HOSTNAME_LABEL} is the narrowest layer"
        yield Problem(f"{path}.topology", levels, rule, "Put it last.")
    if not flavor.get("fixed_size", False):
        rule = "topology-aware placement only sees nodes that exist"
        fix = "Keep the pool at a fixed size, or leave the topology out."
        yield Problem(f"{path}.topology", levels, rule, fix)


def _team_problems(index: int, team: TeamArgs, flavors: Sequence[FlavorArgs]) -> Iterator[Problem]:
    path = f"teams[{index}]"
    if not MIN_WEIGHT <= team["weight"] <= MAX_WEIGHT:
        rule = f"must be {MIN_WEIGHT} to {MAX_WEIGHT}"
        yield Problem(f"{path}.weight", team["weight"], rule, "Give 1 for an equal share.")
    gpus = {flavor["name"]: flavor["gpus"] for flavor in flavors}
    for name, units in team.get("gpus", {}).items():
        if not gpus.get(name):
            known = ", ".join(sorted(flavor for flavor, count in gpus.items() if count)) or "none"
            yield Problem(f"{path}.gpus.{name}", units, "is no pool with GPUs", f"Use one of: {known}.")
        if units < 0:
            yield Problem(f"{path}.gpus.{name}", units, "must not be negative", "Give 0 or more.")


def _gate_problems(gate: GateArgs, flavors: Sequence[FlavorArgs]) -> Iterator[Problem]:
    nodes = {flavor["name"]: flavor["nodes"] for flavor in flavors}
    if gate["flavor"] not in nodes:
        fix = f"Use one of: {', '.join(sorted(nodes)) or 'none'}."
        yield Problem("gate.flavor", gate["flavor"], "is no pool", fix)
    elif not 1 <= gate["nodes"] <= nodes[gate["flavor"]]:
        rule = f"{gate['flavor']} has {nodes[gate['flavor']]} nodes"
        yield Problem("gate.nodes", gate["nodes"], rule, "Validate on 1 node up to all of them.")


def _promise_problems(
    flavors: Sequence[FlavorArgs], teams: Sequence[TeamArgs], gate: GateArgs
) -> Iterator[Problem]:
    for flavor in flavors:
        name, gpus = flavor["name"], flavor["gpus"]
        reserved = gate["nodes"] * gpus if gate["flavor"] == name else 0
        promised = sum(team.get("gpus", {}).get(name, 0) for team in teams)
        if promised > flavor["nodes"] * gpus - reserved and gpus:
            rule = (
                f"the pool has {flavor['nodes'] * gpus} GPUs and the deploy validation must be able to claim "
                f"{reserved} of them at any time"
            )
            fix = "Promise fewer (teams still borrow what is idle), add nodes, or validate on fewer nodes."
            yield Problem(f"teams[*].gpus.{name}", promised, rule, fix)
