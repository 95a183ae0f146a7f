import time
from pathlib import Path

import pytest

from smoke_training.runtime import host, window
from smoke_training.runtime.host import Ticks
from smoke_training.runtime.nvml import GpuClock
from smoke_training.runtime.window import QuotaClock, WindowReader


@pytest.mark.parametrize(
    ("before", "after", "steal", "busy"),
    [
        (Ticks(0, 0, 0), Ticks(5, 50, 100), 0.05, 0.5),
        (Ticks(5, 50, 100), Ticks(5, 60, 200), 0.0, 0.1),
        (None, Ticks(1, 1, 2), None, None),
        (Ticks(1, 1, 2), Ticks(1, 1, 2), None, None),
    ],
)
def test_steal_and_use_are_shares_of_all_cpu_time(
    before: Ticks | None, after: Ticks, steal: float | None, busy: float | None
) -> None:
    assert (host.share("steal", before, after), host.share("busy", before, after)) == (steal, busy)


def test_cpu_counts_neither_idle_nor_waiting_for_disks(tmp_path: Path) -> None:
    stat = tmp_path / "stat"
    stat.write_text("cpu  100 0 100 700 90 0 0 10 0 0\ncpu0 1 1 1 1 1 1 1 1\n")
    assert host.cpu_ticks(stat) == Ticks(steal=10, busy=210, total=1000)
    stat.write_text("intr 5\n")
    assert host.cpu_ticks(stat) is None


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("usage_usec 9\nnr_periods 5\nnr_throttled 3\nthrottled_usec 250000\n", (3, 0.25)),
        ("nr_periods 5\nnr_throttled 3\nthrottled_time 250000000\n", (3, 0.25)),
    ],
)
def test_the_quota_is_read_from_both_kinds_of_control_groups(
    text: str, found: tuple[int, float], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cpu.stat").write_text(text)
    monkeypatch.setattr(window, "_cpu_stat", lambda: tmp_path / "cpu.stat")
    clock = QuotaClock()
    assert clock.read() == found
    clock.close()
    assert clock.read() is None


def test_a_group_without_a_quota_is_unknown_not_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(window, "_cpu_stat", lambda: None)
    reader = WindowReader(0.0)
    reader.resume()
    reader.pause()
    found = reader.read(1.0)
    assert (found.throttled_periods, found.throttled_seconds) == (None, None)


def test_the_quota_counts_between_resume_and_pause_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stat = tmp_path / "cpu.stat"
    monkeypatch.setattr(window, "_cpu_stat", lambda: stat)

    def throttled(periods: int) -> None:
        # In place: the reader keeps the file open.
        with stat.open("r+" if stat.exists() else "w") as stream:
            stream.write(f"nr_throttled {periods:05d}\nthrottled_usec {periods * 1000:09d}\n")

    throttled(10)
    reader = WindowReader(0.0)
    throttled(20)
    reader.resume()
    throttled(23)
    reader.pause()
    throttled(50)
    reader.resume()
    throttled(51)
    reader.pause()
    found = reader.read(1.0)
    assert found.throttled_periods == 4
    assert found.throttled_seconds == pytest.approx(0.004)


def test_a_busy_machine_shows_pressure_where_the_kernel_has_it() -> None:
    if window.cpu_pressure_seconds() is None:
        pytest.skip("this kernel has no /proc/pressure/cpu")
    reader = WindowReader(time.monotonic())
    found = reader.read(time.monotonic() + 1e-9)
    assert found.cpu_pressure is not None
    assert 0 <= found.cpu_pressure <= 1


def test_a_clock_is_a_plausible_number_or_unknown() -> None:
    mhz = window.cpu_mhz()
    frequencies = Path("/sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq").exists()
    assert (mhz is not None and 100 < mhz < 10_000) if frequencies else mhz is None


def test_a_machine_without_the_drivers_library_knows_no_clock() -> None:
    if any(Path("/dev").glob("nvidia[0-9]*")):
        pytest.skip("this machine has a GPU")
    found = WindowReader(0.0, "GPU-00000000-0000-0000-0000-000000000000").read(1.0)
    assert (found.gpu_mhz, found.clock_reasons) == (None, ())


class Driver:
    """The GPU's driver, which says `now`."""

    now = GpuClock(1980.0, ())

    def clock(self) -> GpuClock:
        return self.now


def test_a_gpu_is_looked_at_after_work_and_not_when_the_window_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    hot, once = ("hw_thermal_slowdown",), ("hw_thermal_slowdown", "hw_power_brake")
    driver = Driver()
    monkeypatch.setattr(window, "_driver", lambda _uuid: driver)
    reader = WindowReader(0.0, "GPU-1")
    for driver.now in GpuClock(1620.0, hot), GpuClock(1605.0, once), GpuClock(1635.0, hot):
        reader.sample_clock()
    driver.now = GpuClock(1980.0, ())  # idle again
    found = reader.read(1.0)
    assert (found.gpu_mhz, found.clock_reasons) == (1620.0, hot)


def test_the_file_of_a_quota_is_not_leaked() -> None:
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(5):
        QuotaClock().close()
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_the_longest_wait_is_of_one_thread_not_the_sum() -> None:
    assert host.longest_wait({"1": 1.0, "2": 5.0}, {"1": 1.5, "2": 5.2, "3": 9.0}) == 0.5
    assert host.longest_wait({}, {}) is None
    own = host.waits_for_cpus()
    assert own == {} or all(value >= 0 for value in own.values())
