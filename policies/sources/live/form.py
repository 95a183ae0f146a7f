"""Tables that say how answers of a cloud become resources as a state would have them."""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from policies.resource import Unknown, partly
from policies.sources.live.question import Answers, Item, Refusal

_FIELD = re.compile(r"\{([\w.]+)\}")


@dataclass(frozen=True)
class Look:
    """Everything that was answered, and where."""

    account: str
    region: str
    answers: Mapping[str, Answers]
    indexed: dict[str, Any] = field(default_factory=dict)

    def first(self, question: str, field: str, value: Any) -> Any:
        """The answer in which a field has a value; None where none has."""
        key = f"{question} {field}"
        if key not in self.indexed:
            answers = [one.answer for one in self.items(question)]
            self.indexed[key] = {one.get(field): one for one in answers if isinstance(one, dict)}
        return self.indexed[key].get(value)

    def items(self, question: str) -> tuple[Item, ...]:
        """What a question brought; nothing where it was not asked."""
        return self.answers.get(question, Answers()).items

    def one(self, question: str, asked: Mapping[str, Any]) -> Any:
        """The answer to a question with these parameters, a Refusal, or None where nothing is set."""
        found = self._found(question, asked)
        return found[0] if isinstance(found, list) and found else None if found == [] else found

    def every(self, question: str, asked: Mapping[str, Any]) -> Any:
        """As `one`, of a question that lists: all of them."""
        return self._found(question, asked)

    def _found(self, question: str, asked: Mapping[str, Any]) -> "list[Any] | Refusal":
        index = self._index(question)
        if isinstance(index, Refusal):
            return index
        refused, brought = index
        key = _key(asked)
        return refused.get(key) or brought.get(key, [])

    def _index(self, question: str) -> "Refusal | tuple[dict[str, Refusal], dict[str, list[Any]]]":
        if question not in self.indexed:
            found = self.answers.get(question)
            whole = [one for one in found.refusals if not one.asked] if found else []
            if found is None or whole:
                self.indexed[question] = whole[0] if whole else Refusal("NotAsked", "", question)
            else:
                brought: dict[str, list[Any]] = {}
                for item in found.items:
                    brought.setdefault(_key(item.asked), []).append(item.answer)
                refused = {_key(one.asked): one for one in found.refusals}
                self.indexed[question] = refused, brought
        indexed: Refusal | tuple[dict[str, Refusal], dict[str, list[Any]]] = self.indexed[question]
        return indexed


def _key(asked: Mapping[str, Any]) -> str:
    return json.dumps(asked, sort_keys=True, default=str)


class RefusedError(Exception):
    """What a table asks for was not answered; its argument is the Refusal."""


class View:
    """An item as tables read it.

    Paths go through objects: `asked.NAME` is a parameter of the question, `it` an item that is no object,
    `account` and `region` where it was asked, any other name a field of the answer, or of what is joined.
    `.` is the whole item, and `[NAME]` a list with that value alone.
    """

    def __init__(self, item: Item, look: Look, joined: Mapping[str, Any] | None = None) -> None:
        self.look = look
        self._own = item.answer
        own = item.answer if isinstance(item.answer, dict) else {"it": item.answer}
        where = {"account": look.account, "region": look.region, "partition": partition(look.region)}
        self._root: dict[str, Any] = {**where, **own, "asked": item.asked, **(joined or {})}

    def at(self, path: str) -> Any:
        """The value at a path; None where there is none. Raises RefusedError for what was not answered."""
        if path == ".":
            return self._own
        if path.startswith("["):
            return [self.at(path[1:-1])]
        value: Any = self._root
        for part in path.split("."):
            value = value.get(part) if isinstance(value, dict) else None
            if isinstance(value, Refusal):
                raise RefusedError(value)
        return value

    def below(self, value: Any) -> "View":
        """A part of the answer as a view of its own, which still knows what was asked."""
        return View(Item(value, self._root["asked"]), self.look)

    def filled(self, template: "str | Reader") -> str:
        """A template such as `{asked.clusterName}:{nodegroupName}`; `{name}` is a path."""
        if callable(template):
            return str(template(self))
        return _FIELD.sub(lambda found: str(self.at(found[1]) or ""), template)


def partition(region: str) -> str:
    """Of AWS, by its region (botocore 1.44.5, data/partitions.json)."""
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
    """An object of a shape at a path; absent where the answer has none."""

    path: str
    shape: "Shape"


Shape = Mapping[str, str | Reader | Each | One]
"""By property: the path of its value, a function, or the shape of what is below."""


def text(path: str) -> Reader:
    """A switch or number that the provider writes as a text."""

    def read(view: View) -> Any:
        value = view.at(path)
        return str(value).lower() if isinstance(value, bool | int) else value

    return read


def shaped(view: View, shape: Shape, path: str = "") -> dict[str, Any]:
    """The properties of a view; what is null is absent, what was not answered is unknown."""
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
    except RefusedError as error:
        return Unknown(path, f"is not known: {error}")
    if isinstance(how, One):
        return shaped(view.below(value), how.shape, path) if isinstance(value, dict) else None
    rows = value if isinstance(value, list) else []
    made = [shaped(view.below(one), how.shape, f"{path}[{index}]") for index, one in enumerate(rows)]
    return made or None


@dataclass(frozen=True)
class Joined:
    """The answer to another question about the same thing."""

    question: str
    by: Mapping[str, str]
    """By parameter of that question: the path of its value."""
    listed: bool = False


@dataclass(frozen=True)
class Kind:
    """How items of a question become resources of a type."""

    kind: str
    question: str
    id: str | Reader
    """Template of the id that the provider gives it, or what makes it."""
    props: Shape
    name: str | Reader = ""
    """Template of its name; the id where empty."""
    arn: str = ""
    """Template of its ARN, where the answer has none under `arn` in `props`."""
    tags: str = ""
    """The path of its tags."""
    joined: Mapping[str, Joined | Reader] = field(default_factory=dict)
    """By the name under which paths find it: the answer to another question, or what a function finds."""
    when: Reader = bool
    """Which items are of this type; a View is true."""
    owner: str = ""
    """Template of the id of what it is a part of, by parameters: a refusal there leaves others alone."""
    each: str = ""
    """The path of a list in an item, each row of which is one; `of` is then the item."""
    untold: tuple[str, ...] = ()
    """Properties that only a program has: no account tells them."""
    keys: tuple[str, ...] = ()
    """Properties that name a key, which the service may have chosen."""
    imported: str = ""
    """Template of what `pulumi import` takes, where it is not the id."""
    everywhere: bool = False
    """Whether it has no region, or names one itself."""
    made: Reader | None = None
    """Whether no program has it by itself, and no tag tells: a service made it, or it is told besides."""
    spared: Reader | None = None
    """Whether it is part of what the cloud is made of, and nobody's to change: then it is not judged."""


def views(kind: Kind, look: Look) -> Iterator[View]:
    """The items of a question that are of a kind, with what is joined."""
    for item in look.items(kind.question):
        view = View(item, look)
        if kind.each:
            whole = {"of": item.answer}
            rows = [View(Item(row, item.asked), look, whole) for row in view.at(kind.each) or ()]
        else:
            rows = [View(item, look, {name: _join(view, one) for name, one in kind.joined.items()})]
        yield from filter(kind.when, rows)


def _join(view: View, joined: Joined | Reader) -> Any:
    if not isinstance(joined, Joined):
        return joined(view)
    asked = {key: view.at(path) for key, path in joined.by.items()}
    ask = view.look.every if joined.listed else view.look.one
    return ask(joined.question, asked)
