"""Facts about single values of a type, by property path without indices, and their judges.

`words` are the allowed values (`words_any_case`: in any case; `service_words`: those of the service),
`ranges` of numbers have a lowest and a highest (null: none), `pattern` is found anywhere in a text, `keys` is
the same for the keys of a map, `length` is that of a text, `items` that of a list, `form` is a kind of text
that no pattern describes. `blank`: an empty text is accepted besides.
"""

import difflib
import ipaddress
import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from rehearsal.core.model import Properties
from rehearsal.core.properties import each
from rehearsal.core.rules.model import Violation

_DAY_S = 86400
# RFC 1918.
_PRIVATE = [ipaddress.ip_network(one) for one in ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16")]
# Values that a message lists.
_SHOWN = 20
# Judges a value by a fact; returns the problem.
_Judge = Callable[[Any, Any], str | None]


def of_values(of_type: Mapping[str, Any], inputs: Properties) -> Iterator[Violation]:
    """The violations of the facts of a type; unknown values have none."""
    for fact, judge in _JUDGES.items():
        for path, wanted in of_type.get(fact, {}).items():
            for here, value in each(inputs, path):
                blank = value == "" and path in of_type.get("blank", {})
                problem = None if blank else judge(value, wanted)
                if problem:
                    yield Violation(here, problem, _fix(value, wanted) if "words" in fact else "")


def _fix(value: Any, allowed: list[Any]) -> str:
    by_case = {str(one).lower(): one for one in allowed}
    near = difflib.get_close_matches(str(value).lower(), by_case, n=1)
    return f"Did you mean {by_case[near[0]]}?" if near else ""


def _words(value: Any, allowed: list[Any]) -> str | None:
    if value in allowed or (not isinstance(value, str) and str(value) in allowed):
        return None
    shown = [str(one) for one in allowed if one != ""]
    more = ", ..." if len(shown) > _SHOWN else ""
    return f"{value} is not one of {', '.join(shown[:_SHOWN])}{more}"


def _words_any_case(value: Any, allowed: list[str]) -> str | None:
    return None if str(value).lower() in [str(one).lower() for one in allowed] else _words(value, allowed)


def _ranges(value: Any, ranges: list[list[float | None]]) -> str | None:
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    if any((low is None or number >= low) and (high is None or number <= high) for low, high in ranges):
        return None
    shown = " or ".join(_span(low, high) for low, high in ranges)
    return f"{value} is not {shown}"


def _span(low: float | None, high: float | None) -> str:
    if low is None:
        return f"at most {high}"
    return f"at least {low}" if high is None else f"between {low} and {high}"


def _pattern(value: Any, pattern: str) -> str | None:
    return None if re.search(pattern, str(value)) else f"{value} does not match {pattern}"


def _keys(value: Any, pattern: str) -> str | None:
    wrong = [key for key in value if not re.search(pattern, key)] if isinstance(value, Mapping) else []
    return f"the key {wrong[0]} does not match {pattern}" if wrong else None


def _length(value: Any, bounds: list[int]) -> str | None:
    lowest, highest = bounds
    fits = lowest <= len(str(value)) <= highest
    return None if fits else f"it has {len(str(value))} characters, not {lowest} to {highest}"


def _items(value: Any, bounds: list[int | None]) -> str | None:
    lowest, highest = bounds
    count = len(value) if isinstance(value, list) else lowest or 0
    if count < (lowest or 0):
        return f"it has {count} items, but at least {lowest} are needed"
    return f"it has {count} items, but at most {highest} are allowed" if highest and count > highest else None


def _form(value: Any, form: str) -> str | None:
    kind, *bounds = form.split()
    if not isinstance(value, str):
        return None
    try:
        if kind == "json":
            json.loads(value)
        elif kind == "rotation":
            if float(value.removesuffix("s")) < _DAY_S or not value.endswith("s"):
                raise ValueError
        else:
            _network(value, kind, bounds)
    except ValueError:
        return f"{value} is not {_FORMS[kind].format(*bounds)}"
    return None


def _network(value: str, kind: str, bounds: list[str]) -> None:
    if "/" not in value:
        raise ValueError
    network = ipaddress.ip_network(value, strict=bool(bounds))
    if bounds and not int(bounds[0]) <= network.prefixlen <= int(bounds[1]):
        raise ValueError
    if kind == "private" and not any(network.network_address in one for one in _PRIVATE):
        raise ValueError


_FORMS = {
    "json": "valid JSON",
    "rotation": "a number of seconds with the unit s, at least 86400s",
    "cidr": "a range of addresses such as 10.0.0.0/20",
    "network": "a range of addresses with a prefix of {} to {} bits and no bits after it",
    "private": "a private range of addresses with a prefix of {} to {} bits and no bits after it",
}
_JUDGES: Mapping[str, _Judge] = {
    "words": _words,
    "words_any_case": _words_any_case,
    "service_words": _words,
    "ranges": _ranges,
    "pattern": _pattern,
    "keys": _keys,
    "length": _length,
    "items": _items,
    "form": _form,
}
