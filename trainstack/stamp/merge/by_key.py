"""Merge of YAML by key: what the client did not touch follows the template, everything else stays as written.

Where a text has no tree of keys, or a value has several lines, lines are merged instead.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from trainstack.stamp.merge.by_line import merged_lines
from trainstack.stamp.merge.flow import merged_flow
from trainstack.stamp.merge.lines import ended, lines
from trainstack.stamp.merge.outcome import Conflict, Labels, MergedText, MergeNote
from trainstack.stamp.merge.tree import (
    Block,
    Entry,
    UnsupportedError,
    WrittenValue,
    dashed,
    is_comment,
    is_yaml,
    meaning,
    parsed,
)

Pieces = list[str | Conflict]


def merged(base: str, yours: str, template: str, *, yaml: bool) -> MergedText:
    """Merge three texts, of YAML by key. Raises UserError where lines must be merged and git is missing."""
    base, yours, template = map(ended, (base, yours, template))
    if yours in (base, template):
        return MergedText([template])
    if template == base:
        return MergedText([yours])
    if not yaml:
        return merged_lines(base, yours, template)
    try:
        old, mine, new = (parsed(text) for text in (base, yours, template))
    except UnsupportedError:
        return _valid(merged_lines(base, yours, template), base, yours, template)
    merge = _Merge()
    pieces = merge.block(old, mine, new, "")
    return _valid(MergedText(_joined(pieces), merge.notes), base, yours, template)


def _valid(found: MergedText, base: str, yours: str, template: str) -> MergedText:
    """The merge; one conflict of the whole texts where it is no YAML although both sides are."""
    if found.conflicts or is_yaml(found.text(Labels())) or not (is_yaml(yours) and is_yaml(template)):
        return found
    return MergedText([Conflict("", 1, 1, yours, base, template)])


def _joined(pieces: Pieces) -> Pieces:
    found: Pieces = []
    for one in pieces:
        if isinstance(one, str) and found and isinstance(found[-1], str):
            found[-1] += one
        else:
            found.append(one)
    return found


def _shifted(text: str, by: int) -> str:
    """The text, indented by more or less columns."""
    if not by:
        return text
    return "".join(
        (" " * by + one if by > 0 else one[min(-by, len(one) - len(one.lstrip(" "))) :])
        if one.strip()
        else one
        for one in lines(text)
    )


def _same(one: Entry, other: Entry) -> bool:
    """True for two entries of the same text, at any columns."""
    return one.body == other.body or _shifted(one.body, -one.column) == _shifted(other.body, -other.column)


@dataclass
class _Merge:
    notes: list[MergeNote] = field(default_factory=list)

    def block(self, base: Block, yours: Block, template: Block, path: str) -> Pieces:
        """The entries of the client in their order, with those that the template added."""
        shift = yours.column - template.column
        found: dict[str, Pieces] = {}
        for name, mine in yours.entries.items():
            at = _below(path, name, items=yours.items)
            old, new = base.entries.get(name), template.entries.get(name)
            if new is None:
                if old is None or not self._is_dropped(old, mine, at):
                    found[name] = [mine.head + mine.body]
            else:
                found[name] = self._entry(old, mine, new, at, shift)
        for name in sorted(base.entries.keys() - yours.entries.keys()):
            new = template.entries.get(name)
            if new is not None and not _same(base.entries[name], new):
                self.notes.append(MergeNote(_below(path, name, items=base.items), 0, "removed-by-you"))
        ordered = _with_added(found, base, template, shift)
        tail = self._comment(base.tail, yours.tail, _shifted(template.tail, shift), path, 0)
        return _dashed([*(one for name in ordered for one in ordered[name]), tail], yours.dash)

    def _is_dropped(self, old: Entry, mine: Entry, path: str) -> bool:
        """True for an entry to drop with the template, as the client did not touch it; else with a note."""
        if _same(old, mine) and old.head.strip() == mine.head.strip():
            return True
        self.notes.append(MergeNote(path, mine.line, "edited-by-you"))
        return False

    def _entry(self, old: Entry | None, mine: Entry, new: Entry, path: str, shift: int) -> Pieces:
        before = old.head if old else ""
        head = self._comment(before, mine.head, _shifted(new.head, shift), path, mine.line)
        return [head, *self._body(old, mine, new, path, shift)]

    def _body(self, old: Entry | None, mine: Entry, new: Entry, path: str, shift: int) -> Pieces:
        if old and _same(old, mine):
            return [_shifted(new.body, shift)]
        if _same(mine, new) or (old and _same(old, new)):
            return [mine.body]
        contents = [one.content if one else None for one in (old, mine, new)]
        was, own, now = contents
        if isinstance(own, Block) and isinstance(now, Block) and own.items == now.items:
            known = was if isinstance(was, Block) and was.items == own.items else None
            return self._nested(old, mine, new, known, path)
        if not isinstance(was, Block) and isinstance(own, WrittenValue) and isinstance(now, WrittenValue):
            found = self._leaf((was, own, now), (old, mine, new), path, shift)
            if found:
                return found
        return _restyled(old, mine, new, shift) or [_conflict(old, mine, new, path)]

    def _nested(self, old: Entry | None, mine: Entry, new: Entry, known: Block | None, path: str) -> Pieces:
        assert isinstance(mine.content, Block) and isinstance(new.content, Block)
        base = known or Block({}, mine.content.column, items=mine.content.items)
        inner = self.block(base, mine.content, new.content, path)
        if mine.opening is None or new.opening is None:
            return inner
        was = old.opening if old else None
        ending = self._comment(
            was.after if was else "", mine.opening.after, new.opening.after, path, mine.line
        )
        if all(isinstance(one, str) and all(map(is_comment, lines(one))) for one in inner):
            empty = "[]" if mine.content.items else "{}"
            return [f"{mine.opening.before} {empty}{ending}", *inner]
        return [mine.opening.before + ending, *inner]

    def _leaf(
        self,
        leaves: tuple[WrittenValue | None, WrittenValue, WrittenValue],
        entries: tuple[Entry | None, Entry, Entry],
        path: str,
        shift: int,
    ) -> Pieces:
        """A value and the comment beside it, each merged apart; empty for a conflict."""
        old, mine, new = leaves
        one_line = not any("\n" in leaf.value for leaf in leaves if leaf)
        if one_line:
            value = _value(old, mine, new)
            if value is None:
                return []
            taken, text = value
            ending = self._comment(old.after if old else "", mine.after, new.after, path, entries[1].line)
            return [(mine.before if taken is mine else _shifted(new.before, shift)) + text + ending]
        if old is None:
            return []
        merged = merged_lines(
            _shifted(old.text, _columns(entries[0], entries[1])), mine.text, _shifted(new.text, shift)
        )
        return [] if merged.conflicts else [*merged.pieces]

    def _comment(self, base: str, yours: str, template: str, path: str, line: int) -> str:
        """Comments and blank lines; those that both changed stay the client's, with a note."""
        if _plain(yours) == _plain(base):
            return template
        if _plain(template) in (_plain(base), _plain(yours)):
            return yours
        if yours.count("\n") > 1 or template.count("\n") > 1:
            merged = merged_lines(base, yours, template)
            if not merged.conflicts:
                return "".join(one for one in merged.pieces if isinstance(one, str))
        self.notes.append(MergeNote(path, line, "comment-edited-by-you"))
        return yours


def _columns(entry: Entry | None, mine: Entry) -> int:
    """The columns from an entry to the client's one."""
    return mine.column - entry.column if entry else 0


def _restyled(old: Entry | None, mine: Entry, new: Entry, shift: int) -> Pieces:
    """The merged text of a value in another style, such as a list on one line; empty for a conflict."""
    before, own, now = (meaning(one.node) if one else None for one in (old, mine, new))
    if now in (before, own):
        return [mine.body]
    if old and before == own and _comments(mine) <= _comments(old):
        return [_shifted(new.body, shift)]
    return []


def _comments(entry: Entry) -> set[str]:
    return {line.partition("#")[2].strip() for line in lines(entry.body)}


def _plain(comment: str) -> list[str]:
    """A comment without its place."""
    return [one.strip() for one in lines(comment)]


def _value(
    old: WrittenValue | None, mine: WrittenValue, new: WrittenValue
) -> tuple[WrittenValue, str] | None:
    """The leaf whose key is taken, and the merged value on its line; None for a conflict."""
    meanings = [meaning(leaf.node) if leaf else None for leaf in (old, mine, new)]
    if old and meanings[1] == meanings[0]:
        return (new, new.value) if meanings[2] != meanings[0] else (mine, mine.value)
    if meanings[2] in (meanings[0], meanings[1]):
        return mine, mine.value
    flow = merged_flow(old.value if old else "{}", mine.value, new.value)
    return None if flow is None else (mine, flow)


def _conflict(old: Entry | None, mine: Entry, new: Entry, path: str) -> Conflict:
    base, template = (_shifted(one.body, _columns(one, mine)) if one else "" for one in (old, new))
    return Conflict(path, mine.line, new.line, mine.body, base, template)


def _below(path: str, name: str, *, items: bool) -> str:
    if items:
        return f"{path}[{name}]"
    return f"{path}.{name}" if path else name


def _with_added(found: Mapping[str, Pieces], base: Block, template: Block, shift: int) -> dict[str, Pieces]:
    """The entries with those that the template added, each behind the one that it follows there."""
    ordered = dict(found)
    above: str | None = None
    for name, new in template.entries.items():
        if name in ordered:
            above = name
        elif name not in base.entries:
            ordered = _behind(ordered, above, name, [_shifted(new.head + new.body, shift)])
            above = name
    return ordered


def _behind(ordered: Mapping[str, Pieces], above: str | None, name: str, pieces: Pieces) -> dict[str, Pieces]:
    if above is None:
        return {name: pieces, **ordered}
    result: dict[str, Pieces] = {}
    for known, text in ordered.items():
        result[known] = text
        if known == above:
            result[name] = pieces
    return result


def _dashed(pieces: Pieces, dash: int | None) -> Pieces:
    """Pieces of an item with its dash; where the first entry is a conflict, on each of its sides."""
    if dash is None:
        return pieces
    found = list(pieces)
    for number, one in enumerate(found):
        if isinstance(one, Conflict):
            yours, base, template = (dashed(side, dash) for side in (one.yours, one.base, one.template))
            found[number] = replace(one, yours=yours, base=base, template=template)
            break
        if not all(map(is_comment, lines(one))):
            found[number] = dashed(one, dash)
            break
    return found
