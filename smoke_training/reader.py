"""JSON into frozen dataclasses, as their type hints say (pure).

`read` is for documents that people write: every problem at once, `path: got value; rule`. `decode` is for
what a program wrote. `Annotated[int, Rule(...)]` narrows what a field accepts.
"""

import dataclasses
import difflib
import functools
import json
import math
import types
import typing
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any, TypeVar

T = TypeVar("T")
SHOWN = 200  # characters of a wrong value
# What code raises that meets a document of another form than it expects.
UNFIT = (ValueError, TypeError, KeyError, IndexError, AttributeError, ArithmeticError)


class DocumentError(ValueError):
    """Input that cannot be used; `problems` lists every fault found, not the first."""

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
    """A finite number above `low` and at most `most`."""
    return Rule(lambda value: low < value <= most and math.isfinite(value), words)


Text = Annotated[str, Rule(bool, "must be a non-empty text")]
Whole = Annotated[int, at_least(0)]
Count = Annotated[int, at_least(1)]
Positive = Annotated[float, above(0, math.inf, "must be a number above 0")]


def parsed(text: str, what: str) -> dict[str, Any]:
    """The object in a JSON text; DocumentError, which calls it `what`, when there is none."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DocumentError([f"{what}: not readable as JSON ({error}); is the file complete?"]) from error
    if not isinstance(document, dict):
        raise DocumentError([f"{what}: got a {type(document).__name__}; must be an object"])
    return document


def read(kind: type[T], document: Mapping[str, Any], problems: list[str], path: str = "") -> T | None:
    """An instance of `kind` with a document's values; None, and every fault in `problems`, if it has any."""
    hints = _hints(typing.cast("Any", kind))
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


def decode(hint: Any, value: Any) -> Any:
    """What `hint` asks for from a JSON value; TypeError says what does not fit. Lists become tuples."""
    problems: list[str] = []
    found = _value(hint, value, hint.__name__, problems)
    if problems:
        raise TypeError("; ".join(problems[:5]))
    return found


@functools.cache
def _hints(kind: type) -> Mapping[str, Any]:
    hints = typing.get_type_hints(kind, include_extras=True)
    return {field.name: hints[field.name] for field in dataclasses.fields(typing.cast("Any", kind))}


def _near(key: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(key, known, 1)
    return f"did you mean {near[0]}?" if near else f"known keys: {', '.join(sorted(known))}"


@functools.cache
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
    """The value as the hint wants it; None, and the faults in `problems`, where it does not fit."""
    bare, rule, optional = _taken(hint)
    if value is None and optional:
        return None
    before = len(problems)
    try:
        found = _made(bare, value, path, problems)
        fits = len(problems) > before or rule is None or rule.fits(found)
    except (ValueError, OverflowError):
        fits = False
    if fits:
        return found
    problems.append(f"{path}: got {json.dumps(value, default=str)[:SHOWN]}; {_words(hint)}")
    return None


def _made(bare: Any, value: Any, path: str, problems: list[str]) -> Any:
    """The value as a bare type; ValueError where it is of another one."""
    origin, arguments = typing.get_origin(bare), typing.get_args(bare)
    if origin in (tuple, list) and isinstance(value, list | tuple):
        items = (_value(arguments[0], item, f"{path}[{at}]", problems) for at, item in enumerate(value))
        return origin(items)
    if origin is Mapping and isinstance(value, Mapping):
        return {key: _value(arguments[1], item, f"{path}.{key}", problems) for key, item in value.items()}
    if dataclasses.is_dataclass(bare) and isinstance(value, Mapping):
        return read(typing.cast("type", bare), value, problems, f"{path}.")
    if issubclass(origin or bare, StrEnum) and isinstance(value, str):
        return bare(value)
    if isinstance(value, int) and not isinstance(value, bool) and bare is float:
        return float(value)
    if not isinstance(value, origin or bare) or (bare is int and isinstance(value, bool)):
        raise ValueError
    return value


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
