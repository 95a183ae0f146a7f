"""A YAML text as a tree of entries that keep their text: comments, order and quotes of the author.

Block mappings, and block lists of mappings with a name each, have entries; every other value is a leaf.
The texts of all entries in their order are the text of the file.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import yaml
from yaml.error import YAMLError
from yaml.events import DocumentStartEvent
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from infra.stackspec.document import ITEM_KEY
from trainstack.stamp.merge.lines import ended, lines

LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""Of libyaml where the installed PyYAML has it: ten times as fast."""


class UnsupportedError(Exception):
    """A text without a tree: no mapping in block style, or with anchors, tags or repeated keys."""


@dataclass(frozen=True)
class WrittenValue:
    """A value without entries; `before` has the key, `after` the comment on the same line."""

    before: str
    value: str
    after: str
    node: Node | None

    @property
    def text(self) -> str:
        """Its lines."""
        return self.before + self.value + self.after


@dataclass(frozen=True)
class Block:
    """Entries of a mapping, or the items of a list by their names."""

    entries: dict[str, "Entry"]
    column: int
    dash: int | None = None
    """Of an item of a list: the column of its dash, which is a blank in the texts of its entries."""
    tail: str = ""
    """Comments after the last entry."""
    items: bool = False

    @property
    def text(self) -> str:
        """Its lines."""
        return dashed("".join(one.head + one.body for one in self.entries.values()) + self.tail, self.dash)


@dataclass(frozen=True)
class Entry:
    """A key or an item, with the comments above it."""

    head: str
    opening: WrittenValue | None
    """Of a mapping or list in block style: its first line; None of an item."""
    content: WrittenValue | Block
    line: int
    """From 1."""
    column: int
    node: Node
    """The value."""

    @property
    def body(self) -> str:
        """Its lines without the comments above."""
        return (self.opening.text if self.opening else "") + self.content.text


def dashed(text: str, dash: int | None) -> str:
    """The text of an item with its dash, on the first line that is no comment."""
    if dash is None:
        return text
    found = lines(text)
    for number, line in enumerate(found):
        if not is_comment(line):
            found[number] = f"{line[:dash]}-{line[dash + 1 :]}"
            break
    return "".join(found)


def parsed(text: str) -> Block:
    """The tree of a text. Raises UnsupportedError."""
    text = ended(text)
    try:
        node = _composed(text)
    except (YAMLError, ValueError, RecursionError) as error:
        raise UnsupportedError(str(error)) from None
    if not isinstance(node, MappingNode) or node.flow_style:
        raise UnsupportedError("no mapping in block style")
    found = _Reader(text).block(node, 0, len(lines(text)), None)
    if found.text != text:
        raise UnsupportedError("its form is not known")
    return found


def _composed(text: str) -> Node | None:
    events = list(yaml.parse(text, Loader=LOADER))
    documents = [one for one in events if isinstance(one, DocumentStartEvent)]
    unusual = any(getattr(one, "anchor", None) or getattr(one, "tag", None) for one in events)
    if unusual or len(documents) != 1 or documents[0].explicit or documents[0].version:
        raise UnsupportedError("anchors, tags, or documents apart")
    node: Node | None = yaml.compose(text, Loader=LOADER)
    return node


def is_yaml(text: str) -> bool:
    """True for YAML of any number of documents, without repeated keys."""
    try:
        return all(map(_is_unique, yaml.compose_all(text, Loader=LOADER)))
    except (YAMLError, ValueError, RecursionError):
        return False


def _is_unique(node: Node) -> bool:
    if isinstance(node, MappingNode):
        keys = [meaning(key) for key, _ in node.value]
        return len({*keys}) == len(keys) and all(_is_unique(value) for _, value in node.value)
    return not isinstance(node, SequenceNode) or all(map(_is_unique, node.value))


def meaning(node: Node | None) -> Any:
    """The value of a node, for comparison: order of keys and style do not count."""
    if isinstance(node, MappingNode):
        return "map", frozenset((meaning(key), meaning(value)) for key, value in node.value)
    if isinstance(node, SequenceNode):
        return "list", tuple(meaning(one) for one in node.value)
    return ("", "") if node is None else (str(node.tag), str(node.value))


def pairs(node: MappingNode) -> Iterator[tuple[str, Node, Node]]:
    """Keys of a mapping with their nodes. Raises UnsupportedError for keys that are no text or come twice."""
    known = set()
    for key, value in node.value:
        if not isinstance(key, ScalarNode) or key.value in known:
            raise UnsupportedError("a key that is no text, or is defined twice")
        known.add(key.value)
        yield str(key.value), key, value


def _names(node: SequenceNode) -> list[str] | None:
    """Names of the items, where each has one of its own."""
    found = []
    for item in node.value:
        named = [
            value.value
            for key, value in (item.value if isinstance(item, MappingNode) else ())
            if isinstance(key, ScalarNode) and key.value == ITEM_KEY and isinstance(value, ScalarNode)
        ]
        found += named[:1] or [""]
    return found if found and all(found) and len({*found}) == len(found) else None


def is_comment(line: str) -> bool:
    """True for a line that is blank or has a comment alone."""
    return not line.strip() or line.lstrip().startswith("#")


def _indentation(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


class _Reader:
    def __init__(self, text: str) -> None:
        self._text = text
        self._lines = lines(text)

    def block(self, node: MappingNode, start: int, end: int, dash: int | None) -> Block:
        """The entries of a mapping in the lines from `start` to `end`."""
        if dash is not None:
            line = self._lines[start]
            self._lines[start] = f"{line[:dash]} {line[dash + 1 :]}"
        found = [(name, key, value) for name, key, value in pairs(node)]
        column = found[0][1].start_mark.column
        entries = {}
        at = start
        for number, (name, key, value) in enumerate(found):
            first = key.start_mark.line
            following = found[number + 1][1].start_mark.line if number + 1 < len(found) else end
            stop = self._end(first, following, column)
            head = "".join(self._lines[at:first])
            entries[name] = self._entry(head, key, value, stop)
            at = stop
        return Block(entries, column, dash, "".join(self._lines[at:end]))

    def _end(self, first: int, following: int, column: int) -> int:
        """The end of an entry: comments that are deeper than its key belong to it, others to the next one."""
        last = following
        while last > first + 1 and is_comment(self._lines[last - 1]):
            last -= 1
        deeper = [
            number + 1
            for number in range(last, following)
            if self._lines[number].strip() and _indentation(self._lines[number]) > column
        ]
        return max([last, *deeper])

    def _entry(self, head: str, key: Node, value: Node, stop: int) -> Entry:
        first, column = key.start_mark.line, key.start_mark.column
        below = value.start_mark.line > key.end_mark.line and value.start_mark.line < stop
        plain = key.end_mark.line == first and getattr(value, "flow_style", None) is False and below
        if plain and isinstance(value, MappingNode):
            content = self.block(value, first + 1, stop, None)
            return Entry(head, self._opening(key), content, first + 1, column, value)
        if plain and isinstance(value, SequenceNode) and (names := _names(value)):
            items = self._items(value, names, first + 1, stop)
            if items:
                return Entry(head, self._opening(key), items, first + 1, column, value)
        return Entry(head, None, self._leaf(key, value, stop), first + 1, column, value)

    def _items(self, node: SequenceNode, names: Sequence[str], start: int, end: int) -> Block | None:
        """The items of a list; None where one does not begin beside its dash."""
        column = node.start_mark.column
        begins = [one.start_mark.line for one in node.value]
        for number, item in zip(begins, node.value, strict=True):
            dash = self._lines[number][column : item.start_mark.column]
            if self._lines[number][:column].strip() or dash.strip() != "-" or len({*begins}) < len(begins):
                return None
        entries, at = {}, start
        for index, (name, first, item) in enumerate(zip(names, begins, node.value, strict=True)):
            stop = self._end(first, begins[index + 1] if index + 1 < len(begins) else end, column)
            head = "".join(self._lines[at:first])
            content: Block | WrittenValue
            if item.flow_style:
                content = self._spanned(item, first, stop)
            else:
                content = self.block(item, first, stop, column)
            entries[name] = Entry(head, None, content, first + 1, column, item)
            at = stop
        return Block(entries, column, None, "".join(self._lines[at:end]), items=True)

    def _opening(self, key: Node) -> WrittenValue:
        line = self._lines[key.start_mark.line]
        end = line.index(":", key.end_mark.column) + 1
        return WrittenValue(line[:end], "", line[end:], None)

    def _leaf(self, key: Node, value: Node, stop: int) -> WrittenValue:
        first = key.start_mark.line
        if value.end_mark.line == value.start_mark.line == first == key.end_mark.line:
            return self._spanned(value, first, stop)
        text = "".join(self._lines[first:stop])
        colon = text.index(":", key.end_mark.column if key.end_mark.line == first else 0) + 1
        return WrittenValue(text[:colon], text[colon:], "", value)

    def _spanned(self, node: Node, first: int, stop: int) -> WrittenValue:
        """A value between its marks, and the rest of its lines."""
        text = "".join(self._lines[first:stop])
        offset = len("".join(lines(self._text)[:first]))
        begin, end = node.start_mark.index - offset, node.end_mark.index - offset
        return WrittenValue(text[:begin], text[begin:end], text[end:], node)
