from hypothesis import given
from hypothesis import strategies as st

from smoke_training.probes.state.resume import choose
from smoke_training.probes.state.store import Part


def part(rank: int, step: int, fault: str | None = None, readable: bool = True) -> Part:
    return Part(
        rank=rank, node=0, step=step, path=f"/c/step-{step}/rank-{rank}", fault=fault, readable=readable
    )


def test_ranks_resume_from_the_newest_step_that_all_of_them_have() -> None:
    parts = [part(0, 4), part(0, 8), part(1, 4), part(1, 8), part(1, 12), part(0, 12, "missing")]
    found = choose(parts, committed=[4, 8], ranks=2, path="/c")
    assert (found.resumed_from, found.committed, found.damaged) == (8, 8, ())


def test_a_kill_during_a_checkpoint_is_no_damage_but_lost_bytes_of_a_committed_one_are() -> None:
    parts = [part(0, 4), part(1, 4), part(0, 8), part(1, 8, "half")]
    assert choose(parts, committed=[4], ranks=2, path="/c").damaged == ()
    found = choose(parts, committed=[4, 8], ranks=2, path="/c")
    assert (found.resumed_from, found.committed) == (4, 8)
    assert [(item.rank, item.step) for item in found.damaged] == [(1, 8)]


def test_shards_that_prove_whole_count_although_the_mark_is_missing() -> None:
    found = choose([part(0, 4), part(1, 4)], committed=[], ranks=2, path="/c")
    assert (found.resumed_from, found.committed) == (4, 4)


def test_a_rank_that_brings_nothing_is_not_overlooked() -> None:
    assert choose([part(0, 4)], committed=[], ranks=2, path="/c").resumed_from is None
    assert choose([], committed=[], ranks=2, path="/c").resumed_from is None
    assert choose([], committed=[], ranks=0, path="/c").resumed_from is None


def test_what_cannot_be_read_is_neither_whole_nor_damaged() -> None:
    found = choose([part(0, 4), part(1, 4, "EACCES", readable=False)], committed=[4], ranks=2, path="/c")
    assert (found.resumed_from, found.damaged) == (None, ())
    assert [item.rank for item in found.unreadable] == [1]


parts = st.builds(
    part, st.integers(0, 3), st.integers(1, 6), st.sampled_from([None, None, None, "torn"]), st.booleans()
)


@given(st.lists(parts, unique_by=lambda p: (p.rank, p.step)), st.sets(st.integers(1, 6)))
def test_the_chosen_step_is_whole_and_no_newer_one_is(found: list[Part], marks: set[int]) -> None:
    whole = {
        step
        for step in range(1, 7)
        if all(any(p.rank == rank and p.step == step and p.fault is None for p in found) for rank in range(4))
    }
    assert choose(found, marks, 4, "/c").resumed_from == max(whole, default=None)
