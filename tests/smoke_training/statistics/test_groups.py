"""The search among many nodes, driven by simulated clusters with planted faults."""

import itertools
import random
from collections.abc import Callable, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smoke_training.statistics.groups import (
    Group,
    Location,
    budget,
    crossing_groups,
    locate,
    screening_groups,
)
from smoke_training.statistics.links import Answer, ring

SIZES = (17, 20, 31, 32, 33, 64, 100, 256, 500)
Bad = Callable[[Group], bool]


def drive(nodes: Sequence[int], bad: Bad, unsure: Callable[[], bool] = lambda: False) -> Location:
    """Answer every trial of a search; the rules of a trial are checked on the way."""
    search = locate(nodes)
    trial = next(search)
    for done in itertools.count(1):
        members = [node for group in trial.groups for node in group]
        assert len(members) == len(set(members)), "a node cannot be in two groups at once"
        assert all(len(group) > 1 for group in trial.groups)
        assert set(members) <= set(nodes)
        answers = [
            Answer.OPEN if unsure() else Answer.BAD if bad(group) else Answer.GOOD for group in trial.groups
        ]
        try:
            trial = search.send(answers)
        except StopIteration as end:
            assert isinstance(end.value, Location)
            assert end.value.rounds == done <= budget(len(nodes))
            return end.value
    raise AssertionError


def slow_nodes(*nodes: int) -> Bad:
    return lambda group: bool(set(group) & set(nodes))


def slow_link(a: int, b: int) -> Bad:
    return lambda group: {a, b} <= set(group)


def slow_ring_link(a: int, b: int) -> Bad:
    return lambda group: (a, b) in ring(group)


@pytest.mark.parametrize("count", SIZES)
def test_a_healthy_cluster_takes_two_rounds(count: int) -> None:
    found = drive(range(count), lambda group: False)
    assert found.clean
    assert found.rounds == 2


@pytest.mark.parametrize("count", SIZES)
def test_a_slow_node_is_found_within_the_budget(count: int) -> None:
    for node in {0, 1, count // 2, count - 2, count - 1, *random.Random(count).sample(range(count), 8)}:
        found = drive(range(count), slow_nodes(node))
        assert (found.nodes, found.links, found.boundaries, found.open) == ((node,), (), (), ())


@pytest.mark.parametrize("count", SIZES)
def test_two_slow_nodes_are_found_wherever_they_are(count: int) -> None:
    dice = random.Random(count)
    for _ in range(20):
        pair = tuple(sorted(dice.sample(range(count), 2)))
        assert drive(range(count), slow_nodes(*pair)).nodes == pair


@pytest.mark.parametrize("count", SIZES)
def test_a_slow_link_inside_a_group_is_found_when_both_halves_pass(count: int) -> None:
    for group in screening_groups(range(count))[:6]:
        for a, b in itertools.combinations(group, 2):
            found = drive(range(count), slow_link(a, b))
            assert (found.nodes, found.links, found.open) == ((), ((a, b),), ())


@pytest.mark.parametrize("count", SIZES)
def test_a_slow_link_between_neighbours_of_the_ring_is_found(count: int) -> None:
    for group in screening_groups(range(count)):
        for a, b in itertools.pairwise(group):
            assert drive(range(count), slow_ring_link(a, b)).links == ((a, b),)


@pytest.mark.parametrize("count", SIZES)
def test_a_group_cut_off_from_the_others_is_blamed_as_a_boundary(count: int) -> None:
    for group in screening_groups(range(count)):
        members = set(group)
        found = drive(range(count), lambda asked, m=members: bool(set(asked) & m and set(asked) - m))  # type: ignore[misc]
        assert (found.boundaries, found.nodes, found.links) == ((group,), (), ())


@settings(max_examples=300)
@given(st.integers(17, 120), st.floats(0, 0.4), st.randoms(use_true_random=False))
def test_doubtful_answers_accuse_nobody_who_is_healthy(count: int, share: float, dice: random.Random) -> None:
    faulty = dice.sample(range(count), dice.randrange(3))
    found = drive(range(count), slow_nodes(*faulty), unsure=lambda: dice.random() < share)
    assert set(found.nodes) <= set(faulty)
    assert found.links == ()
    assert found.boundaries == ()
    assert faulty == [] or not found.clean


def test_a_fault_that_does_not_come_back_is_left_open() -> None:
    once = iter([True])
    found = drive(range(20), lambda group: 3 in group and next(once, False))
    assert (found.nodes, found.links) == ((), ())
    assert found.open


def test_a_node_that_was_bad_with_one_peer_only_is_not_accused() -> None:
    with_peers = iter([True])

    def bad(group: Group) -> bool:
        return 3 in group and (2 in group or next(with_peers, False))

    found = drive(range(20), bad)
    assert found.nodes == ()
    assert (3,) in found.open


@pytest.mark.parametrize("node", [0, 1, 2, 9])
def test_a_node_that_is_slow_only_with_other_groups_is_confirmed_by_other_groups(node: int) -> None:
    home = next(set(group) for group in screening_groups(range(20)) if node in group)
    found = drive(range(20), lambda group: node in group and bool(set(group) - home))
    assert (found.nodes, found.open) == ((node,), ())


def test_without_a_known_good_peer_nobody_is_accused() -> None:
    found = drive(range(17), lambda group: True)
    assert (found.nodes, found.links, found.boundaries) == ((), (), ())
    assert not found.clean


@given(st.integers(2, 300))
def test_groups_hold_every_node_once(count: int) -> None:
    screened = screening_groups(range(count))
    assert sorted(node for group in screened for node in group) == list(range(count))
    assert all(len(group) > 1 for group in screened)
    crossed = [node for group in crossing_groups(screened) for node in group]
    assert len(crossed) == len(set(crossed))


def test_a_topology_must_hold_every_node() -> None:
    with pytest.raises(ValueError, match="every node once"):
        next(locate(range(4), [(0, 1), (2,)]))
