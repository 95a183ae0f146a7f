"""Seeded faults in an object: typical typing errors, omissions, and changes of immutable fields."""

import copy
import hashlib
from collections.abc import Callable, Iterator
from typing import Any

from rehearsal.core.model import Properties

Path = tuple[str | int, ...]
# Without a namespace that exists the rest is not looked at; what to wait for only the provider reads.
_LEFT_ALONE = (
    ("metadata",), ("metadata", "namespace"), ("metadata", "annotations", "pulumi.com/waitFor"),
)  # fmt: skip
# Each takes the value at a path and gives another one, or KEEP where it does not apply.
KEEP, GONE = object(), object()


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


_FAULTS: dict[str, Callable[[Any], Any]] = {
    "no {}": lambda value: GONE,
    "an empty {}": lambda value: type(value)() if isinstance(value, str | list | dict) and value else KEEP,
    "{} as a list": lambda value: [value] if isinstance(value, str | int) else KEEP,
    "{} as a text": lambda value: "many" if isinstance(value, list | dict) or _number(value) else KEEP,
    "{} as a number": lambda value: 7 if isinstance(value, str) else KEEP,
    "an unknown field in {}": lambda value: {**value, "colour": "red"} if isinstance(value, dict) else KEEP,
    "{} below its range": lambda value: -1 if _number(value) else KEEP,
    "{} above its range": lambda value: 2**31 if _number(value) else KEEP,
    "{} too long": lambda value: value + "x" * 254 if isinstance(value, str) and value else KEEP,
    "blanks in {}": lambda value: f"A {value}" if isinstance(value, str) else KEEP,
    "{} twice": lambda value: [*value, value[-1]] if isinstance(value, list) and value else KEEP,
}


def mutants(seed: str, inputs: Properties) -> Iterator[tuple[str, Properties]]:
    """(what was done, a copy with one fault): every one there is, in an order drawn from the seed.

    The place of each depends on nothing else of the object, so one that gets another field keeps its mutants.
    """
    faults = {words.format(".".join(map(str, path))): (path, words, fault)
              for path in _paths(inputs) if path not in _LEFT_ALONE
              for words, fault in _FAULTS.items()}  # fmt: skip
    for what in sorted(faults, key=lambda what: hashlib.sha256(f"{seed} {what}".encode()).digest()):
        path, words, fault = faults[what]
        # A name that is left out is made up by the provider.
        if path == ("metadata", "name") and words in ("no {}", "an empty {}"):
            continue
        mutant = copy.deepcopy(inputs)
        if _put(mutant, path, fault):
            yield what, mutant


def _paths(value: Any, here: Path = ()) -> Iterator[Path]:
    if here:
        yield here
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield from _paths(item, (*here, key))


def _put(value: Any, path: Path, fault: Callable[[Any], Any]) -> bool:
    for key in path[:-1]:
        value = value[key]
    made = fault(value[path[-1]])
    if made is KEEP:
        return False
    if made is GONE:
        del value[path[-1]]
    else:
        value[path[-1]] = made
    return True
