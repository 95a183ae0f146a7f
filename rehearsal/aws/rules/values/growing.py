"""Machine types and versions of services: lists that grow (`core.rules.open_lists`).

A value that a resource has already is not judged again: a service retires values for new resources only.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from rehearsal.aws import values
from rehearsal.aws.rules.book import BOOK, AwsContext
from rehearsal.core.model import Properties
from rehearsal.core.properties import at, each
from rehearsal.core.rules import open_lists
from rehearsal.core.rules.model import Rule, Violation
from rehearsal.core.rules.open_lists import ListVerdict

_Use = Mapping[str, Any]
_WHAT = {"machines": "machine type", "versions": "version"}


def _judged(use: _Use, inputs: Properties, site: AwsContext) -> Iterator[tuple[str, str, ListVerdict, str]]:
    """(path, value, verdict, nearest known value) of each new value of a list."""
    name = _list(use, inputs)
    current = [found for token in use["types"] if (found := site.current(token))]
    for path in use["paths"] if name else ():
        for here, value in each(inputs, path):
            had = any(at(one.inputs, here) == value for one in current)
            if isinstance(value, str) and not had and value not in use.get("others", ()):
                verdict, near = _verdict(use["kind"], name, value)
                yield here, value, verdict, near


def _list(use: _Use, inputs: Properties) -> str:
    """The name of the list; empty for an engine that is not known, or that no list is about."""
    name, engine = str(use["list"]), str(inputs.get(use.get("by", ""), use.get("usual", "")))
    full = f"{name} {engine}" if "by" in use else name
    known = values.has_machines(full) if use["kind"] == "machines" else bool(values.versions(full))
    return full if known else ""


def _verdict(kind: str, name: str, value: str) -> tuple[ListVerdict, str]:
    if kind == "machines":
        machines = values.machines(name)
        verdict = machines.judge(value)
        return verdict, machines.nearest(value) if verdict is ListVerdict.WRONG else ""
    known = values.versions(name)
    verdict = open_lists.version(value, known)
    return verdict, open_lists.nearest(value, known) if verdict is ListVerdict.WRONG else ""


def _wrong(use: _Use) -> Callable[[Properties, AwsContext], Iterator[Violation]]:
    def check(inputs: Properties, site: AwsContext) -> Iterator[Violation]:
        for path, value, verdict, near in _judged(use, inputs, site):
            if verdict is ListVerdict.WRONG:
                text = f"{value} is not a {_WHAT[use['kind']]} of {_list(use, inputs)}"
                yield Violation(path, text, f"Did you mean {near}?", "InvalidParameterValue")

    return check


def _newer(use: _Use) -> Callable[[Properties, AwsContext], Iterator[Violation]]:
    def check(inputs: Properties, site: AwsContext) -> Iterator[Violation]:
        for path, value, verdict, _ in _judged(use, inputs, site):
            if verdict is ListVerdict.NEWER:
                text = f"{value} may be newer than the list of {_list(use, inputs)}, which does not have it"
                yield Violation(path, text, f"The list is of {values.source()}.")

    return check


for _use in values.uses():
    _types = tuple(f"aws:{token}" for token in _use["types"])
    _name = f"{', '.join(_use['paths'])} is a {_WHAT[_use['kind']]} of {_use['list']}"
    BOOK.add(Rule(f"AWS-LIST-{_use['id']}", _types, f"{_name}.", values.source(), around=_wrong(_use)))
    BOOK.add(
        Rule(
            f"AWS-NEWER-{_use['id']}",
            _types,
            f"{_name} that its list has.",
            values.source(),
            around=_newer(_use),
            advice=True,
        )
    )
