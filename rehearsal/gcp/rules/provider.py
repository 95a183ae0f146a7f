"""Rules that the provider applies before it sends a request; `rehearsal.gcp.provider` has the facts."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from rehearsal.core.model import Properties
from rehearsal.core.rules.cross_fields import of_cross_fields
from rehearsal.core.rules.facts import of_values
from rehearsal.core.rules.model import Rule, Violation
from rehearsal.gcp.provider import facts, source
from rehearsal.gcp.rules.book import BOOK

_Facts = Mapping[str, Any]


_CHECKS = (of_values, of_cross_fields)


def _check(of_type: _Facts) -> Callable[[Properties], Iterator[Violation]]:
    return lambda inputs: (found for check in _CHECKS for found in check(of_type, inputs))


for _token, _of_type in facts().items():
    _name = _of_type["terraform"]
    _summary = f"Values and combinations are those that the provider accepts in {_name}."
    BOOK.add(Rule(f"GCP-PROVIDER-{_name}", (f"gcp:{_token}",), _summary, source(), alone=_check(_of_type)))
