"""Coverage of a source: kinds that it could not read, whose absence therefore means nothing."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Coverage:
    """Kinds that a source reports completely; all of them by default."""

    refused: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """By kind, and by id of the owner of its resources: reason for the failure. An empty id: any owner."""
    unreported: Mapping[str, str] = field(default_factory=dict)
    """By prefix of a kind, such as `kubernetes:`: reason why such a source never reports it."""
    reported: frozenset[str] = frozenset()
    """Kinds that are reported despite a prefix in `unreported`."""

    def refusal(self, kind: str, of: str | None = None) -> str:
        """Reason why a kind, or its part with one owner, could not be read; empty if it was read."""
        rows = self.refused.get(kind, {})
        if of is None:
            return next(iter(rows.values()), "")
        return rows.get("") or rows.get(of, "")

    def out_of_reach(self, kind: str) -> str:
        """Reason why such a source never reports a kind; empty if it does."""
        if kind in self.reported:
            return ""
        return next((why for start, why in self.unreported.items() if kind.startswith(start)), "")

    def gap(self, kind: str, of: str | None = None) -> str:
        """Reason why the absence of a kind means nothing; empty if the kind is covered."""
        return self.refusal(kind, of) or self.out_of_reach(kind)


WHOLE = Coverage()
