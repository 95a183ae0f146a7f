import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from components.kubernetes.queueing.quota_rules import check
from components.kubernetes.queueing.quotas import (
    CPU,
    GPU,
    MEMORY,
    FlavorArgs,
    GateArgs,
    TeamArgs,
    allot,
    capacity,
    split,
)
from infra.errors import UserError
from tests.components.kubernetes.queueing.pools import ADAPTERS, GATE, cpu_flavor, gpu_flavor, teams

WEIGHTS = st.lists(st.floats(0.001, 1000), min_size=1, max_size=12)


@pytest.mark.parametrize(
    ("total", "weights", "expected"),
    [
        (16, [1, 1], [8, 8]),
        (16, [3, 1], [12, 4]),
        (10, [1, 1, 1], [4, 3, 3]),
        (1, [1, 5], [0, 1]),
        (0, [1, 2], [0, 0]),
        (5, [], []),
    ],
)
def test_shares_follow_the_weights(total: int, weights: list[float], expected: list[int]) -> None:
    assert split(total, weights) == expected


@given(total=st.integers(0, 100_000), weights=WEIGHTS)
@settings(max_examples=200)
def test_shares_are_whole_fair_and_complete(total: int, weights: list[float]) -> None:
    shares = split(total, weights)
    assert sum(shares) == total
    for share, weight in zip(shares, weights, strict=True):
        assert abs(share - total * weight / math.fsum(weights)) < 1 + 1e-6


@st.composite
def clusters(draw: st.DrawFn) -> tuple[list[FlavorArgs], list[TeamArgs], GateArgs]:
    flavors: list[FlavorArgs] = []
    for index in range(draw(st.integers(1, 4))):
        flavor = gpu_flavor(
            f"pool{index}",
            nodes=draw(st.integers(1, 20)),
            gpus=draw(st.sampled_from([0, 1, 4, 8])),
            adapters=draw(st.sampled_from([0, 1, 4, 32])),
        )
        flavors.append({**flavor, "cpu": draw(st.integers(1, 200)), "memory_gib": draw(st.integers(1, 4000))})
    chosen = draw(st.lists(st.sampled_from(flavors), unique_by=lambda flavor: flavor["name"]))
    gate: GateArgs = {"nodes": {each["name"]: draw(st.integers(1, each["max_nodes"])) for each in chosen}}
    weights = draw(st.lists(st.floats(0.001, 1000), min_size=1, max_size=5))
    people: list[TeamArgs] = [{"name": f"t{index}", "weight": weight} for index, weight in enumerate(weights)]
    for flavor in flavors:
        left = (flavor["max_nodes"] - gate["nodes"].get(flavor["name"], 0)) * flavor["gpus"]
        for team in people:
            if flavor["gpus"] and draw(st.booleans()):
                promised = draw(st.integers(0, left))
                left -= promised
                team["gpus"] = {**team.get("gpus", {}), flavor["name"]: promised}
    return flavors, people, gate


@given(clusters())
@settings(max_examples=150)
def test_quotas_add_up_to_exactly_what_the_pools_hold(
    cluster: tuple[list[FlavorArgs], list[TeamArgs], GateArgs],
) -> None:
    flavors, people, gate = cluster
    check(flavors, people, gate)
    allotment = allot(flavors, people, gate)
    for flavor in flavors:
        name = flavor["name"]
        parts = [allotment.gate[name], allotment.shared[name]] + [t[name] for t in allotment.teams.values()]
        for resource, whole in capacity(flavor).items():
            assert all(part[resource] >= 0 for part in parts)
            assert sum(part[resource] for part in parts) == whole
        for team in people:
            promised = team.get("gpus", {}).get(name)
            if promised is not None:
                assert allotment.teams[team["name"]][name][GPU] == promised


def test_the_gate_owns_whole_nodes_and_the_teams_divide_the_rest() -> None:
    allotment = allot([gpu_flavor()], teams(research=3, product=1), GATE)
    assert allotment.gate["a100"] == {CPU: 180, MEMORY: 2000, GPU: 16, ADAPTERS: 8}
    assert allotment.teams["research"]["a100"] == {CPU: 135, MEMORY: 1500, GPU: 12, ADAPTERS: 6}
    assert allotment.teams["product"]["a100"] == {CPU: 45, MEMORY: 500, GPU: 4, ADAPTERS: 2}
    assert set(allotment.shared["a100"].values()) == {0}


def test_promised_gpus_come_first_and_the_rest_is_shared() -> None:
    people: list[TeamArgs] = [
        {"name": "research", "weight": 1, "gpus": {"a100": 5}},
        {"name": "product", "weight": 9, "gpus": {"a100": 4}},
    ]
    allotment = allot([gpu_flavor()], people, GATE)
    assert allotment.teams["research"]["a100"][GPU] == 5
    assert allotment.shared["a100"][GPU] == 16 - 5 - 4


def test_a_pool_of_some_teams_is_divided_among_these() -> None:
    flavor: FlavorArgs = {**gpu_flavor(), "own_queue": True, "teams": ["research"]}
    allotment = allot([flavor, cpu_flavor()], teams(research=1, product=3), {"nodes": {}})
    owned = {name: quota["a100"][GPU] for name, quota in allotment.teams.items()}
    assert owned == {"research": 32, "product": 0}
    assert allotment.shared["a100"][GPU] == 0


def test_a_gate_that_takes_the_whole_pool_leaves_everything_to_borrowing() -> None:
    allotment = allot([gpu_flavor(nodes=2)], teams(research=1), GATE)
    assert set(allotment.teams["research"]["a100"].values()) == {0}


def test_good_input_passes() -> None:
    check([gpu_flavor(), cpu_flavor()], teams(research=3, product=1), GATE)


def test_without_a_gate_teams_may_be_promised_every_gpu() -> None:
    promised: list[TeamArgs] = [{"name": "a", "weight": 1, "gpus": {"a100": 32}}]
    none: GateArgs = {"nodes": {}}
    check([gpu_flavor()], promised, none)
    assert allot([gpu_flavor()], promised, none).teams["a"]["a100"][GPU] == 32


BAD: list[tuple[str, dict[str, Any]]] = [
    ("teams", {"teams": []}),
    ("flavors", {"flavors": []}),
    ("teams[1].name", {"teams": teams(**{"ML Team": 1, "ml-team": 1})}),
    ("teams[0].name", {"teams": teams(**{"!!": 1})}),
    ("teams[0].weight", {"teams": teams(research=0)}),
    ("teams[0].weight", {"teams": teams(research=float("nan"))}),
    ("teams[0].weight", {"teams": teams(research=float("inf"))}),
    ("teams[0].gpus.v100", {"teams": [{"name": "a", "weight": 1, "gpus": {"v100": 1}}]}),
    ("teams[0].gpus.a100", {"teams": [{"name": "a", "weight": 1, "gpus": {"a100": -1}}]}),
    ("flavors[0].nodes", {"teams": [{"name": "a", "weight": 1, "gpus": {"a100": 17}}]}),
    ("flavors[0].gpus", {"flavors": [gpu_flavor(gpus=-1)]}),
    ("flavors[0].nodes", {"flavors": [gpu_flavor(nodes=0)]}),
    ("flavors[0].node_labels", {"flavors": [{**gpu_flavor(), "node_labels": {}}]}),
    ("flavors[1].name", {"flavors": [gpu_flavor(), gpu_flavor("A100")]}),
    ("flavors", {"flavors": [{**gpu_flavor(), "own_queue": True}]}),
    ("flavors[0].name", {"flavors": [{**gpu_flavor("default"), "own_queue": True}, gpu_flavor()]}),
    ("flavors[0].topology", {"flavors": [{**gpu_flavor(), "topology": ["a"]}]}),
    ("flavors[0].topology", {"flavors": [{**gpu_flavor(), "topology": [], "fixed_size": True}]}),
    ("flavors[0].topology", {"flavors": [{**gpu_flavor(), "topology": ["a", "a"], "fixed_size": True}]}),
    (
        "flavors[0].topology",
        {"flavors": [{**gpu_flavor(), "topology": ["kubernetes.io/hostname", "a"], "fixed_size": True}]},
    ),
    (
        "teams[1].gpus.a100",
        {
            "flavors": [{**gpu_flavor(), "own_queue": True, "teams": ["a"]}, cpu_flavor()],
            "teams": [{"name": "a", "weight": 1}, {"name": "b", "weight": 1, "gpus": {"a100": 1}}],
        },
    ),
    ("flavors[0].teams", {"flavors": [{**gpu_flavor(), "teams": ["research"]}]}),
    (
        "flavors[0].teams[0]",
        {"flavors": [{**gpu_flavor(), "own_queue": True, "teams": ["reserch"]}, cpu_flavor()]},
    ),
    ("gate.nodes.h100", {"gate": {"nodes": {"a100": 1, "h100": 1}}}),
    ("gate.nodes.a100", {"gate": {"nodes": {"a100": 5}}}),
]


@pytest.mark.parametrize(("path", "change"), BAD)
def test_bad_input_is_named_by_its_path(path: str, change: dict[str, Any]) -> None:
    good: dict[str, Any] = {"flavors": [gpu_flavor()], "teams": teams(research=1), "gate": GATE}
    with pytest.raises(UserError) as caught:
        check(**{**good, **change})
    assert path in [problem.path for problem in caught.value.problems]
    assert all(problem.rule and problem.fix for problem in caught.value.problems)


def test_all_problems_are_reported_at_once() -> None:
    with pytest.raises(UserError) as caught:
        check([gpu_flavor(nodes=0)], teams(a=0, b=-1), {"nodes": {"h100": 1}})
    assert len(caught.value.problems) >= 4
