import pytest
from hypothesis import given
from hypothesis import strategies as st

from smoke_training.formulae.bandwidth import ALL_GATHER, ALL_REDUCE, ALL_TO_ALL, COLLECTIVES, REDUCE_SCATTER
from smoke_training.formulae.bounds import (
    INSIDE,
    NETWORK,
    PAIRWISE,
    RING,
    TREE,
    BandwidthBound,
    ClusterShape,
    Wires,
    bounds,
    highest,
    lowest,
    wire_rates,
)

H100 = Wires(network=400.0, ring=367.61, switch=482.26)
RATES = st.floats(0.001, 1e4)
SHAPES = st.builds(ClusterShape, st.integers(1, 64), st.integers(1, 8)).filter(lambda shape: shape.ranks > 1)


def of(collective: str, shape: ClusterShape, wires: Wires, algorithm: str) -> BandwidthBound:
    return next(b for b in bounds(collective, shape, wires) if b.algorithm == algorithm)


@pytest.mark.parametrize(
    ("nodes", "network", "value"), [(2, 400.0, 750.0), (4, 400.0, 516.7), (8, 400.0, 450.0), (2, 12.5, 23.4)]
)
def test_a_tree_over_few_nodes_reads_more_than_the_network_carries(
    nodes: int, network: float, value: float
) -> None:
    found = of(ALL_REDUCE, ClusterShape(nodes, 8), Wires(network=network), TREE)
    assert found.value == pytest.approx(value, abs=0.05)
    assert found.limit == NETWORK
    assert not found.complete  # nothing is known of the inside


def test_two_nodes_of_h100_are_limited_inside_and_not_by_750() -> None:
    """One node reads 482 as 8 ranks; the same time inside counts 15/14 of it as 16 ranks: 487 was read."""
    found = of(ALL_REDUCE, ClusterShape(2, 8), H100, TREE)
    assert (found.limit, found.complete) == (INSIDE, True)
    assert found.value == pytest.approx(482.26 * 15 / 14)
    assert found.value > 487.09


def test_four_nodes_of_b200_are_limited_by_the_network() -> None:
    found = of(ALL_REDUCE, ClusterShape(4, 8), Wires(network=400.0, ring=682.2, switch=845.67), TREE)
    assert found.limit == NETWORK
    assert found.value == pytest.approx(516.7, abs=0.05)


def test_a_ring_reads_the_slower_of_network_and_inside() -> None:
    assert of(ALL_REDUCE, ClusterShape(4, 8), H100, RING).value == 367.61
    assert of(ALL_GATHER, ClusterShape(2, 8), Wires(network=200.0, ring=367.61), RING).value == 200.0


def test_an_all_to_all_sends_half_of_everything_between_two_nodes() -> None:
    found = of(ALL_TO_ALL, ClusterShape(2, 8), H100, PAIRWISE)
    assert found.limit == NETWORK
    assert found.value == pytest.approx(93.75)


def test_one_node_is_bounded_by_its_inside_only() -> None:
    for collective in COLLECTIVES:
        for bound in bounds(collective, ClusterShape(1, 8), H100):
            assert (bound.limit, bound.complete) == (INSIDE, True)
    assert bounds(ALL_REDUCE, ClusterShape(1, 8), Wires(network=400.0)) == ()


def test_unknown_wires_have_no_bound() -> None:
    assert bounds(ALL_REDUCE, ClusterShape(2, 8), Wires(network=None)) == ()
    assert bounds(ALL_REDUCE, ClusterShape(1, 1), H100) == ()
    assert lowest(()) is None
    assert highest(()) is None
    with pytest.raises(ValueError, match="no collective 'broadcast'"):
        bounds("broadcast", ClusterShape(2, 8), H100)
    with pytest.raises(ValueError, match="at least 1"):
        ClusterShape(0, 8)


def test_gloo_has_no_tree_and_moves_a_reduce_scatter_twice() -> None:
    wire = Wires(network=0.125)
    assert [b.algorithm for b in bounds(ALL_REDUCE, ClusterShape(4, 1), wire, "gloo")] == [RING]
    assert bounds(ALL_GATHER, ClusterShape(4, 1), wire, "gloo")[0].value == 0.125
    assert bounds(REDUCE_SCATTER, ClusterShape(4, 1), wire, "gloo")[0].value == 0.0625


@given(st.sampled_from(COLLECTIVES), SHAPES, RATES, RATES, RATES)
def test_no_bound_outruns_its_wires_counted_in_bytes(
    collective: str, shape: ClusterShape, network: float, ring: float, switch: float
) -> None:
    """The time a bound implies lets a node send every byte that its peers need of it, at most at W."""
    factor = (2 if collective == ALL_REDUCE else 1) * (shape.ranks - 1) / shape.ranks
    for bound in bounds(collective, shape, Wires(network=network, ring=ring, switch=switch)):
        seconds = factor / bound.value  # of one GB
        if shape.nodes == 1:
            continue
        leaving = {
            RING: factor,
            TREE: 2 * (shape.nodes - 1) / shape.nodes,
            PAIRWISE: shape.per_node * (shape.ranks - shape.per_node) / shape.ranks,
        }[bound.algorithm]
        assert leaving / seconds <= network * (1 + 1e-9)


@given(SHAPES, RATES, RATES, st.floats(1.0, 10.0))
def test_faster_wires_never_lower_a_bound(
    shape: ClusterShape, network: float, ring: float, factor: float
) -> None:
    for collective in COLLECTIVES:
        slow = bounds(collective, shape, Wires(network=network, ring=ring))
        fast = bounds(collective, shape, Wires(network=network * factor, ring=ring * factor))
        for one, other in zip(slow, fast, strict=True):
            assert other.value == pytest.approx(one.value * factor)


def test_the_lowest_bound_is_that_of_the_algorithm_in_use_if_it_is_known() -> None:
    found = bounds(ALL_REDUCE, ClusterShape(2, 8), H100)
    low, high = lowest(found), highest(found)
    assert low is not None
    assert high is not None
    assert low.algorithm == RING
    assert high.algorithm == TREE
    assert lowest(found, TREE) == high
    assert lowest(found, "collnet") == low


def test_the_wire_rate_of_four_b200_nodes_is_what_stas_bekman_reports() -> None:
    rates = wire_rates(381.80, ClusterShape(4, 8))
    assert rates[TREE] == pytest.approx(36.95, abs=0.005)
    assert rates[RING] == pytest.approx(381.80 / 8)
    assert wire_rates(480.0, ClusterShape(1, 8)) == {TREE: None, RING: None}
