"""YAML trees with line number and comment (the reason) of every value."""

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.error import YAMLError

from infra.errors import Problem, UserError

ITEM_KEY = "name"
"""Lists of mappings are merged item by item, by the value of this key."""

REMOVE = "remove"
"""`remove: true` in an item of a list removes the item of that name."""


@dataclass(frozen=True)
class Origin:
    """Origin of a value: file, line (from 1) and the comment beside it."""

    source: str
    line: int | None = None
    reason: str | None = None

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


def read(path: Path, source: str) -> Any:
    """The content of a YAML file. Raises UserError when it is missing or is not YAML."""
    yaml = YAML()
    yaml.preserve_quotes = False
    try:
        return yaml.load(path.read_text(encoding="utf-8"))
    except OSError as error:
        rule, fix = error.strerror or str(error), "Create the file or fix its permissions."
        problem = Problem(source, None, rule, fix, code="file-not-readable")
    except UnicodeDecodeError as error:
        rule, fix = f"not UTF-8 ({error.reason})", "Save the file as UTF-8."
        problem = Problem(source, None, rule, fix, code="file-not-utf8")
    except YAMLError as error:
        detail = " ".join(str(error).split())
        rule, fix = f"not valid YAML: {detail}", "Correct the syntax at that line."
        problem = Problem(source, None, rule, fix, code="invalid-yaml")
    raise UserError([problem])


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
    return Leaf(_plain(content), here)


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
    if isinstance(value, datetime.date):
        return value.isoformat()  # YAML parses 2027-03-31 as a date; a spec needs text
    # ruamel's scalar types keep their format; a spec has plain ones.
    for plain in (bool, int, float, str):
        if isinstance(value, plain):
            return plain(value)
    return value
