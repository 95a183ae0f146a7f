"""Launchers that start, watch and end together, without any rank."""

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from smoke_training.evidence.world import NodeFacts
from smoke_training.plan import Plan
from smoke_training.reader import decode
from smoke_training.runtime.control import channel, member, session
from smoke_training.runtime.control.coordinator import Coordinator
from smoke_training.runtime.control.member import Member
from smoke_training.runtime.control.session import NodeReport, Over, RunEndedError
from smoke_training.runtime.control.vitals import Vital
from tests.smoke_training.samples import facts, plan

ADDRESS = "127.77.2.9"
ALIVE = Vital(rank=1, pid=1, state="S", attempt=0, sequence=4, beats=9, phase="training")


def node(index: int, **changes: Any) -> Callable[[], NodeFacts]:
    found = decode(NodeFacts, facts(index, **changes))
    assert isinstance(found, NodeFacts)
    return lambda: found


class Meeting:
    """Node 0 and node 1 of a plan for two nodes."""

    def __init__(self, **changes: Any) -> None:
        self.plan: Plan = plan(**{"hang_timeout_s": 0.6, "join_timeout_s": 20.0, **changes})
        sock = channel.listen(ADDRESS, 0)
        self.port = sock.getsockname()[1]
        self.coordinator = Coordinator(self.plan, channel.ChannelListener(sock, "word"))
        self.member = self.another(1)
        self.refused: list[str] = []

    def another(self, index: int, word: str = "word") -> Member:
        return Member(self.plan, index, channel.ChannelCaller(ADDRESS, self.port), word)

    def join(
        self, first: Callable[[], NodeFacts] | None = None, second: Callable[[], NodeFacts] | None = None
    ) -> None:
        """Both join; RunEndedError of node 0, node 1's reason is in `refused`."""

        def call() -> None:
            try:
                self.member.join(second or node(1), time.monotonic() + 30)
            except RunEndedError as error:
                self.refused.append(str(error))

        caller = threading.Thread(target=call)
        caller.start()
        try:
            self.coordinator.join(first or node(0), time.monotonic() + 30)
        except RunEndedError:
            self.coordinator.over(Over(verdict="FAIL", headline="FAIL nodes", exit_code=1))
            raise
        finally:
            caller.join(30)

    def tick(self, seconds: float, own: NodeReport | None = None, other: NodeReport | None = None) -> None:
        """Both go on for a while."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            if other is not None:
                self.member.tick(other)
            if own is not None:
                self.coordinator.tick(own)
            time.sleep(0.02)

    def kinds(self) -> list[object]:
        return [line["kind"] for line in self.coordinator.lines]


@pytest.fixture
def meeting() -> Iterator[Meeting]:
    found = Meeting()
    yield found
    found.coordinator.over(Over(verdict="PASS", headline="PASS", exit_code=0))
    found.member.finish([], time.monotonic())


def report(**changes: Any) -> NodeReport:
    return NodeReport(vitals=(Vital(**{**vars(ALIVE), **changes}),))


def test_nodes_that_are_alike_start_at_once_and_end_together(meeting: Meeting) -> None:
    began = time.monotonic()
    meeting.join()
    assert time.monotonic() - began < 2
    meeting.tick(0.8, report(rank=0), report())
    done = report(status="DONE", gone=True)
    meeting.member.leave(done, None)
    meeting.coordinator.leave(report(rank=0, status="DONE", gone=True), None)
    finished = threading.Thread(
        target=meeting.member.finish, args=([{"kind": "failure"}], time.monotonic() + 20)
    )
    finished.start()
    meeting.coordinator.finish([], time.monotonic() + 20)
    assert meeting.kinds() == ["nodes", "failure", "liveness"]
    ranks = meeting.coordinator.lines[-1]["ranks"]
    assert isinstance(ranks, tuple)
    assert [(rank["rank"], rank["node"], rank["status"]) for rank in ranks] == [
        (0, 0, "DONE"),
        (1, 1, "DONE"),
    ]
    meeting.coordinator.over(Over(verdict="PASS", headline="PASS all", exit_code=0))
    finished.join(10)
    assert meeting.member.over_message == Over(verdict="PASS", headline="PASS all", exit_code=0)


def test_a_node_that_becomes_like_the_others_in_time_may_start(meeting: Meeting) -> None:
    began = time.monotonic()

    def loading() -> NodeFacts:
        return node(1, torch="2.13.0" if time.monotonic() - began > 1.5 else "2.9.0")()

    meeting.join(second=loading)
    assert 1.5 < time.monotonic() - began < session.SETTLE_S
    assert meeting.refused == []


def test_a_node_that_stays_different_stops_all(monkeypatch: pytest.MonkeyPatch, meeting: Meeting) -> None:
    monkeypatch.setattr(session, "SETTLE_S", 0.5)
    with pytest.raises(RunEndedError, match=r"torch .* is 2\.9\.0"):
        meeting.join(second=node(1, torch="2.9.0"))
    assert [words.endswith("FAIL nodes") for words in meeting.refused] == [True]
    assert meeting.kinds() == ["nodes", "stopped_early"]


def test_a_node_without_its_gpus_stops_all(meeting: Meeting) -> None:
    short = {"device": "cuda", "device_forced": False, "gpus": 7}
    with pytest.raises(RunEndedError, match="7 of 8"):
        meeting.join(node(0, **short), node(1, **short))


def test_without_node_0_a_node_gives_up_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "SETTLE_S", 0.1)
    monkeypatch.setattr(member, "ANSWER_MARGIN_S", 0.1)
    alone = Member(plan(join_timeout_s=0.3), 1, channel.ChannelCaller(ADDRESS, 1), "word")
    with pytest.raises(RunEndedError, match="node 1 start"):
        alone.join(node(1), time.monotonic() + 30)


def test_a_death_on_one_node_ends_the_run_on_all(meeting: Meeting) -> None:
    meeting.join()
    meeting.tick(0.2, report(rank=0), report())
    with pytest.raises(RunEndedError, match=r"rank 1.*node 1.*SIGKILL"):
        meeting.tick(5, report(rank=0), report(gone=True, code=-9))
    assert "killed" in meeting.kinds()
    meeting.coordinator.leave(report(rank=0), "rank 1 was killed")
    with pytest.raises(RunEndedError, match="0: rank 1"):
        meeting.tick(5, None, report())


def test_a_node_that_is_stopped_from_outside_is_no_culprit(meeting: Meeting) -> None:
    meeting.join()
    meeting.tick(0.2, report(rank=0), report())
    meeting.member.leave(report(gone=True, code=-9), "stopped by SIGTERM")
    with pytest.raises(RunEndedError, match=r"node 1: .*SIGTERM"):
        meeting.tick(5, report(rank=0))
    assert meeting.kinds() == ["nodes"]


def test_a_node_that_falls_silent_is_the_culprit_and_one_that_hangs_up_too(meeting: Meeting) -> None:
    meeting.join()
    meeting.tick(0.2, report(rank=0), report())
    with pytest.raises(RunEndedError, match=r"node 1 .*silent"):
        meeting.tick(5, report(rank=0))
    other = Meeting()
    other.join()
    other.tick(0.2, report(rank=0), report())
    other.member.finish([], time.monotonic())  # hangs up without a goodbye
    with pytest.raises(RunEndedError, match="node 1 vanished"):
        other.tick(5, report(rank=0))
    other.coordinator.over(Over(verdict="FAIL", headline="", exit_code=1))


def test_a_node_0_that_falls_silent_or_vanishes_ends_the_others(meeting: Meeting) -> None:
    meeting.join()
    meeting.tick(0.2, report(rank=0), report())
    with pytest.raises(RunEndedError, match=r"node 0 .*silent"):
        meeting.tick(5, None, report())
    other = Meeting()
    other.join()
    other.coordinator._listener.close()
    with pytest.raises(RunEndedError, match="node 0 vanished"):
        other.tick(5, None, report())


def test_the_planned_kill_is_reported_to_all_nodes(meeting: Meeting) -> None:
    meeting.join()
    planned = NodeReport(vitals=report(gone=True, code=-9).vitals, planned=True)
    meeting.tick(1.0, report(rank=0), planned)
    assert meeting.coordinator.planned
    assert meeting.kinds() == ["nodes"]
    assert meeting.member.planned


def test_nonsense_from_a_node_is_no_report(meeting: Meeting) -> None:
    meeting.join()
    meeting.tick(0.1, report(rank=0), report())
    for nonsense in ({"vitals": 3}, {"torchrun": "x"}, {"unknown": 1}):
        meeting.member._caller.send({"type": "beat", "report": nonsense})
    meeting.tick(0.4, report(rank=0), report())
    assert meeting.kinds() == ["nodes"]
