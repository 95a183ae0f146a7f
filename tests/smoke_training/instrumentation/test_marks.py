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
    DeviceMarks,
    HostMarks,
    StepTimes,
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
    assert watch.take()() == [StepTimes(1, 4, 8, 16, 2, 31)]
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


class Event:
    """A mark in the work of a device: the device comes to it when it has done what was handed out before."""

    def __init__(self, device: "Device") -> None:
        self.device = device

    def record(self) -> None:
        self.at = max(self.device.host, self.device.done)

    def elapsed_time(self, other: "Event") -> float:
        return (other.at - self.at) * 1e3

    def synchronize(self) -> None:
        pass


class Device:
    """A host that hands out work and a device that does it in order."""

    def __init__(self) -> None:
        self.host = self.done = 0.0
        self.made = 0

    def work(self, seconds: float) -> None:
        self.done = max(self.host, self.done) + seconds

    def wait(self) -> None:
        self.host = max(self.host, self.done)

    def event(self) -> Event:
        self.made += 1
        return Event(self)


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> Device:
    found = Device()
    monkeypatch.setattr("torch.cuda.Event", lambda enable_timing: found.event())
    return found


def stepped(device: Device, loader: float, saved: float = 0.0) -> StepTimes:
    """A step of 1 s of compute and 2 s of waiting for gradients after a step of the same, in seconds."""
    watch = DeviceMarks()
    for _ in range(2):
        watch.enter(DATA)
        device.host += loader
        device.wait()  # copying a batch to the device waits for everything that was handed out before
        watch.enter(OTHER)
        watch.enter(COMPUTE)
        device.work(1.0)
        watch.enter(EXPOSED)
        device.work(2.0)
        watch.enter(OTHER)
        if saved:
            before = watch.enter(CHECKPOINT)
            device.wait()
            device.host += saved
            watch.enter(before)
        watch.end_step()
    return watch.take()()[1]


def test_a_device_that_idles_during_a_checkpoint_did_not_wait_for_data(device: Device) -> None:
    assert stepped(device, loader=0.0, saved=4.0) == StepTimes(0, 1, 2, 4, 0, 7)


def test_a_loader_that_the_device_never_noticed_costs_nothing(device: Device) -> None:
    assert stepped(device, loader=0.5) == StepTimes(0, 1, 2, 0, 0, 3)


def test_what_a_device_waits_for_its_batch_is_data(device: Device) -> None:
    assert stepped(device, loader=5.0) == StepTimes(2, 1, 2, 0, 0, 5)


def test_sections_of_a_device_need_an_event_only_where_they_change(device: Device) -> None:
    watch = DeviceMarks()
    watch.enter(DATA)
    assert watch.enter(OTHER) == DATA
    watch.enter(OTHER)
    watch.end_step()
    assert len(watch._ended[0]) == 3


def test_events_of_steps_that_were_read_are_used_again(device: Device) -> None:
    watch = DeviceMarks()
    for _ in range(20):
        for section in (COMPUTE, OTHER):
            watch.enter(section)
            device.work(1.0)
        watch.end_step()
        assert watch.take()()[0].compute == 1.0
    assert device.made <= 5


def test_steps_follow_each_other(clock: Clock) -> None:
    watch = HostMarks()
    watch.begin()
    for length in (1.0, 2.0, 3.0):
        watch.enter(COMPUTE)
        clock.now += length
        watch.end_step()
    assert [step.total for step in watch.take()()] == [1.0, 2.0, 3.0]
