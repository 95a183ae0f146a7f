"""Rules that the provider applies before it sends a request; `rehearsal.gcp.provider` has the facts."""

import ipaddress
import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from rehearsal.core.model import UNKNOWN, Properties
from rehearsal.core.properties import at, each, known
from rehearsal.core.rules.model import Rule, Violation
from rehearsal.gcp.provider import facts, source
from rehearsal.gcp.rules.book import BOOK

_Facts = Mapping[str, Any]
_DAY_S = 86400
# RFC 1918.
_PRIVATE = [ipaddress.ip_network(one) for one in ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16")]
# Judges a value by a fact; returns the problem.
_Judge = Callable[[Any, Any], str | None]


def _words(value: Any, allowed: list[str]) -> str | None:
    return None if value in allowed else f"{value} is not one of {', '.join(filter(None, allowed))}"


def _words_any_case(value: Any, allowed: list[str]) -> str | None:
    return None if str(value).lower() in [one.lower() for one in allowed] else _words(value, allowed)


def _ranges(value: Any, ranges: list[list[float | None]]) -> str | None:
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    if any((low is None or number >= low) and (high is None or number <= high) for low, high in ranges):
        return None
    shown = " or ".join(
        f"at least {low}" if high is None else f"between {low} and {high}" for low, high in ranges
    )
    return f"{value} is not {shown}"


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
_OF_VALUES: Mapping[str, _Judge] = {
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


def _of_values(of_type: _Facts, inputs: Properties) -> Iterator[Violation]:
    for fact, judge in _OF_VALUES.items():
        for path, wanted in of_type.get(fact, {}).items():
            for here, value in each(inputs, path):
                blank = value == "" and path in of_type.get("blank", {})
                problem = None if blank else judge(value, wanted)
                if problem:
                    yield Violation(here, problem)


def _given(inputs: Properties, path: str) -> bool:
    """Return whether a property is set; false and zero are, as for Terraform, and an unknown value is."""
    return at(inputs, path) not in (None, [])


def _conflicts(of_type: _Facts, inputs: Properties) -> Iterator[Violation]:
    for path, others in of_type.get("conflicts", {}).items():
        if _given(inputs, path) and known(at(inputs, path)):
            against = [one for one in others if _given(inputs, one) and at(inputs, one) is not UNKNOWN]
            if against:
                yield Violation(path, f"conflicts with {', '.join(against)}")


def _partners(of_type: _Facts, inputs: Properties) -> Iterator[Violation]:
    for path, others in of_type.get("partners", {}).items():
        absent = [one for one in others if not _given(inputs, one)]
        if _given(inputs, path) and absent:
            yield Violation(path, f"needs {', '.join(absent)}")


def _exactly_one(of_type: _Facts, inputs: Properties) -> Iterator[Violation]:
    for row in of_type.get("exactly_one", ()):
        found = [one for one in row["of"] if _given(inputs, one)]
        sure = [one for one in found if known(at(inputs, one))]
        if _present(inputs, row["within"]) and (not found or len(sure) > 1):
            count = f"{len(sure)} are: {', '.join(sure)}" if sure else "none is"
            yield Violation(_first(row), f"exactly one of {', '.join(row['of'])} must be set; {count}")


def _some(of_type: _Facts, inputs: Properties) -> Iterator[Violation]:
    for row in of_type.get("some", ()):
        if _present(inputs, row["within"]) and not any(_given(inputs, one) for one in row["of"]):
            yield Violation(_first(row), f"at least one of {', '.join(row['of'])} must be set")


def _present(inputs: Properties, within: str) -> bool:
    return not within or isinstance(at(inputs, within), Mapping)


def _first(row: _Facts) -> str:
    return str(row["within"] or row["of"][0])


_CHECKS = (_of_values, _conflicts, _partners, _exactly_one, _some)


def _check(of_type: _Facts) -> Callable[[Properties], Iterator[Violation]]:
    return lambda inputs: (found for check in _CHECKS for found in check(of_type, inputs))


for _token, _of_type in facts().items():
    _name = _of_type["terraform"]
    _summary = f"Values and combinations are those that the provider accepts in {_name}."
    BOOK.add(Rule(f"GCP-PROVIDER-{_name}", (f"gcp:{_token}",), _summary, source(), alone=_check(_of_type)))
