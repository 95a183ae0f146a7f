"""Requests in turn of namespaces, with a bound."""

import pytest

from agents.queued_jobs.turns import LONGEST_S, Turns


def test_slow_requests_end_a_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other work of the program waits meanwhile."""
    clock = iter(float(second) for second in range(1000))
    monkeypatch.setattr("agents.queued_jobs.turns.time.monotonic", lambda: next(clock))
    turns, done = Turns(1000, 1.0), list[int]()
    due = {"team-a": [*range(40)]}
    while due:
        before = len(done)
        turns.take(due, done.append, 0.0)
        assert before < len(done) <= before + LONGEST_S
    assert done == [*reversed(range(40))]


def test_requests_of_an_item_that_fails_count() -> None:
    turns, done = Turns(4, 1.0), list[str]()

    def fails(item: str) -> None:
        turns.spend()
        done.append(item)
        raise OSError(item)

    for _ in range(2):
        with pytest.raises(OSError, match=r"[ab]"):
            turns.take({"team-a": ["a"], "team-b": ["b"]}, fails, 0.0)
    assert sorted(done) == ["a", "b"]
