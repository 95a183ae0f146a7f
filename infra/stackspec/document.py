"""YAML trees with line number and comment (the reason) of every value."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.constructor import DuplicateKeyError, RoundTripConstructor
from ruamel.yaml.error import YAMLError
from ruamel.yaml.nodes import ScalarNode

from infra import conflict_markers
from infra.errors import Problem, UserError

ITEM_KEY = "name"
"""Lists of mappings are merged item by item, by the value of this key."""

REMOVE = "remove"
"""`remove: true` in an item of a list removes the item of that name."""


class WrittenInt(int):
    """An integer of a file with its text, such as 0x1F."""

    text: str


class WrittenFloat(float):
    """A number of a file with its text: 1.30 is 1.3 for YAML, and another version of Kubernetes."""

    text: str


class _Constructor(RoundTripConstructor):
    """Keeps the text of numbers and dates, and takes a wrong value after a tag such as !!int for text."""

    def written_int(self, node: ScalarNode) -> Any:
        return self._written(WrittenInt, self.construct_yaml_int, node)

    def written_float(self, node: ScalarNode) -> Any:
        return self._written(WrittenFloat, self.construct_yaml_float, node)

    def written_bool(self, node: ScalarNode) -> Any:
        return self._written(bool, self.construct_yaml_bool, node)

    def written_date(self, node: ScalarNode) -> str:
        return str(self.construct_scalar(node))

    def _written(self, kind: Callable[[Any], Any], construct: Callable[[Any], Any], node: ScalarNode) -> Any:
        try:
            value = kind(construct(node))
        except (LookupError, ValueError):
            return str(node.value)
        if kind is not bool:
            value.text = node.value
        return value


for _tag, _construct in (
    ("int", _Constructor.written_int),
    ("float", _Constructor.written_float),
    ("bool", _Constructor.written_bool),
    ("timestamp", _Constructor.written_date),
):
    _Constructor.add_constructor(f"tag:yaml.org,2002:{_tag}", _construct)


@dataclass(frozen=True)
class Origin:
    """Origin of a value: file, line (from 1), the comment beside it, and its text where YAML changes that."""

    source: str
    line: int | None = None
    reason: str | None = None
    text: str | None = None

    def __str__(self) -> str:
        return self.source if self.line is None else f"{self.source}:{self.line}"


@dataclass(frozen=True)
class Leaf:
    """A single value, or a list that is replaced as a whole."""

    value: Any
    origin: Origin


@dataclass(frozen=True)
class Branch:
    """A mapping, or a list of named items (`named`), in their order."""

    children: Mapping[str, "Node"]
    origin: Origin
    named: bool = False


Node = Leaf | Branch


def path_below(path: str, key: str) -> str:
    """The path of a key of the mapping at `path`."""
    named = key or '""'
    return f"{path}.{named}" if path else named


def read(path: Path, source: str) -> Any:
    """The content of a YAML file. Raises UserError when it is missing or is not YAML."""
    return parsed(text_of(path, source), source)


def text_of(path: Path, source: str) -> str:
    """The text of a file. Raises UserError when it is missing or is no text."""
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        rule, fix = error.strerror or str(error), "Create the file or fix its permissions."
        problem = Problem(source, None, rule, fix, code="file-not-readable")
    except UnicodeDecodeError as error:
        rule, fix = f"not UTF-8 ({error.reason})", "Save the file as UTF-8."
        problem = Problem(source, None, rule, fix, code="file-not-utf8")
    raise UserError([problem])


def parsed(text: str, source: str) -> Any:
    """The content of a text of YAML. Raises UserError for anything else."""
    yaml = YAML()
    yaml.Constructor = _Constructor
    yaml.preserve_quotes = False
    try:
        return yaml.load(text)
    except DuplicateKeyError as error:
        key = re.search(r'duplicate key "(.*?)"', error.problem or "")
        lines = [str(mark.line + 1) for mark in (error.context_mark, error.problem_mark) if mark]
        rule = f"{key[1] if key else 'a key'} is defined twice in the mapping of lines {' to '.join(lines)}"
        problem = Problem(source, None, rule, "Keep one of the two.", code="duplicate-key")
    except (YAMLError, ValueError, RecursionError) as error:
        detail = " ".join(str(error).split())
        rule, fix = f"not valid YAML: {detail}", "Correct the syntax at that line."
        problem = Problem(source, None, rule, fix, code="invalid-yaml")
    raise UserError([conflict_markers.problem(source, text) or problem])


def node(content: Any, source: str, origin: Origin | None = None) -> Node:
    """Convert the result of `read` (or plain values) to a tree with origins."""
    here = origin or Origin(source)
    if isinstance(content, Mapping):
        return Branch({str(key): _child(content, key, value, here) for key, value in content.items()}, here)
    if _is_named(content):
        items = {
            str(item[ITEM_KEY]): node(item, source, _item_origin(content, index, source))
            for index, item in enumerate(content)
        }
        return Branch(items, here, named=True)
    value = _plain(content)
    text = getattr(content, "text", str(value).lower() if isinstance(value, bool) else None)
    return Leaf(value, replace(here, text=text))


def _is_named(content: Any) -> bool:
    if not isinstance(content, Sequence) or isinstance(content, str) or not content:
        return False
    if not all(isinstance(item, Mapping) and isinstance(item.get(ITEM_KEY), str) for item in content):
        return False
    names = [item[ITEM_KEY] for item in content]
    return len(set(names)) == len(names)  # a list with a repeated name is unchanged and refused later


def _child(parent: Mapping[Any, Any], key: Any, value: Any, above: Origin) -> Node:
    line, reason = above.line, None
    if isinstance(parent, CommentedMap):
        line = parent.lc.data[key][0] + 1 if key in (parent.lc.data or {}) else None
        reason = _comment(parent, key) or (above.reason if line == above.line else None)
    return node(value, above.source, Origin(above.source, line, reason))


def _item_origin(parent: Any, index: int, source: str) -> Origin:
    line = parent.lc.data[index][0] + 1 if isinstance(parent, CommentedSeq) else None
    return Origin(source, line)


def _comment(parent: CommentedMap, key: Any) -> str | None:
    """The comment at the end of the key's line."""
    tokens = parent.ca.items.get(key)
    token = tokens[2] if tokens and len(tokens) > 2 else None
    if token is None:
        return None
    first = str(token.value).split("\n", 1)[0].lstrip("# ").strip()
    return first or None


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_plain(item) for item in value]
    # The types of a file keep their format; a spec has plain ones.
    for plain in (bool, int, float, str):
        if isinstance(value, plain):
            return plain(value)
    return value
