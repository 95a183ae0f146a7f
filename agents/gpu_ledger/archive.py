"""The archive of a month: the rows of its past days. Pure; runs in a pod.

An archive has two parts: what the book had listed when this one was made, and what was taken out of the book
for it. The book counts the archives of a month, and lists the number of the one whose rows it does not have
any more. So the archive is written first: until the book is written, too, it is read without its second part,
and is made again after a crash.
"""

import gzip
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from agents.gpu_ledger.attempts import OTHER_PROJECT
from agents.gpu_ledger.row import LedgerRow, Uncertain, merged

SCHEMA, OLD_SCHEMA = "trainstack.ledger.archive/2", "trainstack.ledger/1"
# A ConfigMap holds 1 MiB (k8s.io/api core/v1, `MaxSecretSize`).
MOST_BYTES = 900_000


@dataclass(frozen=True)
class ArchivePart:
    """Rows, with device-seconds that were possibly held beside them."""

    rows: Sequence[LedgerRow] = ()
    uncertain: Sequence[Uncertain] = ()

    def of(self, month: str) -> "ArchivePart":
        """The rows of a month such as 2026-11."""
        return ArchivePart(
            [row for row in self.rows if row.day.startswith(month)],
            [row for row in self.uncertain if row[0].startswith(month)],
        )

    def with_(self, other: "ArchivePart") -> "ArchivePart":
        """The sums of both."""
        sums: dict[tuple[str, str, str], int] = {}
        for *key, amount in (*self.uncertain, *other.uncertain):
            day, pool, resource = map(str, key)
            sums[day, pool, resource] = sums.get((day, pool, resource), 0) + int(amount)
        return ArchivePart(merged([*self.rows, *other.rows]), [(*key, sums[key]) for key in sorted(sums)])


@dataclass(frozen=True)
class Archive:
    """The archive of a month, with the terms of the last booking."""

    team: str
    number: int
    """Of the archives of this month, from 1."""
    base: ArchivePart
    """All of the archive before."""
    added: ArchivePart
    terms: Mapping[str, Any]
    begun: int = 0
    """When the book began that lists it; 0: of schema 1."""

    def at(self, number: int) -> ArchivePart:
        """The contents of an archive by the number that the book lists. Raises ValueError for another."""
        if number == self.number:
            return self.base.with_(self.added)
        if number == self.number - 1:
            return self.base
        raise ValueError(f"the archive has number {self.number}, and the book lists {number}")

    def content(self) -> bytes:
        """The archive, compressed, with at most `MOST_BYTES`.

        Where there are more, projects with the fewest hours become one: no hour is left out.
        """
        made = self
        names = sorted({row.project for part in (self.base, self.added) for row in part.rows})
        held = dict.fromkeys(names, 0)
        for row in (*self.base.rows, *self.added.rows):
            held[row.project] += row.held_s
        names.sort(key=lambda name: held[name], reverse=True)
        while len(found := compressed(made.text())) > MOST_BYTES and names:
            names = names[: len(names) // 2]
            made = replace(self, base=_only(self.base, names), added=_only(self.added, names))
        return found

    def text(self) -> str:
        """The archive as JSON; rows refer to their project by its place in a list."""
        names = sorted({row.project for part in (self.base, self.added) for row in part.rows})
        places = {name: place for place, name in enumerate(names)}
        body = {
            "schema": SCHEMA,
            "begun": self.begun,
            "team": self.team,
            "number": self.number,
            "terms": self.terms,
            "projects": names,
        }
        for key, part in (("base", self.base), ("added", self.added)):
            rows = [[row.day, places[row.project], row.pool, row.resource, *row.amounts] for row in part.rows]
            body[key] = {"rows": rows, "uncertain": part.uncertain}
        return json.dumps(body, separators=(",", ":"))

    @classmethod
    def parse(cls, text: str) -> "Archive":
        """The archive in a text of this schema or the last. Raises ValueError for one of another schema."""
        body = json.loads(text)
        if body.get("schema") == OLD_SCHEMA:
            # The only one of its month, written when that was over.
            old = ArchivePart([LedgerRow(*row) for row in body["rows"]])
            return cls(body["team"], 1, ArchivePart(), old, body["terms"])
        if body.get("schema") != SCHEMA:
            raise ValueError(f"is of schema {body.get('schema')}, not {SCHEMA}")
        base, added = (_part(body[key], body["projects"]) for key in ("base", "added"))
        return cls(body["team"], body["number"], base, added, body["terms"], body.get("begun", 0))


def compressed(text: str) -> bytes:
    """A text with gzip, the same for the same text."""
    return gzip.compress(text.encode(), mtime=0)


def _part(body: Mapping[str, Any], names: Sequence[str]) -> ArchivePart:
    rows = [LedgerRow(day, names[place], *rest) for day, place, *rest in body["rows"]]
    return ArchivePart(
        rows, [(day, pool, resource, amount) for day, pool, resource, amount in body["uncertain"]]
    )


def _only(part: ArchivePart, names: Iterable[str]) -> ArchivePart:
    kept = set(names)
    rows = [row if row.project in kept else replace(row, project=OTHER_PROJECT) for row in part.rows]
    return replace(part, rows=merged(rows))
