"""Ledgers of dev-aws, made by the book itself from Workloads: one team, pool a100, 8 GPUs per node."""

import base64
import datetime
import gzip
from collections.abc import Callable, Iterable
from typing import Any

from agents.gpu_ledger import book_text
from agents.gpu_ledger.book_store import KEY
from agents.gpu_ledger.ledger import TeamBook
from infra.clouds.kubectl import ApiResponse
from tests.agents.gpu_ledger.workloads import DAY, GPU, POOL, said
from trainstack.capacity.history import LedgerMonth, parsed
from trainstack.ledger import books, forms
from trainstack.ledger.periods import following

TEAM, SPACE = "Research", "team-research"
USD = 2.5
BEGUN = int(datetime.datetime(2026, 8, 1, tzinfo=datetime.UTC).timestamp())


def book(
    nodes: Callable[[int], float], days: int, *, begun: int = BEGUN, price: float | None = USD
) -> TeamBook:
    """A book of so many days; `nodes(day)`: nodes that are held on a day, as a mean."""
    made = TeamBook(TEAM, begun)
    made.terms = {"prices": {POOL: {GPU: price}} if price else {}, "budget": None}
    for day in range(days):
        left, at = nodes(day), begun + day * DAY
        number = 0
        while left > 0:
            share, number = min(1.0, left), number + 1
            left -= share
            end = at + int(share * DAY)
            uid = f"u{day}-{number}"
            made.observe(said(uid, admitted=at, ready=at, finished=end), max(end, at), watched=True)
    made.seen = begun + days * DAY
    return made


def ask(made: TeamBook) -> books.Ask:
    """An API server with this book alone."""
    packed = base64.b64encode(gzip.compress(book_text.text(made).encode())).decode()

    def answer(path: str) -> ApiResponse:
        if path.endswith("/gpu-ledger"):
            return ApiResponse(200, {"binaryData": {KEY: packed}})
        return ApiResponse(404, {"reason": "NotFound"})

    return answer


def documents(made: TeamBook, months: Iterable[str] | int, stack: str = "dev-aws") -> list[dict[str, Any]]:
    """What `trainstack ledger --format json` prints for these months; a number: so many from the first."""
    first = f"{datetime.datetime.fromtimestamp(made.begun, datetime.UTC):%Y-%m}"
    names = [following(first, n) for n in range(months)] if isinstance(months, int) else months
    return [
        {
            "schema": "trainstack.ledger/1",
            "stack": stack,
            "month": month,
            "teams": forms.documents([books.read(ask(made), TEAM, SPACE, month)]),
        }
        for month in names
    ]


def months(made: TeamBook, count: int) -> list[LedgerMonth]:
    """The same as records."""
    return [parsed(one, one["month"]) for one in documents(made, count)]
