"""Facts of single values of every type that CloudFormation has too: allowed words, ranges, lengths."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from rehearsal.aws import values
from rehearsal.aws.rules.book import BOOK
from rehearsal.core.model import Properties
from rehearsal.core.rules.facts import of_values
from rehearsal.core.rules.model import Rule, Violation


def _check(facts: Mapping[str, Any]) -> Callable[[Properties], Iterator[Violation]]:
    return lambda inputs: of_values(facts, inputs)


for _token, _facts in values.facts().items():
    _name = _token.partition(":")[0]
    BOOK.add(
        Rule(
            f"AWS-VALUES-{_name}",
            (f"aws:{_token}",),
            f"Values of {_name} are within the lists and limits of CloudFormation's schema.",
            values.source(values.FACTS),
            alone=_check(_facts),
        )
    )
