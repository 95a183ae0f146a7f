"""Asks a project of Google Cloud the questions of `policies/sources/live/gcp`. It only reads.

Untested in a real project: questions and answers are held against discovery documents alone.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import quote

import jmespath
import requests
from jmespath.exceptions import JMESPathError

from infra.collect.asking import Asked, everything
from infra.collect.google_methods import METHODS, Method
from infra.collect.redaction import redacted_asset
from infra.google_login import LoggedOutError, logged_in
from policies.sources.live.gcp.assets import PROJECT
from policies.sources.live.question import ACCOUNT, Answers, Item, Question, Refusal
from policies.sources.live.snapshot import Snapshot, moment
from policies.sources.live.tables import tables

ATTEMPTS = 7
"""Of each request, before throttling counts as no answer: about a minute of waits in all."""
EVERYWHERE = "all-regions"
"""A snapshot is of a whole project."""
_SECONDS = (5, 60)
"""To connect, and between two pieces of an answer."""
_TOKEN = "nextPageToken"  # noqa: S105 - the name of a field
_NAMED = re.compile(r"\{(\w+)\}")
HALF, UNREADABLE, DISABLED = "IncompleteAnswer", "UnreadableAnswer", "SERVICE_DISABLED"
# Of one type alone: others may still be answered.
_PARTIAL = ("PERMISSION_DENIED", "INVALID_ARGUMENT", "NOT_FOUND", HALF)


class UnansweredError(Exception):
    """A project cannot be asked at all; its argument is the first Refusal."""


class _RefusedError(Exception):
    def __init__(self, code: str, message: str, *, ours: bool = True) -> None:
        """`ours`: it is about the project that is asked, and not about one that is billed for asking."""
        super().__init__(code, message)
        self.code, self.message, self.ours = code, message, ours


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
        except _RefusedError as error:
            code, message, ours = error.code, error.message, error.ours
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
        for page in self._pages(method, given):
            part = jmespath.search(question.key, page) if question.key else page
            found += part if isinstance(part, list) else [part] if part else []
            if question.service == "cloudasset":
                self.time = self.time or str(page.get("readTime", ""))
        return found

    def _pages(self, method: Method, given: Mapping[str, Any]) -> Iterator[Any]:
        further: dict[str, str] = {}
        while True:
            page = self._answer(method, {**given, **method.page, **further})
            yield page
            token = page.get(_TOKEN)
            if not token:
                return
            if further.get("pageToken") == token:
                raise _RefusedError(HALF, "a page leads to itself")
            further = {"pageToken": token}

    def _answer(self, method: Method, given: Mapping[str, Any]) -> dict[str, Any]:
        """One answer. Raises _RefusedError, LoggedOutError, and RequestException or ValueError."""
        in_path = set(_NAMED.findall(method.address))
        address = _NAMED.sub(lambda name: quote(str(given[name[1]]), safe="/:"), method.address)
        rest = {name: value for name, value in given.items() if name not in in_path}
        sent: dict[str, Any] = {"json": _nested(rest)} if method.verb == "POST" else {"params": rest}
        response = self._session.request(method.verb, address, timeout=_SECONDS, **sent)
        if response.status_code == requests.codes.unauthorized:
            raise LoggedOutError(f"UNAUTHENTICATED: {_told(response)[1]}")
        if not response.ok:
            raise _RefusedError(*_told(response), ours=self._is_ours(response))
        page = response.json()
        if not isinstance(page, dict):
            raise ValueError("the answer is no object")
        lacking = [*(page.get("unreachable") or ()), *_truncated(page)]
        if lacking:
            raise _RefusedError(HALF, f"without {', '.join(map(str, lacking))}")
        return page

    def _is_ours(self, response: requests.Response) -> bool:
        consumer = str(_reason(response).get("metadata", {}).get("consumer", ""))
        return consumer in (f"projects/{self._project}", f"projects/{self.number}")


def _filled(value: Any, project: str) -> Any:
    return value.replace(ACCOUNT, project) if isinstance(value, str) else value


def _nested(given: Mapping[str, Any]) -> dict[str, Any]:
    """`{"options.requestedPolicyVersion": 3}` as the object that it stands for."""
    made: dict[str, Any] = {}
    for path, value in given.items():
        *above, name = path.split(".")
        below = made
        for step in above:
            below = below.setdefault(step, {})
        below[name] = value
    return made


def _truncated(page: Mapping[str, Any]) -> list[str]:
    """Assets of which Asset Inventory left something out (cloudasset v1, AssetException)."""
    assets = page.get("assets")
    return [
        str(one.get("name")) for one in assets or () if isinstance(one, dict) and one.get("assetExceptions")
    ]


def _told(response: requests.Response) -> tuple[str, str]:
    """Code and message of a refusal (google.rpc.Status; Cloud Storage has a form of its own)."""
    error = _error(response)
    reason = _reason(response).get("reason")
    code = (
        reason if reason == "SERVICE_DISABLED" else error.get("status") or _STATUS.get(response.status_code)
    )
    message = str(error.get("message") or response.reason or "")
    return str(code or f"HTTP {response.status_code}"), message


_STATUS = {403: "PERMISSION_DENIED", 404: "NOT_FOUND", 429: "RESOURCE_EXHAUSTED", 503: "UNAVAILABLE"}


def _error(response: requests.Response) -> dict[str, Any]:
    try:
        found = response.json()["error"]
    except (ValueError, KeyError, TypeError):
        return {}
    return found if isinstance(found, dict) else {}


def _reason(response: requests.Response) -> dict[str, Any]:
    """The ErrorInfo of a refusal; empty where it has none."""
    rows = _error(response).get("details") or ()
    kind = "google.rpc.ErrorInfo"
    return next((one for one in rows if isinstance(one, dict) and str(one.get("@type")).endswith(kind)), {})
