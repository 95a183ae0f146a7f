"""Order of API queries: a query runs after the one whose items it needs."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from policies.sources.live.mapping import AnswerIndex, View
from policies.sources.live.queries import Answers, ApiQuery

Call = tuple[ApiQuery, Mapping[str, Any]]
"""A query, and the parameters from an item of another one."""


def run_all(
    queries: Mapping[str, ApiQuery],
    account: str,
    region: str,
    run: Callable[[Sequence[Call]], Sequence[Answers]],
) -> dict[str, Answers]:
    """The answers of all queries, by name. `run` gets the calls that can run at the same time."""
    answers: dict[str, Answers] = {}
    waiting = dict(queries)
    while waiting:
        ready = [one for one in waiting.values() if one.of not in waiting]
        look = AnswerIndex(account, region, answers)
        calls = [(query, parameters) for query in ready for parameters in _parameters(query, look)]
        answered = run(calls)
        for query in ready:
            own = [found for (other, _), found in zip(calls, answered, strict=True) if other is query]
            answers[query.name] = Answers(
                tuple(item for found in own for item in found.items),
                tuple(refusal for found in own for refusal in found.refusals),
            )
            del waiting[query.name]
    return answers


def _parameters(query: ApiQuery, look: AnswerIndex) -> Iterator[dict[str, Any]]:
    """Parameters of each call: one without, or one per item of the query that it depends on."""
    if not query.of:
        yield {}
        return
    for item in look.items(query.of):
        view = View(item, look)
        asked = {name: view.at(path) for name, path in query.by.items()}
        if not any(value in (None, [None]) for value in asked.values()):  # an item may lack it
            yield asked
