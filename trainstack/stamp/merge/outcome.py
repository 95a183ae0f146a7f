"""The result of a merge: text, conflicts and notes."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Labels:
    """Names of the three texts, in markers of conflicts."""

    yours: str = "yours"
    base: str = "before"
    template: str = "template"


@dataclass(frozen=True)
class Conflict:
    """A place that the client and the template changed differently: whole lines, and their numbers from 1."""

    key: str
    """Path of the key; empty for a text."""
    line: int
    """In the client's file."""
    template_line: int
    yours: str
    base: str
    template: str

    def marked(self, labels: Labels) -> str:
        """The three versions between markers, as git writes them (`merge.conflictStyle` diff3)."""
        return (
            f"<<<<<<< {labels.yours}\n{self.yours}||||||| {labels.base}\n{self.base}"
            f"=======\n{self.template}>>>>>>> {labels.template}\n"
        )


@dataclass(frozen=True)
class MergeNote:
    """A change of the template that is not applied: the client removed or rewrote its place."""

    key: str
    line: int
    """In the client's file; 0 where the place is no longer there."""
    reason: str
    """`removed-by-you`, `edited-by-you` (the template removed it) or `comment-edited-by-you`."""


@dataclass(frozen=True)
class MergedText:
    """Pieces of a text; a conflict stands at its place."""

    pieces: Sequence[str | Conflict]
    notes: Sequence[MergeNote] = ()

    @property
    def conflicts(self) -> list[Conflict]:
        """The conflicts, in the order of the text."""
        return [one for one in self.pieces if isinstance(one, Conflict)]

    @property
    def with_yours(self) -> str:
        """The text with the client's version at conflicts."""
        return "".join(one if isinstance(one, str) else one.yours for one in self.pieces)

    def text(self, labels: Labels) -> str:
        """The text, with markers at conflicts."""
        return "".join(one if isinstance(one, str) else one.marked(labels) for one in self.pieces)
