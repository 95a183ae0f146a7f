"""Accusations of hanging or killed ranks, without any process."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smoke_training.evidence.liveness import Hung, Killed, NeverStarted
from smoke_training.runtime.control.vitals import Vital
from smoke_training.runtime.control.watchdog import (
    CERTAIN_S,
    PATIENCE_FACTOR,
    SETTLE_S,
    Broke,
    NodeView,
    SilenceLimits,
    Watchdog,
)

LIMITS = SilenceLimits(hang_s=30.0, start_s=120.0)


def vital(rank: int, **changes: Any) -> Vital:
    known = {"pid": 100 + rank, "state": "S", "attempt": 0, "sequence": 10, "beats": 50, "phase": "training"}
    return Vital(rank=rank, **{**known, **changes})


def nodes(*vitals: Vital, **changes: Any) -> list[NodeView]:
    """One node per rank; `changes` apply to the last."""
    views = [NodeView(node=v.rank, vitals=(v,)) for v in vitals]
    return [*views[:-1], replace(views[-1], **changes)]


def decide(views: list[NodeView], planned: bool = False, after: float = 60.0) -> tuple[object, ...]:
    """The verdict once everything had time to settle."""
    dog = Watchdog(LIMITS)
    dog.decide(0.0, views, planned)
    return dog.decide(after, views, planned)


def test_ranks_that_go_on_are_left_alone() -> None:
    assert decide(nodes(vital(0), vital(1, sequence=11))) == ()


def test_a_stopped_rank_is_named_though_it_is_in_the_same_exchange_as_all_others() -> None:
    stopped = vital(1, state="T", idle_s=31, stopped_s=31)
    (found,) = decide(nodes(vital(0, idle_s=31), stopped))
    assert isinstance(found, Hung)
    assert (found.how, found.rank, found.phase, found.sequence) == ("stopped", 1, "training", 10)


def test_a_rank_that_was_stopped_for_less_than_the_limit_is_slow_and_not_hung() -> None:
    assert decide(nodes(vital(0, idle_s=29), vital(1, state="T", idle_s=29, stopped_s=29))) == ()


def test_the_rank_that_all_others_wait_for_is_named() -> None:
    views = nodes(vital(0, sequence=11, idle_s=31), vital(1, sequence=10, idle_s=31), vital(2, sequence=11))
    (found,) = decide(views)
    assert isinstance(found, Hung)
    assert (found.how, found.rank, found.sequence, found.foremost) == ("behind", 1, 10, 11)


def test_a_rank_behind_that_computes_or_waits_for_a_disk_gets_more_time() -> None:
    ahead = vital(0, sequence=11, idle_s=40)
    assert decide(nodes(ahead, vital(1, idle_s=40, busy_s=39))) == ()
    assert decide(nodes(ahead, vital(1, idle_s=40, phase="storage"))) == ()
    late = PATIENCE_FACTOR * LIMITS.hang_s + 1
    for slow in (vital(1, idle_s=late, busy_s=late), vital(1, idle_s=late, phase="storage")):
        (found,) = decide(nodes(vital(0, sequence=11, idle_s=late), slow))
        assert isinstance(found, Hung)
        assert found.limit_s == PATIENCE_FACTOR * LIMITS.hang_s


def test_while_ranks_start_the_patience_is_that_of_joining() -> None:
    def views(idle: float) -> list[NodeView]:
        return nodes(vital(0, sequence=1, phase="join"), vital(1, sequence=0, phase="start", idle_s=idle))

    assert decide(views(119)) == ()
    (found,) = decide(views(121))
    assert isinstance(found, Hung)


def test_when_all_wait_in_the_same_exchange_the_transport_is_accused() -> None:
    assert decide(nodes(vital(0, idle_s=59), vital(1, idle_s=59))) == ()
    (found,) = decide(nodes(vital(0, idle_s=61), vital(1, idle_s=61)))
    assert isinstance(found, Hung)
    assert (found.how, found.rank, found.node) == ("stalled", None, None)


def test_the_last_rank_that_does_not_finish_is_behind_the_finished_ones() -> None:
    (found,) = decide(nodes(vital(0, status="DONE", gone=True), vital(1, idle_s=31)))
    assert isinstance(found, Hung)
    assert found.rank == 1


def test_a_killed_rank_is_named_and_the_ones_that_lost_their_peer_are_not() -> None:
    dog = Watchdog(LIMITS)
    lost = vital(0, status="BROKE", gone=True, code=1, words="connection closed")
    aborted = vital(2, gone=True, code=-6)
    views = nodes(lost, vital(1, gone=True, code=-9), aborted)
    assert dog.decide(0.0, views, planned=False) == ()
    (found,) = dog.decide(CERTAIN_S + 0.01, views, planned=False)
    assert isinstance(found, Killed)
    assert (found.what, found.rank, found.signal) == ("rank", 1, 9)


def test_an_unknown_signal_is_awaited_and_then_counts_as_killed() -> None:
    dog = Watchdog(LIMITS)
    views = nodes(vital(0), vital(1, gone=True))
    assert dog.decide(0.0, views, planned=False) == ()
    assert dog.decide(SETTLE_S - 0.1, views, planned=False) == ()
    (found,) = dog.decide(SETTLE_S + 0.1, views, planned=False)
    assert isinstance(found, Killed)
    assert (found.rank, found.signal) == (1, None)


def test_a_torchrun_that_broke_explains_the_ranks_that_ended_with_it() -> None:
    views = nodes(vital(0, gone=True), torchrun=1)
    assert decide(views) == ()
    (found,) = decide(nodes(vital(0, closed=True, gone=True), vital(1, gone=True, code=7), torchrun=1))
    assert isinstance(found, Broke) and found.rank == 1


def test_of_several_that_ended_in_ways_that_peers_cause_the_first_is_named() -> None:
    dog = Watchdog(LIMITS)
    first = nodes(vital(0), vital(1, gone=True, code=-15))
    assert dog.decide(0.0, first, planned=False) == ()
    both = nodes(vital(0, gone=True, code=-15), vital(1, gone=True, code=-15))
    (found,) = dog.decide(SETTLE_S, both, planned=False)
    assert isinstance(found, Killed)
    assert found.rank == 1


def test_ranks_that_torchrun_ended_are_not_accused() -> None:
    ended = vital(0, gone=True, code=-15, closed=True)
    assert decide(nodes(ended, vital(1))) == ()  # torchrun has not reported the first one yet
    broke = vital(1, status="BROKE", gone=True, code=1, words="OSError: disk")
    (found,) = decide(nodes(ended, broke))
    assert isinstance(found, Broke)
    assert found.rank == 1
    (found,) = decide(nodes(ended, vital(1, gone=True, code=127, beats=0)))
    assert isinstance(found, Broke)
    assert found.rank == 1


def test_the_planned_kill_is_no_incident_and_neither_is_what_follows_from_it() -> None:
    dead = [vital(0, status="BROKE", gone=True, phase="interrupted"), vital(1, gone=True, code=-9)]
    assert decide(nodes(*dead), planned=True, after=LIMITS.start_s - 1) == ()
    again = [vital(rank, attempt=1, phase="resume") for rank in (0, 1)]
    views = [NodeView(node=v.rank, vitals=(v, w)) for v, w in zip(dead, again, strict=True)]
    assert decide(views, planned=True, after=1000.0) == ()


def test_a_kill_after_the_planned_one_is_an_incident() -> None:
    views = [
        NodeView(node=0, vitals=(vital(0, attempt=0, gone=True, code=-9), vital(0, attempt=1))),
        NodeView(node=1, vitals=(vital(1, attempt=1, gone=True, code=-9, phase="resume"),)),
    ]
    (found,) = decide(views, planned=True)
    assert isinstance(found, Killed)
    assert (found.rank, found.phase) == (1, "resume")


def test_an_exception_is_reported_as_such_and_not_as_a_kill() -> None:
    (found,) = decide(nodes(vital(0), vital(1, status="BROKE", gone=True, code=1, words="OSError: disk")))
    assert found == Broke(rank=1, node=1, phase="training", words="OSError: disk")
    (found,) = decide(nodes(vital(0), vital(1, gone=True, code=3)))
    assert isinstance(found, Broke)
    assert "status 3" in found.words


def test_a_lost_launcher_explains_the_dead_ranks_around_it() -> None:
    views = nodes(vital(0, status="BROKE", gone=True, words="reset"), vital(1), connected=False)
    (found,) = decide(views)
    assert isinstance(found, Killed)
    assert (found.what, found.node, found.rank) == ("launcher", 1, None)


def test_a_launcher_that_said_goodbye_may_go() -> None:
    gone = vital(1, gone=True, code=-9)
    assert decide(nodes(vital(0), gone, connected=False, said_bye=True, silent_s=99)) == ()


def test_a_silent_launcher_is_named_before_the_rank_that_waits_for_its_ranks() -> None:
    (found,) = decide(nodes(vital(0, idle_s=31, sequence=9), vital(1), silent_s=30.5))
    assert isinstance(found, Hung)
    assert (found.what, found.node) == ("launcher", 1)


@pytest.mark.parametrize(
    ("changes", "kind"), [({"torchrun": -9}, Killed), ({"torchrun_stopped_s": 31.0}, Hung)]
)
def test_a_torchrun_that_is_killed_or_stopped_is_named(changes: dict[str, Any], kind: type) -> None:
    dead = {"gone": True, "code": -9} if kind is Killed else {}
    (found,) = decide(nodes(vital(0), vital(1, **dead), **changes))
    assert isinstance(found, kind)
    assert isinstance(found, Killed | Hung)
    assert (found.what, found.node, found.rank) == ("torchrun", 1, None)


def test_a_rank_that_never_starts_is_named_after_the_time_to_join() -> None:
    views = nodes(vital(0, phase="join"), Vital(rank=1))
    assert decide(views, after=119.0) == ()
    (found,) = decide(views, after=120.0)
    assert found == NeverStarted(rank=1, node=1, attempt=0, waited_s=120.0)


@given(
    st.lists(
        st.tuples(
            st.integers(0, 40),
            st.floats(0, 29.9),
            st.sampled_from("RSDT"),
            st.sampled_from(["training", "pairs"]),
        ),
        min_size=1,
        max_size=8,
    )
)
def test_no_rank_is_accused_before_the_limit_whatever_the_others_do(
    ranks: list[tuple[int, float, str, str]],
) -> None:
    views = nodes(
        *(
            vital(
                rank,
                sequence=sequence,
                idle_s=idle,
                stopped_s=idle if state == "T" else 0.0,
                state=state,
                phase=phase,
            )
            for rank, (sequence, idle, state, phase) in enumerate(ranks)
        )
    )
    assert decide(views, after=1e6) == ()


@given(st.integers(2, 8), st.data())
def test_a_waiting_rank_is_never_accused_in_place_of_the_one_behind(ranks: int, data: st.DataObject) -> None:
    culprit = data.draw(st.integers(0, ranks - 1))
    views = nodes(
        *(
            vital(rank, sequence=10 if rank == culprit else 11, idle_s=data.draw(st.floats(30, 500)))
            for rank in range(ranks)
        )
    )
    (found,) = decide(views)
    assert isinstance(found, Hung)
    assert found.rank == culprit
