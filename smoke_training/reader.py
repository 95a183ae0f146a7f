"""Read JSON into frozen dataclasses by their type hints (pure).

`read` is for documents written by users: it reports every problem, as `path: got value; rule`. `decode` is
for documents written by programs. `Annotated[int, Rule(...)]` narrows the values of a field.
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
# Exceptions of code that reads a document of unexpected form.
UNFIT = (ValueError, TypeError, KeyError, IndexError, AttributeError, ArithmeticError)


class DocumentError(ValueError):
    """Input that cannot be used; `problems` lists every fault found."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


@dataclass(frozen=True)
class ValueRule:
    """A constraint on values of a type, with its text: `must be ...`."""

    fits: Callable[[Any], bool]
    words: str


def at_least(low: int) -> ValueRule:
    """A whole number from `low` on."""
    return ValueRule(lambda value: value >= low, f"must be a whole number >= {low}")


def above(low: float, most: float, words: str) -> ValueRule:
    """A finite number above `low` and at most `most`."""
    return ValueRule(lambda value: low < value <= most and math.isfinite(value), words)


Text = Annotated[str, ValueRule(bool, "must be a non-empty text")]
Whole = Annotated[int, at_least(0)]
Count = Annotated[int, at_least(1)]
Positive = Annotated[float, above(0, math.inf, "must be a number above 0")]


def parsed(text: str, what: str) -> dict[str, Any]:
    """Return the object in a JSON text; DocumentError, with the name `what`, if there is none."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DocumentError([f"{what}: not readable as JSON ({error}); is the file complete?"]) from error
    if not isinstance(document, dict):
        raise DocumentError([f"{what}: got a {type(document).__name__}; must be an object"])
    return document


def read(kind: type[T], document: Mapping[str, Any], problems: list[str], path: str = "") -> T | None:
    """Return an instance of `kind` from a document; None, and every fault in `problems`, if there are any."""
    hints = _hints(typing.cast("Any", kind))
    found = [f"{path}{key}: unknown key; {_near(key, hints)}" for key in document if key not in hints]
    values = {}
    for field in dataclasses.fields(typing.cast("Any", kind)):
        name, hint = field.name, hints[field.name]
        if name in document:
            values[name] = _value(hint, document[name], f"{path}{name}", found)
        elif field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING:
            found.append(f"{path}{name}: missing; {_text(hint)}")
    problems += found
    return None if found else kind(**values)


def decode(hint: Any, value: Any) -> Any:
    """Convert a JSON value to the type of `hint`; TypeError names a mismatch. Lists become tuples."""
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
def _taken(hint: Any) -> tuple[Any, ValueRule | None, bool]:
    """Return the bare type of a hint, its rule, and whether it accepts null."""
    optional, rule = False, None
    while (origin := typing.get_origin(hint)) in (Annotated, types.UnionType, typing.Union):
        if origin is Annotated:
            hint, rule = typing.get_args(hint)
        else:
            hint, optional = next(a for a in typing.get_args(hint) if a is not type(None)), True
    return hint, rule, optional


def _value(hint: Any, value: Any, path: str, problems: list[str]) -> Any:
    """Convert a value to its hint's type; None, and the faults in `problems`, on a mismatch."""
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
    problems.append(f"{path}: got {json.dumps(value, default=str)[:SHOWN]}; {_text(hint)}")
    return None


def _made(bare: Any, value: Any, path: str, problems: list[str]) -> Any:
    """Convert a value to a bare type; ValueError for another type."""
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


def _text(hint: Any) -> str:
    bare, rule, optional = _taken(hint)
    text = rule.words if rule is not None else f"must be {_named(bare)}"
    return text.replace("must be ", "must be null or ", 1) if optional else text


def _named(bare: Any) -> str:
    if typing.get_origin(bare) is tuple:
        return f"a list of {_PLURALS.get(_taken(typing.get_args(bare)[0])[0], 'objects')}"
    if typing.get_origin(bare) is Mapping:
        plural = _PLURALS.get(typing.get_args(bare)[1])
        return f"an object of {plural}" if plural else "an object"
    if isinstance(bare, type) and issubclass(bare, StrEnum):
        return f"one of {', '.join(bare)}"
    return _NAMES.get(bare, "an object")
