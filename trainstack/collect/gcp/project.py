"""Run the queries of `policies/sources/live/gcp` in a project of Google Cloud. Read-only.

Untested in a real project: queries and answers are tested with discovery documents only.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import jmespath
import requests
from jmespath.exceptions import JMESPathError

from infra.clouds.gcp.api import HALF, ApiRequestError, pages
from infra.clouds.gcp.login import logged_in
from policies.sources.live.gcp.assets import PROJECT
from policies.sources.live.queries import ACCOUNT, AnswerItem, Answers, ApiQuery, ApiRefusal
from policies.sources.live.snapshot import Snapshot, moment
from policies.sources.live.tables import tables
from trainstack.collect.gcp.methods import METHODS
from trainstack.collect.query_order import Call, run_all
from trainstack.collect.redaction import redacted_asset

ATTEMPTS = 7
"""Per request, before throttling counts as an error: about a minute of waits in all."""
ALL_REGIONS = "all-regions"
"""A snapshot covers a whole project."""
UNREADABLE = "UnreadableAnswer"
# Errors of a single type: other types may still succeed.
_PARTIAL = ("PERMISSION_DENIED", "INVALID_ARGUMENT", "NOT_FOUND", HALF)


class UnansweredError(Exception):
    """A project cannot be read at all; the argument is the first ApiRefusal."""


def collect(project: str, session: requests.Session) -> Snapshot:
    """Snapshot of a project. Errors of queries are part of the snapshot.

    Raises LoggedOutError without valid credentials, and UnansweredError if the project cannot be read.
    """
    collector = _Collector(project, session)
    queries = dict(tables("gcp").queries)
    about = collector.answers(queries.pop(PROJECT), {})
    for refusal in about.refusals:
        raise UnansweredError(refusal)
    collector.number = str(about.items[0].answer.get("projectNumber", "")) if about.items else ""
    answers = run_all(queries, project, ALL_REGIONS, collector.all)
    return Snapshot("gcp", project, ALL_REGIONS, collector.time or moment(), {PROJECT: about, **answers})


class _Collector:
    def __init__(self, project: str, session: requests.Session) -> None:
        self._project, self._session = project, session
        self.number = ""
        self.time = ""
        """Read time of the first list of assets, used for all others: one time for the whole snapshot."""

    def all(self, calls: Sequence[Call]) -> list[Answers]:
        """Run calls one by one: the quota of Asset Inventory is some hundred requests a minute."""
        return [self.answers(*one) for one in calls]

    def answers(self, query: ApiQuery, asked: Mapping[str, Any]) -> Answers:
        """The answer of a query. Raises UnansweredError if all lists of assets will fail."""
        try:
            with logged_in():
                return Answers(
                    tuple(AnswerItem(redacted_asset(one), asked) for one in self._items(query, asked))
                )
        except ApiRequestError as error:
            code, message, ours = error.code, error.message, self._is_ours(error)
        except JMESPathError as error:
            code, message, ours = HALF, str(error), True
        except (requests.RequestException, ValueError) as error:
            code, message, ours = UNREADABLE, f"{type(error).__name__}: {error}", True
        if code in query.unset and ours:
            return Answers()
        refusal = ApiRefusal(code, message, query.right, asked)
        if query.service == "cloudasset" and not self.time and code not in _PARTIAL:
            raise UnansweredError(refusal)
        return Answers((), (refusal,))

    def _items(self, query: ApiQuery, asked: Mapping[str, Any]) -> list[Any]:
        method = METHODS[f"{query.service}.{query.operation}"]
        given = {name: _filled(value, self._project) for name, value in query.given.items()} | dict(asked)
        if query.service == "cloudasset" and self.time:
            given["readTime"] = self.time
        found: list[Any] = []
        for page in pages(self._session, method, given):
            lacking = _truncated(page)
            if lacking:
                raise ApiRequestError(HALF, f"without {', '.join(lacking)}")
            part = jmespath.search(query.key, page) if query.key else page
            found += part if isinstance(part, list) else [part] if part else []
            if query.service == "cloudasset":
                self.time = self.time or str(page.get("readTime", ""))
        return found

    def _is_ours(self, error: ApiRequestError) -> bool:
        """Return whether the error concerns the project itself, and not the billed quota project."""
        return error.consumer is None or error.consumer in (
            f"projects/{self._project}",
            f"projects/{self.number}",
        )


def _filled(value: Any, project: str) -> Any:
    return value.replace(ACCOUNT, project) if isinstance(value, str) else value


def _truncated(page: Mapping[str, Any]) -> list[str]:
    """Incomplete assets of Asset Inventory (cloudasset v1, AssetException)."""
    assets = page.get("assets")
    return [
        str(one.get("name")) for one in assets or () if isinstance(one, dict) and one.get("assetExceptions")
    ]
