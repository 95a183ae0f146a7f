"""Validation of flavors, teams and gate: all problems at once."""

from collections.abc import Iterator, Sequence

from components.kubernetes.queueing.quotas import FlavorArgs, GateArgs, TeamArgs
from infra.catalog import windows
from infra.catalog.kubernetes import kueue, limits
from infra.errors import Problem, UserError
from infra.naming import flavor_name, team_namespace


def check(flavors: Sequence[FlavorArgs], teams: Sequence[TeamArgs], gate: GateArgs) -> None:
    """Raise a UserError with every violated rule."""
    problems = [
        *limits["kueue_flavors"].problems("flavors", len(flavors)),
        *kueue.name_problems("flavors", [flavor["name"] for flavor in flavors], flavor_name),
        *kueue.own_queue_problems(
            "flavors", [(flavor["name"], flavor.get("own_queue", False)) for flavor in flavors]
        ),
        *kueue.name_problems("teams", [team["name"] for team in teams], team_namespace),
        *(problem for index, flavor in enumerate(flavors) for problem in _flavor_problems(index, flavor)),
        *(problem for index, team in enumerate(teams) for problem in _team_problems(index, team, flavors)),
        *_use_problems(flavors, teams),
        *_gate_problems(gate, flavors),
        *_promise_problems(flavors, teams, gate),
    ]
    if not teams:
        rule, fix = "a queue belongs to a team", "Name at least one team."
        problems.append(Problem("teams", 0, rule, fix, code="queueing-without-team"))
    if problems:
        raise UserError(problems)


def _flavor_problems(index: int, flavor: FlavorArgs) -> Iterator[Problem]:
    path = f"flavors[{index}]"
    counts = {
        "max_nodes": (flavor["max_nodes"], 1),
        "cpu": (flavor["cpu"], 1),
        "memory_gib": (flavor["memory_gib"], 1),
        "gpus": (flavor["gpus"], 0),
    }
    if "fabric" in flavor:
        counts["fabric.count"] = (flavor["fabric"]["count"], 1)
    for key, (value, least) in counts.items():
        if value < least:
            rule, fix = f"must be at least {least}", "Give the node type's figure."
            yield Problem(f"{path}.{key}", value, rule, fix, code="flavor-amount-too-small")
    if not flavor["node_labels"]:
        fix = "Give the labels of the pool."
        rule = "without labels a job runs on any node"
        yield Problem(f"{path}.node_labels", None, rule, fix, code="flavor-without-labels")
    if flavor.get("shared", False) and not flavor.get("own_queue", False):
        rule, fix = "shares of GPUs are never overflow of whole ones", "Set true."
        yield Problem(f"{path}.own_queue", False, rule, fix, code="sharing-without-own-queue")
    if "window" in flavor:
        own = flavor.get("own_queue", False)
        yield from windows.queue_problems(f"{path}.window", f"{path}.own_queue", own_queue=own)
    if "topology" in flavor:
        fixed_size = flavor.get("fixed_size", False)
        yield from kueue.topology_problems(f"{path}.topology", flavor["topology"], fixed_size=fixed_size)


def _team_problems(index: int, team: TeamArgs, flavors: Sequence[FlavorArgs]) -> Iterator[Problem]:
    path = f"teams[{index}]"
    yield from limits["kueue_weight"].problems(f"{path}.weight", team["weight"])
    gpus = {flavor["name"]: flavor["gpus"] for flavor in flavors}
    for name, units in team.get("gpus", {}).items():
        if not gpus.get(name):
            known = ", ".join(sorted(flavor for flavor, count in gpus.items() if count)) or "none"
            rule, fix = "there is no such pool with GPUs", f"Use one of: {known}."
            yield Problem(f"{path}.gpus.{name}", units, rule, fix, code="guarantee-of-unknown-pool")
        if units < 0:
            rule = "must not be negative"
            yield Problem(f"{path}.gpus.{name}", units, rule, "Give 0 or more.", code="negative-guarantee")


def _use_problems(flavors: Sequence[FlavorArgs], teams: Sequence[TeamArgs]) -> Iterator[Problem]:
    names = [team["name"] for team in teams]
    for index, flavor in enumerate(flavors):
        path, of = f"flavors[{index}]", flavor.get("teams")
        if of is None:
            continue
        yield from kueue.pool_team_problems(path, of, names, own_queue=flavor.get("own_queue", False))
        for at, team in enumerate(teams):
            units = team.get("gpus", {}).get(flavor["name"])
            if units and team["name"] not in of:
                rule, fix = "the pool is for other teams", f"Leave it out, or add the team to {path}.teams."
                where, code = f"teams[{at}].gpus.{flavor['name']}", "guarantee-in-pool-of-others"
                yield Problem(where, units, rule, fix, against=f"{path}.teams", code=code)


def _gate_problems(gate: GateArgs, flavors: Sequence[FlavorArgs]) -> Iterator[Problem]:
    most = {flavor["name"]: flavor["max_nodes"] for flavor in flavors}
    for name, nodes in gate["nodes"].items():
        path = f"gate.nodes.{name}"
        if name in most:
            yield from kueue.gate_problems(path, nodes, name, most[name])
        else:
            fix = f"Use one of: {', '.join(sorted(most)) or 'none'}."
            yield Problem(path, nodes, "there is no such pool", fix, code="gate-of-unknown-pool")


def _promise_problems(
    flavors: Sequence[FlavorArgs], teams: Sequence[TeamArgs], gate: GateArgs
) -> Iterator[Problem]:
    for index, flavor in enumerate(flavors):
        name = flavor["name"]
        yield from kueue.guarantee_problems(
            f"flavors[{index}].nodes",
            sum(team.get("gpus", {}).get(name, 0) for team in teams),
            nodes=flavor["max_nodes"],
            gpus_per_node=flavor["gpus"],
            gate_nodes=gate["nodes"].get(name, 0),
        )
