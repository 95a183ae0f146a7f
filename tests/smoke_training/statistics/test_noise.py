import pytest
from hypothesis import given
from hypothesis import strategies as st

from smoke_training.evidence.training import MachineWindow
from smoke_training.statistics import noise

QUIET = MachineWindow(steal_share=0.0)


def test_the_spread_is_the_worst_ranks() -> None:
    assert noise.relative_spread([[1.0, 1.0, 1.0], [1.0, 1.2, 0.8]]) == pytest.approx(0.2)
    assert noise.relative_spread([]) is None
    assert noise.relative_spread([[]]) is None


def test_waiting_for_others_is_taken_out_of_a_spin_where_it_is_known() -> None:
    spin, queue = [[1.0, 1.5, 1.0, 2.0]], [[0.0, 0.5, 0.0, 1.0]]
    assert noise.relative_spread(noise.without_queue(spin, queue)) == 0.0
    assert noise.relative_spread(noise.without_queue(spin, None)) == pytest.approx(0.2)


@given(st.lists(st.tuples(st.floats(1e-3, 10), st.floats(0, 20)), min_size=1), st.floats(0, 1))
def test_what_is_left_of_a_time_is_positive_and_no_more_than_it_was(
    pairs: list[tuple[float, float]], share: float
) -> None:
    walls, queues = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    (kept,) = noise.without_queue([walls], [queues], shares=[share])
    for wall, left in zip(walls, kept, strict=True):
        assert 0 < left <= wall


@pytest.mark.parametrize(
    ("spread", "steal", "number"), [(0.16, 0.0, "16%"), (0.01, 0.08, "8%"), (None, 0.5, "50%")]
)
def test_an_unfit_machine_is_reported_with_its_number(
    spread: float | None, steal: float, number: str
) -> None:
    assert number in (noise.unfit(spread, [QUIET, MachineWindow(steal_share=steal)]) or "")


@pytest.mark.parametrize(("spread", "steal"), [(0.15, 0.05), (None, None), (0.0, 0.0)])
def test_a_fit_machine_is_not_excused(spread: float | None, steal: float | None) -> None:
    assert noise.unfit(spread, [MachineWindow(steal_share=steal)]) is None


def test_the_queue_share_is_the_worst_ranks_and_unknown_where_the_kernel_is_silent() -> None:
    assert noise.queue_share([[1.0, 1.0], [2.0, 2.0]], [[0.0, 0.1], [1.0, 1.0]]) == 0.5
    assert noise.queue_share([[1.0]], None) is None
    assert noise.worst([None, None]) is None
    assert noise.worst([None, 2.0, 1.0]) == 2.0
