"""Mapping tables: convert API answers to resources in the form of a state."""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from policies.resource import UnknownValue, partly
from policies.sources.live.queries import AnswerItem, Answers, ApiRefusal

_FIELD = re.compile(r"\{([\w.]+)\}")


@dataclass(frozen=True)
class AnswerIndex:
    """Index of all answers of an account."""

    account: str
    region: str
    answers: Mapping[str, Answers]
    indexed: dict[str, Any] = field(default_factory=dict)

    def first(self, query: str, field: str, value: Any) -> Any:
        """The first answer in which a field has a value; None without one."""
        key = f"{query} {field}"
        if key not in self.indexed:
            answers = [one.answer for one in self.items(query)]
            self.indexed[key] = {one.get(field): one for one in answers if isinstance(one, dict)}
        return self.indexed[key].get(value)

    def items(self, query: str) -> tuple[AnswerItem, ...]:
        """Items of a query; empty if it did not run."""
        return self.answers.get(query, Answers()).items

    def one(self, query: str, asked: Mapping[str, Any]) -> Any:
        """The answer of a query with these parameters, its ApiRefusal, or None if nothing is set."""
        found = self._found(query, asked)
        return found[0] if isinstance(found, list) and found else None if found == [] else found

    def every(self, query: str, asked: Mapping[str, Any]) -> Any:
        """Like `one`, with all items of a query that lists."""
        return self._found(query, asked)

    def _found(self, query: str, asked: Mapping[str, Any]) -> "list[Any] | ApiRefusal":
        index = self._index(query)
        if isinstance(index, ApiRefusal):
            return index
        refused, brought = index
        key = _key(asked)
        return refused.get(key) or brought.get(key, [])

    def _index(self, query: str) -> "ApiRefusal | tuple[dict[str, ApiRefusal], dict[str, list[Any]]]":
        if query not in self.indexed:
            found = self.answers.get(query)
            whole = [one for one in found.refusals if not one.asked] if found else []
            if found is None or whole:
                self.indexed[query] = whole[0] if whole else ApiRefusal("NotAsked", "", query)
            else:
                brought: dict[str, list[Any]] = {}
                for item in found.items:
                    brought.setdefault(_key(item.asked), []).append(item.answer)
                refused = {_key(one.asked): one for one in found.refusals}
                self.indexed[query] = refused, brought
        indexed: ApiRefusal | tuple[dict[str, ApiRefusal], dict[str, list[Any]]] = self.indexed[query]
        return indexed


def _key(asked: Mapping[str, Any]) -> str:
    return json.dumps(asked, sort_keys=True, default=str)


class QueryRefusedError(Exception):
    """A query of a table failed; the argument is its ApiRefusal."""


class View:
    """An item with paths for tables.

    `asked.NAME` is a parameter of the query, `it` an item that is no object, `account` and `region` are those
    of the snapshot, any other name is a field of the answer or of a joined one. `.` is the whole item, and
    `[NAME]` a list with only that value.
    """

    def __init__(self, item: AnswerItem, look: AnswerIndex, joined: Mapping[str, Any] | None = None) -> None:
        self.look = look
        self._own = item.answer
        own = item.answer if isinstance(item.answer, dict) else {"it": item.answer}
        where = {"account": look.account, "region": look.region, "partition": partition(look.region)}
        self._root: dict[str, Any] = {**where, **own, "asked": item.asked, **(joined or {})}

    def at(self, path: str) -> Any:
        """The value at a path, or None. Raises QueryRefusedError if its query failed."""
        if path == ".":
            return self._own
        if path.startswith("["):
            return [self.at(path[1:-1])]
        value: Any = self._root
        for part in path.split("."):
            value = value.get(part) if isinstance(value, dict) else None
            if isinstance(value, ApiRefusal):
                raise QueryRefusedError(value)
        return value

    def below(self, value: Any) -> "View":
        """A part of the answer as a view with the same query parameters."""
        return View(AnswerItem(value, self._root["asked"]), self.look)

    def filled(self, template: "str | Reader") -> str:
        """A template such as `{asked.clusterName}:{nodegroupName}`; `{name}` is a path."""
        if callable(template):
            return str(template(self))
        return _FIELD.sub(lambda found: str(self.at(found[1]) or ""), template)


def partition(region: str) -> str:
    """AWS partition of a region (botocore 1.44.5, data/partitions.json)."""
    for start, name in (("cn-", "aws-cn"), ("us-gov-", "aws-us-gov")):
        if region.startswith(start):
            return name
    return "aws"


Reader = Callable[[View], Any]


@dataclass(frozen=True)
class Each:
    """A list of objects of one shape at a path."""

    path: str
    shape: "Shape"


@dataclass(frozen=True)
class One:
    """An object of a shape at a path; absent if the answer has none."""

    path: str
    shape: "Shape"


Shape = Mapping[str, str | Reader | Each | One]
"""By property: the path of its value, a function, or a nested shape."""


def same(*fields: str) -> dict[str, str]:
    """Properties that the provider names as the API does, but for a first letter in lower case."""
    return {field[0].lower() + field[1:]: field for field in fields}


def text(path: str) -> Reader:
    """A boolean or number that the provider writes as a string."""

    def read(view: View) -> Any:
        value = view.at(path)
        return str(value).lower() if isinstance(value, bool | int) else value

    return read


def shaped(view: View, shape: Shape, path: str = "") -> dict[str, Any]:
    """The properties of a view; null values are absent, values of failed queries are unknown."""
    made: dict[str, Any] = {}
    for name, how in shape.items():
        below = f"{path}.{name}" if path else name
        value = _read(view, how, below)
        if value is not None:
            made[name] = value
    return partly(made)


def _read(view: View, how: str | Reader | Each | One, path: str) -> Any:
    try:
        if isinstance(how, str):
            return view.at(how)
        if not isinstance(how, Each | One):
            return how(view)
        value = view.at(how.path)
    except QueryRefusedError as error:
        return UnknownValue(path, f"is not known: {error}")
    if isinstance(how, One):
        return shaped(view.below(value), how.shape, path) if isinstance(value, dict) else None
    rows = value if isinstance(value, list) else []
    made = [shaped(view.below(one), how.shape, f"{path}[{index}]") for index, one in enumerate(rows)]
    return made or None


@dataclass(frozen=True)
class Joined:
    """The answer of another query about the same item."""

    query: str
    by: Mapping[str, str]
    """By parameter of that query: the path of its value."""
    listed: bool = False


@dataclass(frozen=True)
class LiveKind:
    """Mapping of the items of a query to resources of a type."""

    kind: str
    query: str
    id: str | Reader
    """Template or function of its provider id."""
    props: Shape
    name: str | Reader = ""
    """Template of its name; the id if empty."""
    arn: str = ""
    """Template of its ARN, if `props` has no `arn`."""
    tags: str = ""
    """The path of its tags."""
    joined: Mapping[str, Joined | Reader] = field(default_factory=dict)
    """By name in paths: the answer of another query, or the result of a function."""
    when: Reader = bool
    """Filter of items of this type; a View is true."""
    owner: str = ""
    """Template of the id of its owner, from parameters: an error for one owner does not affect others."""
    each: str = ""
    """Path of a list in an item, with one resource per row; `of` is then the item."""
    program_only: tuple[str, ...] = ()
    """Properties that only a program has, and no account reports."""
    keys: tuple[str, ...] = ()
    """Properties with a key that the service may have chosen."""
    imported: str = ""
    """Template of the id for `pulumi import`, if it differs."""
    regionless: bool = False
    """Has no region, or names it itself."""
    made: Reader | None = None
    """Returns whether a service created it without a tag, so that no program manages it."""
    builtin: Reader | None = None
    """Returns whether it is part of the cloud itself and cannot be changed: it is not judged."""


def views(kind: LiveKind, look: AnswerIndex) -> Iterator[View]:
    """The items of a kind, with joined answers."""
    for item in look.items(kind.query):
        view = View(item, look)
        if kind.each:
            whole = {"of": item.answer}
            rows = [View(AnswerItem(row, item.asked), look, whole) for row in view.at(kind.each) or ()]
        else:
            rows = [View(item, look, {name: _join(view, one) for name, one in kind.joined.items()})]
        yield from filter(kind.when, rows)


def _join(view: View, joined: Joined | Reader) -> Any:
    if not isinstance(joined, Joined):
        return joined(view)
    asked = {key: view.at(path) for key, path in joined.by.items()}
    ask = view.look.every if joined.listed else view.look.one
    return ask(joined.query, asked)
