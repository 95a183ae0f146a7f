"""The schedule of pairs, the scores of cells, and who is blamed; all on simulated clusters."""

import itertools
import math
import random
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smoke_training.statistics.estimators import Z_DECISION, decision_z
from smoke_training.statistics.links import (
    LOOKS,
    CellState,
    Pair,
    accusing_z,
    attribute,
    peer_reference,
    rounds,
    score,
)

LAPS = 10

Visit = tuple[float, float | None]  # its rate, and how much of it a thread waited for a CPU


@given(st.integers(0, 40))
def test_every_pair_meets_exactly_once_in_rounds_of_disjoint_pairs(count: int) -> None:
    found = rounds(count)
    assert sorted(pair for pairs in found for pair in pairs) == list(itertools.combinations(range(count), 2))
    for pairs in found:
        players = [player for pair in pairs for player in pair]
        assert len(players) == len(set(players))
    assert len(found) == (0 if count < 2 else count - 1 + count % 2)


def simulate(
    nodes: int,
    slow: dict[Pair, float],
    seed: int,
    *,
    sigma: float = 0.02,
    bursts: float = 0.0,
    declared: bool = True,
) -> dict[Pair, CellState]:
    """Answers for cells at 0.957 of 1 Gb/s, or `slow` times that, under noise that only ever slows."""
    dice = random.Random(seed)
    cells = list(itertools.permutations(range(nodes), 2))
    series: dict[Pair, list[Visit]] = {cell: [] for cell in cells}
    for _ in range(LAPS):
        neighbour = dice.random() < bursts  # a noisy neighbour for a whole lap hits some of the cells
        for cell in cells:
            slowed = neighbour and dice.random() < 0.5
            waited = dice.uniform(0.1, 0.9) if slowed else dice.uniform(0, 0.1)
            noise = math.exp(-abs(dice.gauss(0, sigma))) * (1 - waited / 2 if slowed else 1)
            rate = 0.957 * slow.get(cell, 1.0) * noise
            series[cell].append((rate, waited))
    references = [
        1.0 if declared else peer_reference(series[cell][lap][0] for cell in cells) for lap in range(LAPS)
    ]
    return {cell: answer(visits, references, accusing_z(nodes)) for cell, visits in series.items()}


def answer(visits: Sequence[Visit], references: list[float], z: float) -> CellState:
    return score([rate for rate, _ in visits], [share for _, share in visits], references, z).answer


def row(node: int, nodes: int, factor: float) -> dict[Pair, float]:
    return {(node, other): factor for other in range(nodes) if other != node}


def column(node: int, nodes: int, factor: float) -> dict[Pair, float]:
    return {(other, node): factor for other in range(nodes) if other != node}


def names(answers: dict[Pair, CellState]) -> list[tuple[tuple[int, ...], str]]:
    return [(blame.nodes, blame.direction) for blame in attribute(answers).accused]


@pytest.mark.parametrize("declared", [True, False])
@pytest.mark.parametrize("nodes", [3, 4, 7, 16])
@pytest.mark.parametrize("factor", [0.5, 0.02])
def test_planted_faults_are_located(nodes: int, factor: float, declared: bool) -> None:
    both = row(1, nodes, factor) | column(1, nodes, factor)
    for planted, accused in (
        (row(1, nodes, factor), [((1,), "sends")]),
        (column(1, nodes, factor), [((1,), "receives")]),
        (both, [((1,), "both")]),
        ({(0, 2): factor}, [((0, 2), "one way")]),
        ({(0, 2): factor, (2, 0): factor}, [((0, 2), "both")]),
    ):
        if nodes == 3 and len(accused[0][0]) == 2:
            continue  # every node has only two others: see the test on three nodes
        assert names(simulate(nodes, planted, seed=nodes, declared=declared)) == accused
    if nodes > 4:
        two = row(1, nodes, factor) | {(3, 4): factor}
        assert names(simulate(nodes, two, seed=5, declared=declared)) == [
            ((1,), "sends"),
            ((3, 4), "one way"),
        ]


def test_three_nodes_separate_a_link_from_a_node_by_its_ends_other_cells() -> None:
    assert names(simulate(3, {(0, 2): 0.5}, seed=1)) == [((0, 2), "one way")]
    assert names(simulate(3, row(2, 3, 0.5), seed=1)) == [((2,), "sends")]


def test_two_nodes_have_only_their_link() -> None:
    assert names(simulate(2, {(1, 0): 0.5}, seed=3)) == [((0, 1), "one way")]


@pytest.mark.parametrize(("sigma", "bursts"), [(0.02, 0.0), (0.05, 0.3), (0.1, 0.6)])
def test_noise_alone_accuses_no_node(sigma: float, bursts: float) -> None:
    settled = 0
    for seed in range(340):  # 1,020 healthy clusters under the three noises
        nodes = 2 + seed % 4
        found = simulate(nodes, {}, seed, sigma=sigma, bursts=bursts, declared=seed % 2 == 0 or nodes == 2)
        assert CellState.BAD not in found.values(), seed
        settled += all(answer is CellState.GOOD for answer in found.values())
    assert settled > {0.0: 330, 0.3: 30, 0.6: -1}[bursts]  # the worst noise settles nothing


@pytest.mark.parametrize(("sigma", "bursts"), [(0.02, 0.0), (0.05, 0.2)])
def test_under_noise_only_the_slow_node_may_be_accused(sigma: float, bursts: float) -> None:
    right = 0
    for seed in range(300):
        accused = names(simulate(4, row(2, 4, 0.5), seed, sigma=sigma, bursts=bursts))
        assert accused in ([], [((2,), "sends")]), seed
        right += bool(accused)
    assert right > (295 if bursts == 0 else 200)


def test_a_visit_that_waited_for_cpus_may_acquit_but_never_accuse() -> None:
    slow, fast = (0.4, 0.9), (0.95, 0.9)
    assert answer([slow] * 20, [1.0] * 20, Z_DECISION) is CellState.OPEN
    assert answer([fast] * 20, [1.0] * 20, Z_DECISION) is CellState.GOOD
    assert answer([(0.4, None)] * 20, [1.0] * 20, Z_DECISION) is CellState.BAD


def test_a_rate_that_was_reached_often_enough_acquits_however_busy_the_rest_was() -> None:
    slow, reached = (0.5, 0.1), (0.9, 0.9)
    assert answer([slow] * 8 + [reached] * 4, [1.0] * 12, Z_DECISION) is CellState.GOOD
    assert answer([slow] * 9 + [reached] * 3, [1.0] * 12, Z_DECISION) is CellState.BAD
    assert answer([slow] * 3 + [reached] * 2, [1.0] * 5, Z_DECISION) is not CellState.GOOD


def test_a_crawl_needs_three_calm_visits() -> None:
    crawl = (0.1, 0.0)
    assert answer([crawl] * 2, [1.0] * 2, Z_DECISION) is CellState.OPEN
    assert answer([crawl] * 3, [1.0] * 3, Z_DECISION) is CellState.BAD
    assert answer([(0.1, 0.95)] * 3, [1.0] * 3, Z_DECISION) is CellState.OPEN


def test_between_the_bounds_of_the_zone_either_answer_is_possible_and_outside_only_one() -> None:
    dice = random.Random(1)
    for ratio, allowed in ((0.70, CellState.BAD), (0.90, CellState.GOOD)):
        visits = [(ratio * math.exp(dice.gauss(0, 0.01)), 0.0) for _ in range(12)]
        assert answer(visits, [1.0] * 12, Z_DECISION) is allowed


def test_more_cells_and_looks_ask_for_more_visits() -> None:
    dice = random.Random(2)
    visits = [(0.5 * math.exp(dice.gauss(0, 0.05)), 0.0) for _ in range(30)]

    def needed(z: float) -> int:
        return next(n for n in range(1, 31) if answer(visits[:n], [1.0] * n, z) is CellState.BAD)

    alone, among_many = needed(Z_DECISION), needed(decision_z(comparisons=240, looks=LOOKS))
    assert 5 < alone < among_many < 20


def test_bad_cells_without_a_cause_stay_unexplained() -> None:
    answers = dict.fromkeys(itertools.permutations(range(3), 2), CellState.OPEN) | {(0, 1): CellState.BAD}
    found = attribute(answers)
    assert found.accused == ()
    assert found.unexplained == ((0, 1),)
    assert not found.settled


def test_the_reference_of_peers_survives_a_bad_node() -> None:
    cells = {(a, b): 0.5 if 2 in (a, b) else 1.0 for a, b in itertools.permutations(range(3), 2)}
    assert peer_reference(cells.values()) == 1.0
    with pytest.raises(ValueError, match="no reference"):
        peer_reference([])
