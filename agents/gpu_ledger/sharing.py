"""Name shares of GPUs in books of releases that named them like whole GPUs. Pure; runs in a pod."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from agents.gpu_ledger.archive import ArchivePart
from agents.gpu_ledger.attempts import Parts, Shares
from agents.gpu_ledger.ledger import TeamBook
from agents.gpu_ledger.price import Prices
from agents.gpu_ledger.row import Key, merged
from agents.gpu_ledger.units import renamed, share

_PARTS = "parts"
_Amounts = TypeVar("_Amounts")


@dataclass(frozen=True)
class SharedPools:
    """Pools with shared GPUs in the configuration of a ledger."""

    parts: Parts = field(default_factory=dict)
    prices: Prices = field(default_factory=dict)
    """Of whole devices."""

    @classmethod
    def of(cls, terms: Mapping[str, Any]) -> "SharedPools":
        """Those of the terms of a book."""
        return cls(terms.get(_PARTS) or {}, terms.get("prices") or {})

    def archived(self, part: ArchivePart, terms: Mapping[str, Any]) -> ArchivePart:
        """The rows of an archive that was written under `terms`, with the names of now."""
        if _PARTS in terms:
            return part
        rows = [replace(row, resource=self._named(terms, row.pool, row.resource)) for row in part.rows]
        uncertain = [
            (day, pool, self._named(terms, pool, resource), amount)
            for day, pool, resource, amount in part.uncertain
        ]
        return ArchivePart(merged(rows), uncertain)

    def renew(self, book: TeamBook) -> None:
        """Name shares in a book that was read.

        From its last time on, running attempts have the shares of the configuration.
        """
        if _PARTS not in book.terms:
            terms = book.terms
            book.rows = self._renewed(book.rows, terms)
            book.uses = self._renewed(book.uses, terms)
            book.sums = self._renewed(book.sums, terms)
            book.uncertain = {
                (day, pool, self._named(terms, pool, resource)): amount
                for (day, pool, resource), amount in book.uncertain.items()
            }
            for uid, attempt in book.open.items():
                named = {
                    (pool, self._named(terms, pool, resource)): n
                    for (pool, resource), n in attempt.shares.items()
                }
                book.open[uid] = replace(attempt, shares=named)
        if any(self._now(attempt.shares) != attempt.shares for attempt in book.open.values()):
            book.advance(book.seen)
            for uid, attempt in book.open.items():
                book.open[uid] = replace(attempt, shares=self._now(attempt.shares))

    def _now(self, shares: Shares) -> Shares:
        return {
            (pool, renamed(resource, self.parts.get(pool, 1))): n for (pool, resource), n in shares.items()
        }

    def _named(self, terms: Mapping[str, Any], pool: str, resource: str) -> str:
        """The name of a device that an older release booked under `terms`.

        Where GPUs were whole then, they cost what they cost now: two shares are the fewest, so one cost at
        most half. Without prices the pool is taken as it is now.
        """
        old = ((terms.get("prices") or {}).get(pool) or {}).get(resource)
        new = (self.prices.get(pool) or {}).get(resource)
        were_whole = old is not None and new is not None and old > 0.75 * new
        return resource if were_whole else share(resource, self.parts.get(pool, 1))

    def _renewed(self, rows: Mapping[Key, _Amounts], terms: Mapping[str, Any]) -> dict[Key, _Amounts]:
        return {
            (day, project, pool, self._named(terms, pool, resource)): amounts
            for (day, project, pool, resource), amounts in rows.items()
        }


NONE_SHARED = SharedPools()
