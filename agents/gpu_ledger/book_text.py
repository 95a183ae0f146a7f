"""The text of a book. Pure; runs in a pod."""

import json
from typing import Any

from agents.gpu_ledger import entries
from agents.gpu_ledger.entries import Note
from agents.gpu_ledger.ledger import MOST_PROJECTS, TeamBook
from agents.gpu_ledger.row import LedgerRow

# A collector of schema 1 leaves a book of schema 2 as it is.
SCHEMA, OLD_SCHEMA = "trainstack.ledger/2", "trainstack.ledger/1"


def text(book: TeamBook) -> str:
    """The book as JSON, the same for the same contents."""
    body: dict[str, Any] = {
        "schema": SCHEMA,
        "team": book.team,
        "begun": book.begun,
        "seen": book.seen,
        "rows": [[*key, *amounts] for key, amounts in sorted(book.rows.items())],
        "uses": [[*key, *amounts] for key, amounts in sorted(book.uses.items())],
        "measured": book.measured,
        "figured": book.figured,
        "uncertain": [[*key, amount] for key, amount in sorted(book.uncertain.items())],
        "open": {uid: entries.plain(attempt) for uid, attempt in sorted(book.open.items())},
        "booked": {key: list(value) for key, value in sorted(book.booked.items())},
        "done": [*book.done],
        "unread": [*book.unread],
        "version": book.version,
        "projects": book.projects,
        "sums": [[*key, *amounts] for key, amounts in sorted(book.sums.items())],
        "notes": [[note.at, note.what, note.who, note.why] for note in book.notes],
        "archived": book.archived,
        "warned": book.warned,
        "terms": book.terms,
    }
    return json.dumps(body, separators=(",", ":"))


def parse(text: str) -> TeamBook:
    """The book in a text of this schema or the last. Raises ValueError for one of another schema."""
    body = json.loads(text)
    if body.get("schema") not in (SCHEMA, OLD_SCHEMA):
        raise ValueError(f"is of schema {body.get('schema')}, not {SCHEMA}")
    book = TeamBook(body["team"], body["begun"])
    book.seen = body["seen"]
    book.rows = {(day, *rest): (held, ran) for day, *rest, held, ran in body["rows"]}
    # Books written before figures existed have none.
    book.uses = {(day, *rest): (measured, used) for day, *rest, measured, used in body.get("uses", ())}
    book.measured, book.figured = body.get("measured", body["seen"]), body.get("figured", 0)
    book.uncertain = {(day, pool, resource): left for day, pool, resource, left in body["uncertain"]}
    book.open = {uid: entries.parsed(row) for uid, row in body["open"].items()}
    book.booked = {key: (admitted, past_s) for key, (admitted, past_s) in body["booked"].items()}
    book.notes = [Note(*row) for row in body["notes"]]
    # Schema 1 listed the months whose only archive was written when they were over.
    archived = body["archived"]
    book.archived = dict.fromkeys(archived, 1) if isinstance(archived, list) else archived
    book.warned, book.terms = dict(body["warned"]), body["terms"]
    book.done, book.version = dict.fromkeys(body.get("done", ())), body.get("version", 0)
    book.unread = dict.fromkeys(body.get("unread", ()))
    book.sums = {row.key: row.amounts for row in (LedgerRow(*one) for one in body.get("sums", ()))}
    book.projects = body["projects"] if "projects" in body else _projects(book)
    return book


def _projects(book: TeamBook) -> dict[str, str]:
    """The projects with the most hours, of a book that named all."""
    held: dict[str, int] = {}
    used: dict[str, str] = {}
    for (day, project, *_), (held_s, _) in book.rows.items():
        held[project] = held.get(project, 0) + held_s
        used[project] = max(day[:7], used.get(project, ""))
    return {name: used[name] for name in sorted(held, key=lambda name: -held[name])[:MOST_PROJECTS]}
