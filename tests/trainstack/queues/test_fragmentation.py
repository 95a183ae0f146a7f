"""Fragmentation: from 0 to 1, 0 where all of it can be used or nothing is free."""

from hypothesis import given
from hypothesis import strategies as st

from trainstack.queues.fragmentation import Shape, free_gpus, of_jobs, of_pods, slots
from trainstack.queues.state import Node, Pod

FREE = st.lists(st.integers(0, 8), max_size=12)
ASKED = st.dictionaries(st.builds(Shape, st.integers(1, 6), st.integers(1, 8)), st.integers(1, 5), min_size=1)


@given(FREE, ASKED)
def test_both_measures_are_shares(free: list[int], asked: dict[Shape, int]) -> None:
    for found in (of_pods(free, asked), of_jobs([free], asked)):
        assert found is not None and -1e-9 <= found <= 1 + 1e-9


@given(st.integers(0, 12), ASKED)
def test_empty_nodes_and_full_nodes_are_not_fragmented(nodes: int, asked: dict[Shape, int]) -> None:
    assert of_pods([8] * nodes, asked) == 0
    assert of_pods([0] * nodes, asked) == of_jobs([[0] * nodes], asked) == 0


@given(FREE, ASKED, st.randoms())
def test_the_order_of_nodes_does_not_matter(free: list[int], asked: dict[Shape, int], chance: object) -> None:
    assert of_pods(free, asked) == of_pods(free[::-1], asked)
    assert of_jobs([free], asked) == of_jobs([free[::-1]], asked)


def test_gpus_on_several_nodes_are_lost_to_a_pod_that_needs_one_node() -> None:
    asked = {Shape(1, 8): 1, Shape(1, 1): 1}
    assert of_pods([4, 4], asked) == 0.5  # for one pod of two
    assert of_pods([8], asked) == 0
    assert slots([4, 4, 8], 8) == 1


def test_gpus_that_add_up_to_no_further_job_are_stranded() -> None:
    pair = {Shape(2, 8): 1}
    assert of_jobs([[8, 8, 8]], pair) == 1 - 16 / 24
    # Apart from each other, where a job has to stay together.
    assert of_jobs([[8], [8]], pair) == 1
    assert of_jobs([[8, 8]], pair) == 0


def test_without_jobs_nothing_is_known() -> None:
    assert of_pods([8], {}) is None and of_jobs([[8]], {}) is None


def test_what_is_free_is_what_no_pod_has_on_nodes_that_take_pods() -> None:
    nodes = [Node("a", {}, 8), Node("b", {}, 8, usable=False), Node("c", {}, 8)]
    pods = [Pod("x", "w", "a", 3), Pod("x", "w", "", 8), Pod("x", "w", "c", 9)]
    assert free_gpus(nodes, pods) == {"a": 5, "c": 0}
