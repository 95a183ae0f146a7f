"""`trainstack ledger`: the books in every format, and problems with them."""

import base64
import csv
import gzip
import io
import json
from typing import Any

import pytest

from agents.gpu_ledger import book_text
from agents.gpu_ledger.archive import Archive, ArchivePart
from agents.gpu_ledger.book_store import KEY
from agents.gpu_ledger.entries import Note
from agents.gpu_ledger.ledger import TeamBook
from infra.clouds.kubectl import ApiResponse
from infra.errors import UserError
from tests.agents.gpu_ledger.workloads import GPU, MIDNIGHT, POOL, said
from trainstack.ledger import books, forms

NEXT = "2026-12-01"
MONTH, NAMESPACE = "2026-11", "team-research"
TERMS = {"prices": {POOL: {GPU: 4.0}}, "budget": {"usd": 100, "gpu_hours": None, "stop": True, "exempt": []}}


def book(terms: object = TERMS) -> TeamBook:
    """8 GPUs for an hour on each of two days, of which half an hour with pods ready."""
    made = TeamBook("Research", MIDNIGHT)
    made.terms = dict(terms)  # type: ignore[call-overload]  # what the collector gives it
    for day in range(2):
        at = MIDNIGHT + day * 86_400
        one = said(f"u{day}", admitted=at, ready=at + 1800, finished=at + 3600)
        made.observe(one, at + 3600, watched=True)
    key = ("2026-11-25", "none", POOL, GPU)
    made.measure({key: (6 * 3600, 4 * 3600)}, MIDNIGHT + 7200)
    made.uncertain = {("2026-11-25", POOL, GPU): 7200}
    made.note(Note(MIDNIGHT, "held", "job-a", "over budget"))
    return made


def served(**config_maps: str) -> books.Ask:
    def ask(path: str) -> ApiResponse:
        where, _, name = path.rpartition("/")
        assert where == f"/api/v1/namespaces/{NAMESPACE}/configmaps"
        text = config_maps.get(name.replace("-", "_"))
        if text is None:
            return ApiResponse(404, {"reason": "NotFound"})
        content = base64.b64encode(gzip.compress(text.encode())).decode()
        return ApiResponse(200, {"binaryData": {KEY: content}})

    return ask


def archived(made: TeamBook, terms: Any) -> str:
    """The first archive of the month."""
    return Archive("Research", 1, ArchivePart(), ArchivePart(*made.before(NEXT)), terms).text()


def read(made: TeamBook, **more: str) -> books.Month:
    return books.read(served(gpu_ledger=book_text.text(made), **more), "Research", NAMESPACE, MONTH)


def test_the_table_has_hours_and_dollars_and_its_notes_the_rest() -> None:
    months = [read(book())]
    assert forms.rows(months) == [
        ("Research", "none", "a100", "16.00", "8.00", "4.00", "2.00", "10.00", "64.00")
    ]
    budget, uncertain, *_ = notes = forms.notes(months, MONTH)
    assert "64.00 of 100.00 USD" in budget and "64%" in budget and "2.00 more" in uncertain
    assert any("2026-11-25T00:00:00Z held job-a" in note for note in notes)


def test_a_pool_without_a_price_has_hours_and_no_dollars() -> None:
    found = read(book({"prices": {}, "budget": None}))
    assert forms.rows([found])[0][-2:] == ("10.00", "unknown")
    assert any("a100" in note for note in forms.notes([found], MONTH))
    rows = list(csv.DictReader(io.StringIO(forms.as_csv([found], MONTH))))
    assert [(row["day"], row["held_hours"], row["usd"]) for row in rows] == [
        ("2026-11-25", "8.0", ""),
        ("2026-11-26", "8.0", ""),
    ]


def test_focus_has_costs_once_and_no_bill() -> None:
    rows = list(csv.DictReader(io.StringIO(forms.focus([read(book())], MONTH))))
    assert [float(row["EffectiveCost"]) for row in rows] == [32.0, 32.0]
    assert {row["BilledCost"] for row in rows} == {"0"}
    first = rows[0]
    assert (first["BillingPeriodStart"], first["BillingPeriodEnd"]) == (
        "2026-11-01T00:00:00Z",
        "2026-12-01T00:00:00Z",
    )
    assert (first["ConsumedQuantity"], first["ConsumedUnit"]) == ("8.0", "Hours")
    assert json.loads(first["Tags"]) == {"trainstack.dev/project": "none"}


def test_json_says_until_when_it_is_complete() -> None:
    made = book()
    made.seen = MIDNIGHT + 60
    (team,) = forms.documents([read(made)])
    assert team["seen"] == "2026-11-25T00:01:00Z" and team["unpriced_pools"] == []
    assert sum(line["held_hours"] for line in team["lines"]) == 16


def test_a_month_that_was_moved_is_read_with_its_own_prices() -> None:
    made = book()
    archive = archived(made, {"prices": {POOL: {GPU: 1.0}}, "budget": None})
    # Written, and not yet taken out of the book: it is not read twice.
    assert read(made, gpu_ledger_2026_11=archive).held_hours == 16
    made.archive(NEXT)
    made.seen = MIDNIGHT + 30 * 86_400
    found = read(made, gpu_ledger_2026_11=archive)
    assert (found.held_hours, found.usd) == (16, 16)


def test_a_day_without_figures_is_unknown_and_not_idle() -> None:
    """The first day has figures for 6 of its 8 GPU-hours, the second has none."""
    (team,) = forms.documents([read(book())])
    names = ("held_hours", "used_hours", "idle_hours", "unknown_hours")
    assert [[line[name] for name in names] for line in team["lines"]] == [
        [8.0, 4.0, 2.0, 2.0],
        [8.0, None, None, 8.0],
    ]
    rows = list(csv.DictReader(io.StringIO(forms.focus([read(book())], MONTH))))
    assert [[row[f"x_{name}Hours"] for name in ("Used", "Idle", "Unknown")] for row in rows] == [
        ["4.0", "2.0", "2.0"],
        ["", "", "8.0"],
    ]
    unmeasured = book()
    unmeasured.uses = {}
    assert forms.rows([read(unmeasured)])[0][3:] == ("16.00", "8.00", "-", "-", "16.00", "64.00")


def test_figures_of_a_month_that_was_moved_belong_to_the_hours_that_were_booked_later() -> None:
    """A job that goes on at the end of the month: its figures are in the archive, its hours in the book."""
    made, admitted = TeamBook("Research", MIDNIGHT), MIDNIGHT + 5 * 86_400
    key = ("2026-11-30", "none", POOL, GPU)
    made.observe(said(admitted=admitted), admitted, watched=True)
    made.measure({key: (8 * 3600, 3600)}, admitted + 86_400)
    moved = archived(made, TERMS)
    made.archive(NEXT)
    made.observe(said(admitted=admitted, finished=admitted + 7200), admitted + 90_000, watched=True)
    made.measure({key: (3600, 1800)}, admitted + 90_000)
    (line,) = read(made, gpu_ledger_2026_11=moved).lines
    assert (line.held_hours, line.used_hours, line.idle_hours, line.unknown_hours) == (16, 1.5, 7.5, 7)


def test_no_book_yet_is_no_empty_book() -> None:
    with pytest.raises(UserError) as caught:
        books.read(served(), "Research", NAMESPACE, MONTH)
    assert caught.value.codes == (("ledger-book-missing", "team"),)


@pytest.mark.parametrize(
    "stored",
    [
        {},
        {"binaryData": {KEY: "bm90IGd6aXA="}},
        {"data": {"book.json": "[]"}},
        {"data": {"book.json": "{}"}},
        {"binaryData": {KEY: base64.b64encode(gzip.compress(b"{}")[:12] + b"\xff" * 9).decode()}},
    ],
)  # fmt: skip
def test_a_book_that_cannot_be_read_is_named(stored: dict[str, Any]) -> None:
    with pytest.raises(UserError) as caught:
        books.read(lambda _: ApiResponse(200, stored), "Research", NAMESPACE, MONTH)
    assert caught.value.codes == (("ledger-book-unreadable", "book"),)


def test_a_refusal_is_not_a_missing_book() -> None:
    with pytest.raises(UserError) as caught:
        books.read(lambda _: ApiResponse(403, {"reason": "Forbidden"}), "Research", NAMESPACE, MONTH)
    assert caught.value.codes == (("cluster-access-denied", "book"),)
