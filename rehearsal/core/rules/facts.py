"""Facts about single values of a type, by property path without indices, and their judges.

`words` are the allowed values (`words_any_case`: in any case; `service_words`: those of the service),
`ranges` of numbers have a lowest and a highest (null: none), `pattern` is found anywhere in a text, `keys` is
the same for the keys of a map, `length` is that of a text, `items` that of a list, `form` is a kind of text
that no pattern describes. `blank`: an empty text is accepted besides.
"""

import difflib
import functools
import ipaddress
import json
import re
import zoneinfo
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
                if isinstance(value, Mapping | list) and fact not in _OF_MANY:
                    continue  # a secret, or a value of another form
                blank = value == "" and path in of_type.get("blank", {})
                problem = None if blank else judge(value, wanted)
                if problem:
                    yield Violation(here, problem, _fix(value, wanted) if "words" in fact else "")


def _fix(value: Any, allowed: list[Any]) -> str:
    by_case = {str(one).lower(): one for one in allowed}
    near = difflib.get_close_matches(str(value).lower(), by_case, n=1)
    return f"Did you mean {by_case[near[0]]}?" if near else ""


def _words(value: Any, allowed: list[Any]) -> str | None:
    said = str(value).lower() if isinstance(value, bool) else str(value)
    if value in allowed or (not isinstance(value, str) and said in allowed):
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
        elif kind == "address":
            ipaddress.ip_address(value)
        elif kind == "integer":
            int(value)
        elif kind == "zone":
            if _zones() and value not in _zones():
                raise ValueError
        elif kind in _SHAPES:
            if not re.fullmatch(_SHAPES[kind], value):
                raise ValueError
        else:
            _network(value, kind, bounds)
    except ValueError:
        return f"{value} is not {_FORMS[kind].format(*bounds)}"
    return None


@functools.cache
def _zones() -> frozenset[str]:
    """The zones of the machine's database; empty where it has none."""
    return frozenset(zoneinfo.available_timezones())


def _network(value: str, kind: str, bounds: list[str]) -> None:
    if "/" not in value:
        raise ValueError
    network = ipaddress.ip_network(value, strict=bool(bounds))
    if bounds and not int(bounds[0]) <= network.prefixlen <= int(bounds[1]):
        raise ValueError
    if kind == "private" and not any(network.network_address in one for one in _PRIVATE):
        raise ValueError


_SHAPES = {
    "account": r"\d{12}",
    "arn": r"arn:.+|\*",
    "boolean": r"1|t|T|TRUE|true|True|0|f|F|FALSE|false|False",
    "day": r"([01]\d|2[0-3]):[0-5]\d-([01]\d|2[0-3]):[0-5]\d",
    "time": r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d([.,]\d+)?(Z|[+-]\d\d:\d\d)",
    "url": r"[A-Za-z][A-Za-z0-9+.-]*://.+",
    "week": r"(?i)(?:-?(?:mon|tue|wed|thu|fri|sat|sun):([01]\d|2[0-3]):[0-5]\d){2}",
}
_FORMS = {
    "account": "the number of an account (12 digits)",
    "address": "an IP address",
    "arn": "an ARN (arn:aws:service:region:account:resource)",
    "boolean": "true or false",
    "day": "a window of a day (hh24:mi-hh24:mi)",
    "integer": "a whole number",
    "json": "valid JSON",
    "time": "a time such as 2026-01-01T00:00:00Z",
    "url": "a URL",
    "week": "a window of a week (ddd:hh24:mi-ddd:hh24:mi)",
    "zone": "a time zone of IANA's database, such as Europe/Berlin",
    "rotation": "a number of seconds with the unit s, at least 86400s",
    "cidr": "a range of addresses such as 10.0.0.0/20",
    "network": "a range of addresses with a prefix of {} to {} bits and no bits after it",
    "private": "a private range of addresses with a prefix of {} to {} bits and no bits after it",
}
# Facts of lists and maps.
_OF_MANY = ("items", "keys")
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
