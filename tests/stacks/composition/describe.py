"""Composed stacks as text that a reviewer reads."""

import json
import re
from collections.abc import Iterator, Mapping
from itertools import zip_longest
from typing import Any

from google.protobuf import json_format

from tests.components.graph import Graph

# The name of the composed stack begins every logical name; digests follow from code and prices.
_STACK = re.compile(r"\bdev-(?=[a-z])")
_DIGEST = re.compile(
    r"\b(capacity-keeper|smoke|smoke-schedule-[a-z0-9-]+?|mlflow-serve|kueue-ready|clusters-leave|definitions)-[0-9a-f]{10}\b"
)
_MISSING = object()
_LONGEST = 100


def lines(graph: Graph) -> list[str]:
    """One line per resource, indented below its parent: `Class name < what it waits for`.

    What a resource waits for only because another one that it waits for does is left out.
    """
    children: dict[str, list[str]] = {}
    for key, request in graph.requests.items():
        children.setdefault(_key(request.parent), []).append(key)
    roots = [key for key in children if key not in graph.requests]
    return [line for root in roots for line in _below(root, children, graph, 0)]


def _below(parent: str, children: Mapping[str, list[str]], graph: Graph, depth: int) -> Iterator[str]:
    for key in sorted(children.get(parent, [])):
        if key.startswith("Stack:"):
            yield from _below(key, children, graph, depth)
            continue
        yield f"{'  ' * depth}{_line(graph, key)}"
        yield from _below(key, children, graph, depth + 1)


def _line(graph: Graph, key: str) -> str:
    awaited = ", ".join(sorted(_short(name) for name in nearest(graph, key)))
    return f"{_short(key)} < {awaited}" if awaited else _short(key)


def nearest(graph: Graph, name: str) -> set[str]:
    """The direct dependencies of `name` that none of the others implies."""
    direct = graph.edges[name]
    return direct - {far for near in direct if near in graph.edges for far in graph.waits_for(near)}


def difference(base: Graph, other: Graph, longest: int = _LONGEST) -> list[str]:
    """The resources that only `base` (-) or only `other` (+) has; of the rest, every difference (~).

    Of values, `longest` characters are shown.
    """
    old, current = _resources(base), _resources(other)
    gone, new = old - current, current - old
    found = [f"- {_short(key)}" for key in sorted(gone)]
    found += [f"+ {_line(other, key)}" for key in sorted(new)]
    for key in sorted(old & current):
        was, now = nearest(base, key) - gone, nearest(other, key) - new
        found += [f"~ {_short(key)} waits no longer for {_short(name)}" for name in sorted(was - now)]
        found += [f"~ {_short(key)} waits for {_short(name)}" for name in sorted(now - was)]
        found += [
            f"~ {_short(key)} {path}: {_shown(was, longest)} -> {_shown(now, longest)}"
            for path, was, now in _differing(_inputs(base, key), _inputs(other, key))
        ]
    return found


def _resources(graph: Graph) -> set[str]:
    """All resources; the stack itself is asked for by the first program of a process only."""
    return {key for key in graph.requests if not key.startswith("Stack:")}


def _inputs(graph: Graph, key: str) -> Any:
    return json_format.MessageToDict(graph.requests[key].object)


def _differing(was: Any, now: Any, path: str = "") -> Iterator[tuple[str, Any, Any]]:
    """The path of every value that differs, and both values."""
    if was == now:
        return
    was, now = _document(was), _document(now)
    if isinstance(was, Mapping) and isinstance(now, Mapping):
        for name in sorted(was.keys() | now.keys()):
            below = f"{path}.{name}" if path else name
            yield from _differing(was.get(name, _MISSING), now.get(name, _MISSING), below)
    elif (
        isinstance(was, list) and isinstance(now, list) and (old := _by_name(was)) and (new := _by_name(now))
    ):
        # By name, so that one more variable does not show as a difference of all that follow it.
        for name in sorted(old.keys() | new.keys()):
            yield from _differing(old.get(name, _MISSING), new.get(name, _MISSING), f"{path}[{name}]")
        order = [name for name in old if name in new], [name for name in new if name in old]
        if order[0] != order[1]:
            yield f"{path} order", *order
    elif isinstance(was, list) and isinstance(now, list):
        for index, (one, other) in enumerate(zip_longest(was, now, fillvalue=_MISSING)):
            yield from _differing(one, other, f"{path}[{index}]")
    elif _value(was) != _value(now):
        yield path, was, now


def _by_name(items: list[Any]) -> dict[str, Any]:
    """Named items by their names, in their order; empty where not every item has a name of its own."""
    named = [item for item in items if isinstance(item, Mapping) and isinstance(item.get("name"), str)]
    found = {str(item["name"]): item for item in named}
    return found if len(found) == len(items) else {}


def _document(value: Any) -> Any:
    """The content of a text that holds a JSON object, and any other value as it is."""
    if isinstance(value, str) and value.startswith("{"):
        try:
            return json.loads(value)
        except ValueError:
            return value
    return value


def _value(value: object) -> str:
    if value is _MISSING:
        return "nothing"
    return _DIGEST.sub(r"\1-DIGEST", _STACK.sub("", json.dumps(value, sort_keys=True)))


def _shown(value: object, longest: int) -> str:
    text = _value(value)
    return text if len(text) <= longest else f"{text[:longest]}..."


def _key(urn: str) -> str:
    """The name by which a graph knows the resource of a URN."""
    if not urn:
        return ""
    *_, qualified_type, name = urn.split("::")
    return f"{qualified_type.rsplit(':', 1)[-1]}:{name}"


def _short(key: str) -> str:
    kind, _, name = key.partition(":")
    return f"{kind} {_STACK.sub('', name)}"
