"""Limits of a process on this machine."""

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
