import pytest
from hypothesis import given
from hypothesis import strategies as st

from smoke_training.instrumentation import marks
from smoke_training.instrumentation.marks import (
    CHECKPOINT,
    COMPUTE,
    DATA,
    EXPOSED,
    OTHER,
    HostMarks,
    Step,
    shared_out,
)


class Clock:
    """Advances by what the test says."""

    def __init__(self) -> None:
        self.now = 0.0

    def perf_counter(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    found = Clock()
    monkeypatch.setattr(marks, "time", found)
    return found


def test_sections_get_the_time_until_the_next_begins(clock: Clock) -> None:
    watch = HostMarks()
    clock.now = 5.0
    watch.begin()
    for section, seconds in ((DATA, 1), (OTHER, 2), (COMPUTE, 4), (EXPOSED, 8), (CHECKPOINT, 16)):
        watch.enter(section)
        clock.now += seconds
    assert watch.enter(OTHER) == CHECKPOINT
    watch.end_step()
    assert watch.take()() == [Step(1, 4, 8, 16, 2, 31)]
    assert watch.take()() == []


@given(st.lists(st.tuples(st.integers(0, 4), st.floats(0, 1)), max_size=30))
def test_parts_sum_to_the_total_whatever_the_order(sections: list[tuple[int, float]]) -> None:
    found = Clock()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(marks, "time", found)
        watch = HostMarks()
        for section, seconds in sections:
            watch.enter(section)
            found.now += seconds
        watch.end_step()
    (step,) = watch.take()()
    assert sum(step[:5]) == pytest.approx(step.total)


@given(st.floats(0, 2), st.floats(0, 2), st.floats(0, 1), st.floats(0, 1), st.floats(0, 1))
def test_idle_time_of_a_device_goes_to_what_the_host_waited_for(
    waited: float, saved: float, compute: float, exposed: float, idle: float
) -> None:
    total = compute + exposed + idle
    lengths = [(COMPUTE, compute), (EXPOSED, exposed), (OTHER, idle)]
    step = shared_out(lengths, waited=waited, saved=saved, total=total)
    assert (step.compute, step.exposed) == (compute, exposed)
    assert step.data == min(waited, idle)
    assert step.data + step.checkpoint + step.other == pytest.approx(idle)
    assert min(step) >= 0


def test_a_loader_that_the_device_never_noticed_costs_nothing() -> None:
    step = shared_out([(COMPUTE, 0.1), (OTHER, 0.0)], waited=0.05, saved=0.0, total=0.1)
    assert step.data == 0.0


def test_steps_follow_each_other(clock: Clock) -> None:
    watch = HostMarks()
    watch.begin()
    for length in (1.0, 2.0, 3.0):
        watch.enter(COMPUTE)
        clock.now += length
        watch.end_step()
    assert [step.total for step in watch.take()()] == [1.0, 2.0, 3.0]
