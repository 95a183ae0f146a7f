"""Limits of a process on this machine."""

import os
import resource
from pathlib import Path

import pytest

from smoke_training.runtime import host

UNPRIVILEGED, ROOT = "CapEff:\t0000000000000000", "CapEff:\t000001ffffffffff"
ALL = resource.RLIM_INFINITY


@pytest.mark.parametrize(
    ("soft", "capabilities", "found"),
    [(65536, UNPRIVILEGED, 65536), (ALL, UNPRIVILEGED, None), (65536, ROOT, None), (65536, "", 65536)],
)
def test_memory_may_be_locked_up_to_the_limit_or_by_capability(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, soft: int, capabilities: str, found: int | None
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (soft, ALL))
    status = tmp_path / "status"
    status.write_text(f"Name:\tpython\n{capabilities}\n")
    assert host.lockable_bytes(status) == found


def test_a_process_runs_on_the_cpus_near_a_device_as_far_as_it_may(tmp_path: Path) -> None:
    allowed = os.sched_getaffinity(0)
    first = min(allowed)
    device = tmp_path / "0000:3b:00.0"
    device.mkdir()
    try:
        assert host.run_near(device.name, tmp_path).startswith("not bound")  # a kernel without NUMA
        for node, cpus, words in (
            ("1", "4000-4095", "not bound: NUMA node 1"),
            ("-1", f"{first}", "not bound"),
            ("0", f"{first},4000-4001", f"NUMA node 0: 1 of {len(allowed)} CPUs"),
        ):
            (device / "numa_node").write_text(f"{node}\n")
            (device / "local_cpulist").write_text(f"{cpus}\n")
            assert host.run_near(device.name, tmp_path).startswith(words)
        assert os.sched_getaffinity(0) == {first}
    finally:
        os.sched_setaffinity(0, allowed)
