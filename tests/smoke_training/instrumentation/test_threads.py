"""Threads of an instrumented loop end with it: one inside of torch would abort the interpreter's end."""

import threading
import time

import pytest

from smoke_training.instrumentation import Record, hang, step_records
from smoke_training.instrumentation.peers import Peers
from tests.smoke_training.instrumentation.test_run import Loader, Slow, train


def test_a_reading_of_a_hang_is_awaited() -> None:
    entered, go = threading.Event(), threading.Event()

    def report(*_: object) -> None:
        entered.set()
        go.wait()
        time.sleep(0.5)

    peers = Peers()
    peers.rank, peers.world = 1, 2  # which only reports its own collective
    watch = hang.HangWatch(0.1, peers, lambda: 1, report)
    watch.start()
    assert entered.wait(60)
    go.set()
    watch.stop()
    assert not watch.is_alive()


def test_records_after_the_limit_for_the_end_are_not_evaluated(monkeypatch: pytest.MonkeyPatch) -> None:
    go, seen = threading.Event(), list[int]()

    def blocks(record: Record) -> None:
        seen.append(int(str(record["step"])))
        go.wait()

    monkeypatch.setattr(step_records, "FLUSH_S", 0.1)
    with pytest.warns(RuntimeWarning, match="last records"):
        train(Slow(), Loader(4), every=1, on_record=blocks)
    go.set()
    for thread in threading.enumerate():
        if thread.name == "smoke-training-instrument":
            thread.join(60)
            assert not thread.is_alive()
    assert seen == [1]
