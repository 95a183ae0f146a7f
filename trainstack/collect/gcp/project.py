"""Asks a project of Google Cloud the questions of `policies/sources/live/gcp`. It only reads.

Untested in a real project: questions and answers are held against discovery documents alone.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import jmespath
import requests
from jmespath.exceptions import JMESPathError

from infra.clouds.gcp.api import HALF, ApiRequestError, pages
from infra.clouds.gcp.login import logged_in
from policies.sources.live.gcp.assets import PROJECT
from policies.sources.live.question import ACCOUNT, Answers, Item, Question, Refusal
from policies.sources.live.snapshot import Snapshot, moment
from policies.sources.live.tables import tables
from trainstack.collect.asking import Asked, everything
from trainstack.collect.gcp.methods import METHODS
from trainstack.collect.redaction import redacted_asset

ATTEMPTS = 7
"""Of each request, before throttling counts as no answer: about a minute of waits in all."""
EVERYWHERE = "all-regions"
"""A snapshot is of a whole project."""
UNREADABLE = "UnreadableAnswer"
# Of one type alone: others may still be answered.
_PARTIAL = ("PERMISSION_DENIED", "INVALID_ARGUMENT", "NOT_FOUND", HALF)


class UnansweredError(Exception):
    """A project cannot be asked at all; its argument is the first Refusal."""


def collect(project: str, session: requests.Session) -> Snapshot:
    """Everything that a project answers; what is refused is written down as such.

    Raises LoggedOutError where Google accepts no credentials, and UnansweredError where it does not tell of
    the project, or answers nothing.
    """
    asking = _Asking(project, session)
    questions = dict(tables("gcp").questions)
    about = asking.heard(questions.pop(PROJECT), {})
    for refusal in about.refusals:
        raise UnansweredError(refusal)
    asking.number = str(about.items[0].answer.get("projectNumber", "")) if about.items else ""
    answers = everything(questions, project, EVERYWHERE, asking.all)
    return Snapshot("gcp", project, EVERYWHERE, asking.time or moment(), {PROJECT: about, **answers})


class _Asking:
    def __init__(self, project: str, session: requests.Session) -> None:
        self._project, self._session = project, session
        self.number = ""
        self.time = ""
        """Of the first list of assets, and asked of all others: one moment for the whole snapshot."""

    def all(self, asked: Sequence[Asked]) -> list[Answers]:
        """One after the other: a project may ask Asset Inventory some hundred times a minute."""
        return [self.heard(*one) for one in asked]

    def heard(self, question: Question, asked: Mapping[str, Any]) -> Answers:
        """The answer to a question. Raises UnansweredError where all lists of assets will fail."""
        try:
            with logged_in():
                return Answers(
                    tuple(Item(redacted_asset(one), asked) for one in self._items(question, asked))
                )
        except ApiRequestError as error:
            code, message, ours = error.code, error.message, self._is_ours(error)
        except JMESPathError as error:
            code, message, ours = HALF, str(error), True
        except (requests.RequestException, ValueError) as error:
            code, message, ours = UNREADABLE, f"{type(error).__name__}: {error}", True
        if code in question.unset and ours:
            return Answers()
        refusal = Refusal(code, message, question.right, asked)
        if question.service == "cloudasset" and not self.time and code not in _PARTIAL:
            raise UnansweredError(refusal)
        return Answers((), (refusal,))

    def _items(self, question: Question, asked: Mapping[str, Any]) -> list[Any]:
        method = METHODS[f"{question.service}.{question.operation}"]
        given = {name: _filled(value, self._project) for name, value in question.given.items()} | dict(asked)
        if question.service == "cloudasset" and self.time:
            given["readTime"] = self.time
        found: list[Any] = []
        for page in pages(self._session, method, given):
            lacking = _truncated(page)
            if lacking:
                raise ApiRequestError(HALF, f"without {', '.join(lacking)}")
            part = jmespath.search(question.key, page) if question.key else page
            found += part if isinstance(part, list) else [part] if part else []
            if question.service == "cloudasset":
                self.time = self.time or str(page.get("readTime", ""))
        return found

    def _is_ours(self, error: ApiRequestError) -> bool:
        """Whether it is about the project that is asked, and not about one that is billed for asking."""
        return error.consumer is None or error.consumer in (
            f"projects/{self._project}",
            f"projects/{self.number}",
        )


def _filled(value: Any, project: str) -> Any:
    return value.replace(ACCOUNT, project) if isinstance(value, str) else value


def _truncated(page: Mapping[str, Any]) -> list[str]:
    """Assets of which Asset Inventory left something out (cloudasset v1, AssetException)."""
    assets = page.get("assets")
    return [
        str(one.get("name")) for one in assets or () if isinstance(one, dict) and one.get("assetExceptions")
    ]
