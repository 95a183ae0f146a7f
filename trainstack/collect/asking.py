"""In which order the questions of a cloud are asked: those first whose items others are about."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from policies.sources.live.form import Look, View
from policies.sources.live.question import Answers, Question

Asked = tuple[Question, Mapping[str, Any]]
"""A question, and the parameters that are taken from an item of another one."""


def everything(
    questions: Mapping[str, Question],
    account: str,
    region: str,
    ask: Callable[[Sequence[Asked]], Sequence[Answers]],
) -> dict[str, Answers]:
    """The answers to all questions, by name. `ask` is given those that can be asked at the same time."""
    answers: dict[str, Answers] = {}
    waiting = dict(questions)
    while waiting:
        ready = [one for one in waiting.values() if one.of not in waiting]
        look = Look(account, region, answers)
        asked = [(question, parameters) for question in ready for parameters in _parameters(question, look)]
        heard = ask(asked)
        for question in ready:
            own = [found for (other, _), found in zip(asked, heard, strict=True) if other is question]
            answers[question.name] = Answers(
                tuple(item for found in own for item in found.items),
                tuple(refusal for found in own for refusal in found.refusals),
            )
            del waiting[question.name]
    return answers


def _parameters(question: Question, look: Look) -> Iterator[dict[str, Any]]:
    """Of each time that a question is asked: once, or for each item of the one that it is about."""
    if not question.of:
        yield {}
        return
    for item in look.items(question.of):
        view = View(item, look)
        asked = {name: view.at(path) for name, path in question.by.items()}
        if not any(value in (None, [None]) for value in asked.values()):  # an item may not have it
            yield asked
