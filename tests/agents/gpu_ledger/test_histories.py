"""Random histories of Workloads, seen by a collector that dies and comes back."""

from dataclasses import dataclass, field
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from agents.gpu_ledger import book_text
from agents.gpu_ledger.ledger import TeamBook
from tests.agents.gpu_ledger.workloads import MIDNIGHT, said

GPUS = 8


@dataclass
class Life:
    """A Workload: what Kueue writes of it, and what it really held."""

    uid: str
    admitted: int | None = None
    released: int | None = None
    finished: int | None = None
    past: int = 0
    held: int = 0
    gone: bool = False

    def step(self, what: str, now: int) -> bool:
        """Let something happen, where it can; whether it did."""
        running = self.admitted is not None and self.finished is None
        if self.gone:
            return False
        if what == "admit" and self.admitted is None and self.finished is None:
            self.admitted, self.released = now, None
        elif what == "evict" and running:
            assert self.admitted is not None
            self.held += now - self.admitted
            self.past += now - self.admitted
            self.admitted, self.released = None, now
        elif what == "finish" and running:
            assert self.admitted is not None
            self.held += now - self.admitted
            self.finished = now
        elif what == "delete":
            if running and self.admitted is not None:
                self.held += now - self.admitted
            self.gone = True
        else:
            return False
        return True

    def seen(self) -> Any:
        return said(
            self.uid, admitted=self.admitted, released=self.released, finished=self.finished, past=self.past,
            gpus=GPUS, created=MIDNIGHT + 1,
        )  # fmt: skip


@dataclass
class Watching:
    """A collector: what it has in memory, and what it kept."""

    book: TeamBook = field(default_factory=lambda: TeamBook("A", MIDNIGHT))
    kept: str = ""
    up: bool = True

    def look(self, life: Life, now: int) -> None:
        if not self.up:
            return
        # A deletion comes with the last state, which says nothing of an end that is the deletion's own.
        self.book.observe(life.seen(), now, watched=True)
        if life.gone:
            self.book.deleted(life.uid, now)
        self.book.seen = now

    def keep(self, now: int) -> None:
        if self.up:
            self.book.seen = now
            self.kept = book_text.text(self.book)

    def die(self) -> None:
        self.up = False

    def come_back(self, lives: list[Life], now: int) -> None:
        if self.up:
            return
        self.up = True
        self.book = book_text.parse(self.kept) if self.kept else TeamBook("A", MIDNIGHT)
        existing = [life for life in lives if not life.gone]
        for life in existing:
            self.book.observe(life.seen(), now, watched=False)
        for uid in set(self.book.open) - {life.uid for life in existing}:
            self.book.vanished(uid, now)
        self.book.forget(life.uid for life in existing)
        self.book.seen = now


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["admit", "admit", "evict", "finish", "delete", "keep", "die", "come back"]),
        st.integers(0, 3),
        st.integers(1, 40_000),
    ),
    max_size=40,
)


def played(
    steps: list[tuple[str, int, int]], *, deaths: bool, deletions: bool
) -> tuple[Watching, list[Life]]:
    lives, watching, now = [Life(f"u{index}") for index in range(4)], Watching(), MIDNIGHT + 2
    for what, index, wait in steps:
        now += wait
        if what == "keep":
            watching.keep(now)
        elif what == "die" and deaths:
            watching.die()
        elif what == "come back":
            watching.come_back(lives, now)
        elif (what != "delete" or deletions) and lives[index].step(what, now):
            watching.look(lives[index], now)
    now += 1
    watching.come_back(lives, now)
    for life in lives:
        if life.step("finish", now):
            watching.look(life, now)
    return watching, lives


def sums(watching: Watching, lives: list[Life]) -> tuple[int, int, int]:
    held = sum(row.held_s for row in watching.book.totals())
    return held, sum(watching.book.uncertain.values()), GPUS * sum(life.held for life in lives)


@settings(max_examples=150, deadline=None)
@given(STEPS)
def test_who_never_dies_books_every_second_and_knows_it(steps: list[tuple[str, int, int]]) -> None:
    held, uncertain, truth = sums(*played(steps, deaths=False, deletions=True))
    assert (held, uncertain) == (truth, 0)


@settings(max_examples=150, deadline=None)
@given(STEPS)
def test_who_dies_books_no_second_twice_and_bounds_what_it_missed(steps: list[tuple[str, int, int]]) -> None:
    """Of Workloads that still exist: one that came and went unseen leaves nothing."""
    held, uncertain, truth = sums(*played(steps, deaths=True, deletions=False))
    assert held <= truth <= held + uncertain


@settings(max_examples=150, deadline=None)
@given(STEPS)
def test_deleted_or_not_no_second_is_booked_twice(steps: list[tuple[str, int, int]]) -> None:
    held, _, truth = sums(*played(steps, deaths=True, deletions=True))
    assert held <= truth
