"""Rules that the provider applies before it sends a request; `rehearsal.gcp.provider` has the facts."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from rehearsal.core.model import UNKNOWN, Properties
from rehearsal.core.properties import at, known
from rehearsal.core.rules.facts import of_values
from rehearsal.core.rules.model import Rule, Violation
from rehearsal.gcp.provider import facts, source
from rehearsal.gcp.rules.book import BOOK

_Facts = Mapping[str, Any]


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


_CHECKS = (of_values, _conflicts, _partners, _exactly_one, _some)


def _check(of_type: _Facts) -> Callable[[Properties], Iterator[Violation]]:
    return lambda inputs: (found for check in _CHECKS for found in check(of_type, inputs))


for _token, _of_type in facts().items():
    _name = _of_type["terraform"]
    _summary = f"Values and combinations are those that the provider accepts in {_name}."
    BOOK.add(Rule(f"GCP-PROVIDER-{_name}", (f"gcp:{_token}",), _summary, source(), alone=_check(_of_type)))
