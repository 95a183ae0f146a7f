"""The book: what an attempt held and how much of that is certain, over midnights, restarts and bad clocks."""

from agents.gpu_ledger import book_text
from agents.gpu_ledger.archive import ArchivePart
from agents.gpu_ledger.attempts import month_end, seen
from agents.gpu_ledger.ledger import TeamBook
from agents.gpu_ledger.row import LedgerRow
from agents.shared.times import stamp
from tests.agents.gpu_ledger.workloads import DAY, GPU, MIDNIGHT, POOL, said, workload

T = MIDNIGHT


def book(begun: int = T) -> TeamBook:
    return TeamBook("A", begun)


def held(made: TeamBook) -> int:
    return sum(row.held_s for row in made.totals())


def running(made: TeamBook) -> int:
    return sum(row.running_s for row in made.totals())


def uncertain(made: TeamBook) -> int:
    return sum(made.uncertain.values())


def again(made: TeamBook) -> TeamBook:
    """The book as another process reads it."""
    text = book_text.text(made)
    read = book_text.parse(text)
    assert book_text.text(read) == text
    return read


def test_held_from_admission_to_the_end_and_running_while_pods_are_ready() -> None:
    made = book()
    made.observe(said(admitted=T + 10), T + 10, watched=True)
    made.observe(said(admitted=T + 10, ready=T + 100), T + 100, watched=True)
    made.observe(said(admitted=T + 10, unready=T + 200), T + 200, watched=True)
    made.observe(said(admitted=T + 10, ready=T + 230), T + 230, watched=True)
    made.observe(said(admitted=T + 10, ready=T + 230, finished=T + 300), T + 301, watched=True)
    assert made.totals() == [LedgerRow("2026-11-25", "none", POOL, GPU, 8 * 290, 8 * 170)]
    assert uncertain(made) == 0


def test_an_attempt_is_split_at_midnight_and_at_the_end_of_the_month() -> None:
    made = book()
    start = month_end(T) - DAY - 100
    made.observe(said(admitted=start, ready=start, finished=start + 2 * DAY), start + 2 * DAY, watched=True)
    assert [(row.day, row.held_s) for row in made.totals()] == [
        ("2026-11-29", 800),
        ("2026-11-30", 8 * DAY),
        ("2026-12-01", 8 * (DAY - 100)),
    ]
    assert sum(row.held_s for row in made.totals("2026-12")) == 8 * (DAY - 100)


def test_shown_once_more_nothing_is_booked_twice() -> None:
    made = book()
    states = [said(admitted=T), said(admitted=T, ready=T + 5), said(admitted=T, ready=T + 5, finished=T + 60)]
    for state in [*states, *states[-1:]] * 2:
        made = again(made)
        made.observe(state, T + 61, watched=False)
    assert held(made) == 8 * 60 and made.open == {}


def test_pods_that_are_done_hold_nothing() -> None:
    made = book()
    made.observe(said(admitted=T, gpus=16, pods=2), T, watched=True)
    made.observe(said(admitted=T, gpus=16, pods=2, done=1, done_at=T + 50), T + 51, watched=True)
    made.observe(
        said(admitted=T, gpus=16, pods=2, done=2, done_at=T + 70, finished=T + 75), T + 75, watched=True
    )
    assert held(made) == 16 * 50 + 8 * 20 and uncertain(made) == 0


def test_pods_that_ended_unseen_are_uncertain_between_what_is_sure() -> None:
    made = book()
    made.observe(said(admitted=T, gpus=32, pods=4), T, watched=True)
    made.seen = T + 20
    made.observe(said(admitted=T, gpus=32, pods=4, done=3, done_at=T + 50), T + 60, watched=False)
    made.seen = T + 60
    # 32 until it was last seen; then at least the 8 that are left, and 24 more or not.
    assert held(made) == 32 * 20 + 8 * 40 and uncertain(made) == 24 * 30


def test_an_unobserved_eviction_is_booked_by_kueues_count() -> None:
    made = book()
    made.observe(said(admitted=T), T, watched=True)
    made.seen = T + 30
    made = again(made)
    made.observe(said(admitted=T + 500, past=90), T + 510, watched=False)
    made.seen = T + 510
    assert held(made) == 8 * (90 + 10) and uncertain(made) == 0


def test_unobserved_attempts_are_uncertain_with_their_bound() -> None:
    made = book()
    made.seen = T + 900
    made.observe(said(admitted=T + 800, past=90, created=T + 1), T + 900, watched=False)
    assert held(made) == 8 * 100 and uncertain(made) == 8 * 90
    # What was before the book is not its business.
    older = book(begun=T + 850)
    older.observe(said(admitted=T + 800, past=90, created=T + 1), T + 900, watched=False)
    assert held(older) == 8 * 50 and uncertain(older) == 0


def test_one_that_vanished_is_booked_until_it_was_seen() -> None:
    made = book()
    made.observe(said(admitted=T, limit=200), T, watched=True)
    made.seen = T + 60
    made = again(made)
    made.vanished("u1", T + 1000)
    assert held(made) == 8 * 60 and uncertain(made) == 8 * 140  # Kueue ends it after 200 s
    assert [note.what for note in made.notes] == ["uncertain"]


def test_one_that_was_deleted_ends_then() -> None:
    made = book()
    made.observe(said(admitted=T), T, watched=True)
    made.deleted("u1", T + 33)
    assert held(made) == 8 * 33 and made.booked == {}


def test_a_clock_that_jumps_back_is_named_and_nothing_is_negative() -> None:
    made = book()
    made.observe(said(admitted=T + 100, gpus=16, pods=2), T + 100, watched=True)
    made.observe(said(admitted=T + 100, gpus=16, pods=2, done=1, done_at=T + 200), T + 200, watched=True)
    made.observe(
        said(admitted=T + 100, gpus=16, pods=2, done=1, done_at=T + 200, finished=T + 150), T, watched=True
    )
    assert held(made) == 16 * 100 and uncertain(made) == 8 * 50
    assert "clock" in {note.what for note in made.notes}
    made.clock_jumped(T + 90, -3600)
    assert made.seen == T + 90 and "-3600 s" in made.notes[-1].why


def test_projects_pools_and_parents() -> None:
    made = book()
    labels = {"trainstack.dev/project": "llama"}
    made.observe(said(admitted=T, finished=T + 10, labels=labels), T + 10, watched=True)
    assert [row.project for row in made.totals()] == ["llama"]
    assert seen(workload(labels={"kueue.x-k8s.io/concurrent-admission-parent": "true"}, admitted=T)) is None


def test_a_job_without_gpus_leaves_no_trace() -> None:
    made = book()
    made.observe(said(admitted=T, gpus=0, finished=T + 10), T + 10, watched=True)
    assert book_text.text(made) == book_text.text(book())


def test_a_month_that_is_over_is_moved_and_open_attempts_come_later() -> None:
    made = book()
    made.observe(said("u1", admitted=T, finished=T + 10), T + 10, watched=True)
    made.observe(said("u2", admitted=T + 20), T + 20, watched=True)
    later = month_end(T) + DAY
    made.seen = later
    moved = ArchivePart(*made.before("2026-12-01"))
    made.archive("2026-12-01")
    assert [row.held_s for row in moved.rows] == [80]
    made.observe(said("u2", admitted=T + 20, finished=later), later, watched=True)
    rest = sum(row.held_s for row in made.totals("2026-11"))
    assert rest == 8 * (month_end(T) - T - 20)
    assert sum(row.held_s for row in again(made).of_month("2026-11")) == 80 + rest
    assert stamp(later).startswith("2026-12")


def test_pods_are_done_when_the_api_server_wrote_it_though_its_clock_is_read_a_second_late() -> None:
    """The header `Date` has whole seconds, cut off: a change may be ahead of what is read there."""
    book = TeamBook("A", MIDNIGHT)
    book.observe(said(admitted=MIDNIGHT, pods=2), MIDNIGHT, watched=True)
    done = said(admitted=MIDNIGHT, pods=2, done=2, done_at=MIDNIGHT + 10)
    book.observe(done, MIDNIGHT + 9, watched=True)
    finished = said(admitted=MIDNIGHT, pods=2, done=2, done_at=MIDNIGHT + 10, finished=MIDNIGHT + 10)
    book.observe(finished, MIDNIGHT + 11, watched=True)
    (row,) = book.totals()
    assert (row.held_s, book.uncertain) == (8 * 10, {})
