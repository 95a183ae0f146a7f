"""Documents that people write into frozen dataclasses: every problem at once, `path: got value; rule` (pure).

What a field accepts is its type hint. `Annotated[int, Rule(...)]` narrows it.
"""

import dataclasses
import difflib
import json
import math
import types
import typing
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any, TypeVar

T = TypeVar("T")


class DocumentError(ValueError):
    """A document that cannot be used; `problems` lists every fault found, not the first."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


@dataclass(frozen=True)
class Rule:
    """What values of a type must also be, and how that is said: `must be ...`."""

    fits: Callable[[Any], bool]
    words: str


def at_least(low: int) -> Rule:
    """A whole number from `low` on."""
    return Rule(lambda value: value >= low, f"must be a whole number >= {low}")


def above(low: float, most: float, words: str) -> Rule:
    """A number above `low` and at most `most`."""
    return Rule(lambda value: low < value <= most, words)


Text = Annotated[str, Rule(bool, "must be a non-empty text")]
Whole = Annotated[int, at_least(0)]
Count = Annotated[int, at_least(1)]
Positive = Annotated[float, above(0, math.inf, "must be a number above 0")]


def parsed(text: str, what: str) -> dict[str, Any]:
    """The object in a JSON text; DocumentError, which calls it `what`, when there is none."""
    try:
        document = json.loads(text)
    except ValueError as error:
        raise DocumentError([f"{what}: not readable as JSON ({error})"]) from error
    if not isinstance(document, dict):
        raise DocumentError([f"{what}: got a {type(document).__name__}; must be an object"])
    return document


def read(kind: type[T], document: Mapping[str, Any], problems: list[str], path: str = "") -> T | None:
    """An instance of `kind` with a document's values; None, and every fault in `problems`, if it has any."""
    hints = typing.get_type_hints(kind, include_extras=True)
    found = [f"{path}{key}: unknown key; {_near(key, hints)}" for key in document if key not in hints]
    values = {}
    for field in dataclasses.fields(typing.cast("Any", kind)):
        name, hint = field.name, hints[field.name]
        if name in document:
            values[name] = _value(hint, document[name], f"{path}{name}", found)
        elif field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING:
            found.append(f"{path}{name}: missing; {_words(hint)}")
    problems += found
    return None if found else kind(**values)


def _near(key: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(key, known, 1)
    return f"did you mean {near[0]}?" if near else f"known keys: {', '.join(sorted(known))}"


def _taken(hint: Any) -> tuple[Any, Rule | None, bool]:
    """What a hint takes: the bare type, the rule about it, whether it takes null."""
    optional, rule = False, None
    while (origin := typing.get_origin(hint)) in (Annotated, types.UnionType, typing.Union):
        if origin is Annotated:
            hint, rule = typing.get_args(hint)
        else:
            hint, optional = next(a for a in typing.get_args(hint) if a is not type(None)), True
    return hint, rule, optional


def _value(hint: Any, value: Any, path: str, problems: list[str]) -> Any:
    bare, rule, optional = _taken(hint)
    if value is None and optional:
        return None
    if not _fits(bare, value):
        problems.append(f"{path}: got {json.dumps(value, default=str)}; {_words(hint)}")
        return None
    before, found = len(problems), _made(bare, value, path, problems)
    if rule is not None and len(problems) == before and not rule.fits(found):
        problems.append(f"{path}: got {json.dumps(value, default=str)}; {_words(hint)}")
    return found


def _made(bare: Any, value: Any, path: str, problems: list[str]) -> Any:
    if dataclasses.is_dataclass(bare) and isinstance(bare, type):
        return value if isinstance(value, bare) else read(bare, value, problems, f"{path}.")
    if typing.get_origin(bare) is tuple:
        inner = _taken(typing.get_args(bare)[0])[0]
        return tuple(_made(inner, item, f"{path}[{index}]", problems) for index, item in enumerate(value))
    return bare(value) if isinstance(bare, type) and issubclass(bare, StrEnum) else value


def _fits(bare: Any, value: Any) -> bool:
    """Whether a value is of a type, as far as JSON tells; a rule about an item is part of the item's type."""
    arguments = typing.get_args(bare)
    if arguments and typing.get_origin(bare) is tuple:
        return isinstance(value, list | tuple) and all(_item_fits(arguments[0], item) for item in value)
    if arguments:
        return isinstance(value, Mapping) and all(_item_fits(arguments[1], item) for item in value.values())
    if dataclasses.is_dataclass(bare):
        return isinstance(value, Mapping | typing.cast("type", bare))
    if issubclass(bare, StrEnum):
        return isinstance(value, str) and _is_one_of(bare, value)
    whole = isinstance(value, int) and not isinstance(value, bool)
    if bare in (int, float):
        return whole or (bare is float and isinstance(value, float) and math.isfinite(value))
    return isinstance(value, bare)


def _item_fits(hint: Any, value: Any) -> bool:
    bare, rule, _ = _taken(hint)
    return _fits(bare, value) and (rule is None or rule.fits(value))


def _is_one_of(kind: type[StrEnum], value: str) -> bool:
    try:
        kind(value)
    except ValueError:
        return False
    return True


_NAMES = {str: "a text", int: "a whole number", float: "a number", bool: "true or false"}
_PLURALS = {str: "texts", int: "whole numbers", float: "numbers"}


def _words(hint: Any) -> str:
    """The rule of a hint as people read it."""
    bare, rule, optional = _taken(hint)
    words = rule.words if rule is not None else f"must be {_named(bare)}"
    return words.replace("must be ", "must be null or ", 1) if optional else words


def _named(bare: Any) -> str:
    if typing.get_origin(bare) is tuple:
        return f"a list of {_PLURALS.get(_taken(typing.get_args(bare)[0])[0], 'objects')}"
    if typing.get_origin(bare) is Mapping:
        plural = _PLURALS.get(typing.get_args(bare)[1])
        return f"an object of {plural}" if plural else "an object"
    if isinstance(bare, type) and issubclass(bare, StrEnum):
        return f"one of {', '.join(bare)}"
    return _NAMES.get(bare, "an object")
