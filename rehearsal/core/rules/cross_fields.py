"""Limits across the properties of a type, by the facts of its provider.

`conflicts` and `partners`: paths that must not and that must be given with one. `exactly_one`, `some`: groups
`of` paths, where the object `within` is given.
"""

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from rehearsal.core.model import Properties
from rehearsal.core.properties import at, known
from rehearsal.core.rules.model import Violation

_Facts = Mapping[str, Any]


def of_cross_fields(of_type: _Facts, inputs: Properties, blank: Collection[Any] = ()) -> Iterator[Violation]:
    """The violations of a type's limits across properties; an unknown one is set, without conflicts.

    `blank`: values that conflict with none, since they may stand for a property that is not set.
    """
    yield from _conflicts(of_type, inputs, blank)
    yield from _partners(of_type, inputs)
    yield from _exactly_one(of_type, inputs, blank)
    yield from _some(of_type, inputs)


def _given(inputs: Properties, path: str) -> bool:
    """Return whether a property is set; false and zero are, as for Terraform, and an unknown value is."""
    return at(inputs, path) not in (None, [])


def _stated(inputs: Properties, path: str, blank: Collection[Any]) -> bool:
    """Return whether a property has a known value that may conflict."""
    value = at(inputs, path)
    unset = any(value == one and isinstance(value, type(one)) for one in blank)
    return _given(inputs, path) and known(value) and not unset


def _conflicts(of_type: _Facts, inputs: Properties, blank: Collection[Any]) -> Iterator[Violation]:
    for path, others in of_type.get("conflicts", {}).items():
        if _stated(inputs, path, blank):
            against = [one for one in others if _stated(inputs, one, blank)]
            if against:
                yield Violation(path, f"conflicts with {', '.join(against)}")


def _partners(of_type: _Facts, inputs: Properties) -> Iterator[Violation]:
    for path, others in of_type.get("partners", {}).items():
        absent = [one for one in others if not _given(inputs, one)]
        if _given(inputs, path) and absent:
            yield Violation(path, f"needs {', '.join(absent)}")


def _exactly_one(of_type: _Facts, inputs: Properties, blank: Collection[Any]) -> Iterator[Violation]:
    for row in of_type.get("exactly_one", ()):
        found = [one for one in row["of"] if _given(inputs, one)]
        sure = [one for one in found if _stated(inputs, one, blank)]
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
