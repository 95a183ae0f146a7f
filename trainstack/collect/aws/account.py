"""Run the queries of `policies/sources/live/aws` in an AWS account. Read-only.

Untested in a real account: queries and answers are tested with the service models of botocore and with moto.
"""

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import jmespath
from botocore import exceptions, xform_name
from botocore.parsers import ResponseParserError

from infra.clouds.aws import login as aws_login
from infra.clouds.aws.login import LoggedOutError, logged_in
from infra.clouds.aws.login import code_and_message as error_parts
from policies.sources.live.queries import ACCOUNT, REGION, AnswerItem, Answers, ApiQuery, ApiRefusal
from policies.sources.live.snapshot import Snapshot, moment
from policies.sources.live.tables import tables
from trainstack.collect.query_order import Call, run_all
from trainstack.collect.redaction import redacted

ATTEMPTS = 10
"""Per request, before throttling counts as an error: some three minutes of waits in all."""
_AT_ONCE = 8
# Error codes of services for resources that were deleted after the list.
_GONE = ("NotFound", "NoSuchEntity", "NoSuchBucket", "NotFoundException", "NotFoundFault")
# Tokens of the few lists without a paginator in the SDK: name in the response, and in the next request.
_TOKENS = {
    **{name: name for name in ("NextToken", "nextToken", "NextPageToken", "Marker")},
    "LastEvaluatedGlobalTableName": "ExclusiveStartGlobalTableName",
}


def collect(region: str, clients: aws_login.Clients | None = None) -> Snapshot:
    """Snapshot of a region, in the account of the environment's credentials.

    Errors of queries are part of the snapshot. Raises LoggedOutError without credentials.
    """
    clients = clients or aws_login.clients(ATTEMPTS)
    with logged_in():
        account = clients("sts", region).get_caller_identity()["Account"]
    collector = _Collector(account, region, clients)
    taken = moment()
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        answers = run_all(tables("aws").queries, account, region, lambda calls: collector.all(calls, pool))
    return Snapshot("aws", account, region, taken, answers)


class _Collector:
    def __init__(self, account: str, region: str, clients: aws_login.Clients) -> None:
        self._account, self._region, self._clients = account, region, clients
        self._made: dict[tuple[str, str], Any] = {}
        self._where = {ACCOUNT: account, REGION: region}

    def all(self, calls: Sequence[Call], pool: ThreadPoolExecutor) -> list[Answers]:
        """The answers of several calls, in their order."""
        for query, _ in calls:  # clients are made one at a time: sessions are not safe for threads
            self._client(query)
        return list(pool.map(lambda pair: self._answers(*pair), calls))

    def _client(self, query: ApiQuery) -> Any:
        key = (query.service, query.region or self._region)
        if key not in self._made:
            with logged_in():
                self._made[key] = self._clients(*key)
        return self._made[key]

    def _answers(self, query: ApiQuery, asked: Mapping[str, Any]) -> Answers:
        try:
            with logged_in():
                return Answers(tuple(AnswerItem(redacted(one), asked) for one in self._items(query, asked)))
        except LoggedOutError:
            raise
        except exceptions.ClientError as error:
            code, message = error_parts(error)
            unset = code in query.unset or (query.of and code.endswith(_GONE))
            return Answers() if unset else Answers((), (self._refusal(query, code, message, asked),))
        except (exceptions.BotoCoreError, ResponseParserError) as error:
            refusal = self._refusal(query, type(error).__name__, str(error), asked)
            return Answers((), (refusal,))

    def _refusal(self, query: ApiQuery, code: str, message: str, asked: Mapping[str, Any]) -> ApiRefusal:
        return ApiRefusal(code, message, right_of(query, self._client(query).meta.service_model), asked)

    def _items(self, query: ApiQuery, asked: Mapping[str, Any]) -> Iterator[Any]:
        client, method = self._client(query), xform_name(query.operation)
        given = {name: self._where.get(str(value), value) for name, value in query.given.items()}
        for page in _pages(client, method, {**given, **asked}):
            if not query.key:
                yield {name: value for name, value in page.items() if name != "ResponseMetadata"}
                continue
            found = jmespath.search(query.key, page)
            yield from found if isinstance(found, list) else [found] if found is not None else []


def _pages(client: Any, method: str, parameters: Mapping[str, Any]) -> Iterator[Any]:
    """All pages of a response, by paginator, or by token for lists without one in the SDK."""
    if client.can_paginate(method):
        yield from client.get_paginator(method).paginate(**parameters)
        return
    further: dict[str, Any] = {}
    while True:
        page = getattr(client, method)(**parameters, **further)
        yield page
        further = {name: page[token] for token, name in _TOKENS.items() if page.get(token)}
        if not further:
            return


def right_of(query: ApiQuery, service: Any) -> str:
    """The IAM action that a query needs, by the SDK's model of its service."""
    return query.right or f"{service.signing_name}:{query.operation}"
