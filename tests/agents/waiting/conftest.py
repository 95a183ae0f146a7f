"""A clock for programs that wait."""

from types import SimpleNamespace

import pytest

from agents.waiting import dry_run, watch


@pytest.fixture(autouse=True)
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time, as its one element; it passes only while a program sleeps."""
    now = [0.0]
    passing = {"monotonic": lambda: now[0], "sleep": lambda seconds: now.append(now.pop() + seconds)}
    for program in (dry_run, watch):
        monkeypatch.setattr(program, "time", SimpleNamespace(**passing))
    return now
