"""Heartbeats as written by a rank and read from outside."""

import os
import signal
import struct
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smoke_training.runtime import heartbeat
from smoke_training.runtime.control.vitals import LOOK_AT_MOST_S, Vital, Vitals, ended_ranks
from smoke_training.runtime.heartbeat import Heartbeat, Status, path_of, read
from tests.smoke_training.jobs import until

RANK = """
import sys, time
from pathlib import Path
from smoke_training.runtime.heartbeat import Heartbeat
heart = Heartbeat(Path(sys.argv[1]))
heart.phase("training")
heart.enter()
print("ready", flush=True)
for line in sys.stdin:
    exec(line)
"""


def test_what_is_written_is_read(tmp_path: Path) -> None:
    heart = Heartbeat(tmp_path / "rank", attempt=1)
    heart.phase("training")
    heart.enter()
    heart.beat()
    beat = read(tmp_path / "rank")
    assert beat is not None
    assert (beat.status, beat.pid, beat.attempt, beat.phase) == (Status.RUNNING, os.getpid(), 1, "training")
    assert (beat.sequence, beat.beats) == (1, 3)
    heart.broke("OSError: no room")
    beat = read(tmp_path / "rank")
    assert beat is not None
    assert (beat.status, beat.words) == (Status.BROKE, "OSError: no room")


@given(phase=st.text(max_size=80), words=st.text(max_size=400))
def test_any_text_fits_the_record(tmp_path_factory: pytest.TempPathFactory, phase: str, words: str) -> None:
    path = tmp_path_factory.mktemp("beat") / "rank"
    heart = Heartbeat(path)
    heart.phase(phase)
    heart.broke(words)
    beat = read(path)
    assert beat is not None
    assert phase.encode().startswith(beat.phase.encode().rstrip(b"\xef\xbf\xbd")[:20])


def test_a_record_that_is_no_record_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "rank"
    assert read(path) is None
    for content in (b"", b"x" * heartbeat.SIZE, b"x" * 3):
        path.write_bytes(content)
        assert read(path) is None
    Heartbeat(path).beat()
    raw = bytearray(path.read_bytes())
    raw[20] ^= 1
    path.write_bytes(raw)
    assert read(path) is None


def test_a_reader_never_sees_half_a_beat(tmp_path: Path) -> None:
    path, done = tmp_path / "rank", threading.Event()
    heart = Heartbeat(path)

    def write() -> None:
        for number in range(20_000):
            heart.phase(f"phase {number % 10}")
        done.set()

    writer = threading.Thread(target=write)
    writer.start()
    last = 0
    while not done.is_set():
        beat = read(path)
        if beat is not None:
            assert beat.beats >= last
            assert beat.beats < 2 or beat.phase == f"phase {(beat.beats - 1) % 10}"
            last = beat.beats
    writer.join()
    assert last > 0


def test_outside_a_launcher_a_heartbeat_is_silent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(heartbeat.FOLDER, raising=False)
    monkeypatch.chdir(tmp_path)
    heartbeat.own.cache_clear()
    for beat in (heartbeat.own().beat, heartbeat.own().enter, heartbeat.own().farewell):
        beat()
    heartbeat.own().phase("anything")
    heartbeat.own.cache_clear()
    assert list(tmp_path.iterdir()) == []


def test_a_beat_packs_and_checks_and_asks_the_kernel_nothing(tmp_path: Path) -> None:
    heart, called = Heartbeat(tmp_path / "rank"), set[str]()

    def note(_frame: object, event: str, function: Any) -> None:
        if event == "c_call":
            called.add(function.__name__)

    sys.setprofile(note)
    heart.beat()
    sys.setprofile(None)
    assert called - {"setprofile"} == {"pack", "crc32"}


def test_signals_are_read_from_what_torchrun_writes() -> None:
    # Copied from torch 2.13: multiprocessing/api.py and the summary of errors/__init__.py.
    log = (
        "E0101 api.py:988] failed (exitcode: -9) local_rank: 1 (pid: 4242) of binary: python\n"
        "  rank      : 5 (local_rank: 1)\n  exitcode  : 1 (pid: 4243)\n"
        "  exitcode  : -6 (pid: 4244) Signal 6 (SIGABRT) received by PID 4244\n"
    )
    found = [(item.pid, item.local_rank, item.code) for item in ended_ranks(log)]
    assert found == [(4242, 1, -9), (4243, 1, 1), (4244, None, -6)]


class Rank:
    """A process with a heartbeat, and its launcher's view of it."""

    def __init__(self, folder: Path) -> None:
        path = path_of(folder, 3, 0)
        self.process = subprocess.Popen(
            [sys.executable, "-c", RANK, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == "ready\n"
        self.vitals = Vitals(folder, [3], folder / "torchrun.log")
        self.now = 0.0

    def say(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def look(self, passed: float = 0.5) -> Vital:
        self.now += passed
        (found,) = self.vitals.look(self.now)
        return found

    def state(self, letter: str) -> None:
        until(lambda: self.look(0.0).state == letter)


@pytest.fixture
def rank(tmp_path: Path) -> Rank:
    return Rank(tmp_path)


def test_a_rank_is_seen_waiting_stopped_going_on_and_killed(rank: Rank) -> None:
    try:
        rank.look()
        rank.state("S")
        first, second = rank.look(), rank.look()
        assert (second.pid, second.sequence, second.phase) == (rank.process.pid, 1, "training")
        assert second.idle_s == pytest.approx(first.idle_s + 0.5)
        assert (second.stopped_s, second.gone) == (0.0, False)
        rank.process.send_signal(signal.SIGSTOP)
        rank.state("T")
        assert rank.look().stopped_s >= 0.5
        rank.process.send_signal(signal.SIGCONT)
        rank.say("heart.beat()")
        until(lambda: rank.look(0.0).idle_s == 0.0)
        assert rank.look().longest_idle_s >= 1.0
        rank.process.kill()
        until(lambda: rank.look(0.0).gone)
        assert (rank.look().signal, rank.look().status) == (9, "RUNNING")
    finally:
        rank.process.kill()
        rank.process.wait()
    assert rank.look().signal == 9  # remembered after the process was collected


def test_a_pause_of_the_watcher_is_no_silence_of_the_rank(rank: Rank) -> None:
    try:
        rank.look()
        before = rank.look(0.1).idle_s
        assert rank.look(3600.0).idle_s <= before + LOOK_AT_MOST_S
    finally:
        rank.process.kill()
        rank.process.wait()


def test_a_rank_that_ends_by_itself_says_goodbye_or_leaves_its_status(rank: Rank) -> None:
    rank.say("heart.farewell()")
    until(lambda: rank.look().status == "DONE")
    rank.say("sys.exit(7)")
    until(lambda: rank.look(0.0).gone)
    assert (rank.look().code, rank.look().signal) == (7, None)
    rank.process.wait()


def test_a_rank_without_a_heartbeat_has_not_started(tmp_path: Path) -> None:
    assert Vitals(tmp_path, [0, 1], tmp_path / "log").look(0.0) == [Vital(rank=0), Vital(rank=1)]


def test_a_restart_does_not_wipe_out_how_the_first_attempt_ended(tmp_path: Path) -> None:
    Heartbeat(path_of(tmp_path, 0, 0), 0).broke("ValueError: no")
    Heartbeat(path_of(tmp_path, 0, 1), 1).phase("start")
    first, second = Vitals(tmp_path, [0], tmp_path / "log").look(0.0)
    assert (first.attempt, first.status, first.words) == (0, "BROKE", "ValueError: no")
    assert (second.attempt, second.status) == (1, "RUNNING")
    assert struct.calcsize("<4sIIIQQ24s200s") + 4 == heartbeat.SIZE
