"""What a source could not tell: its silence about some kinds does not mean that there is none."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Coverage:
    """Of which kinds a source tells everything: of all, where nothing else is said."""

    refused: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """By kind, and by id of what they are a part of: why it could not be read. An empty id: of any."""
    beyond: Mapping[str, str] = field(default_factory=dict)
    """By the beginning of a kind, such as `kubernetes:`: why such a source never tells of it."""
    told: frozenset[str] = frozenset()
    """Kinds that are told in spite of their beginning."""

    def refusal(self, kind: str, of: str | None = None) -> str:
        """Why a kind could not be read wholly, or as far as it is part of one thing; empty where it was."""
        rows = self.refused.get(kind, {})
        if of is None:
            return next(iter(rows.values()), "")
        return rows.get("") or rows.get(of, "")

    def out_of_reach(self, kind: str) -> str:
        """Why such a source never tells of a kind; empty where it does."""
        if kind in self.told:
            return ""
        return next((why for start, why in self.beyond.items() if kind.startswith(start)), "")

    def gap(self, kind: str, of: str | None = None) -> str:
        """Why silence about a kind means nothing; empty where it means that there is none."""
        return self.refusal(kind, of) or self.out_of_reach(kind)


WHOLE = Coverage()
