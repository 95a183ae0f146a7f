"""Rules that the provider applies before it sends a request, and limits of the request itself.

`rehearsal.aws.provider` has the facts.
"""

from collections.abc import Callable, Iterator

from rehearsal.aws import provider
from rehearsal.aws.rules.book import BOOK
from rehearsal.core.model import Properties
from rehearsal.core.rules.cross_fields import of_cross_fields
from rehearsal.core.rules.facts import of_values
from rehearsal.core.rules.model import Rule, Violation


def _check(token: str) -> Callable[[Properties], Iterator[Violation]]:
    def check(inputs: Properties) -> Iterator[Violation]:
        of_type = provider.facts(token)
        yield from of_values(of_type, inputs)
        yield from of_cross_fields(of_type, inputs, ("", False))

    return check


_SOURCE = provider.source()
for _token in provider.lines():
    _name = _token.partition(":")[0]
    _summary = f"Values and combinations are those that the provider accepts for {_name}."
    BOOK.add(
        Rule(
            f"AWS-PROVIDER-{_name}",
            (f"aws:{_token}",),
            _summary,
            _SOURCE,
            alone=_check(_token),
            general=True,
        )
    )


def _requested(token: str) -> Callable[[Properties], Iterator[Violation]]:
    return lambda inputs: of_values(provider.facts(token, provider.REQUESTS), inputs)


_MODELS = provider.source(provider.REQUESTS)
for _token in provider.lines(provider.REQUESTS):
    _name = _token.partition(":")[0]
    BOOK.add(
        Rule(
            f"AWS-REQUEST-{_name}",
            (f"aws:{_token}",),
            f"Values are those that the service takes in the request that creates {_name}.",
            _MODELS,
            alone=_requested(_token),
            general=True,
        )
    )
