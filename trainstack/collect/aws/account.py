"""Asks an AWS account the questions of `policies/sources/live/aws`. It only reads.

Untested in a real account: questions and answers are held against the service models of botocore and moto.
"""

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import jmespath
from botocore import exceptions, xform_name
from botocore.parsers import ResponseParserError

from infra.clouds.aws import login as aws_login
from infra.clouds.aws.login import LoggedOutError, logged_in, told
from policies.sources.live.question import ACCOUNT, REGION, Answers, Item, Question, Refusal
from policies.sources.live.snapshot import Snapshot, moment
from policies.sources.live.tables import tables
from trainstack.collect.asking import Asked, everything
from trainstack.collect.redaction import redacted

ATTEMPTS = 10
"""Of each request, before throttling counts as no answer: some three minutes of waits in all."""
_AT_ONCE = 8
# What was listed and is gone when it is asked about; each service has words of its own.
_GONE = ("NotFound", "NoSuchEntity", "NoSuchBucket", "NotFoundException", "NotFoundFault")
# By what an answer goes on, of the few lists that no paginator of the SDK knows: its name there, and in the
# next request.
_TOKENS = {
    **{name: name for name in ("NextToken", "nextToken", "NextPageToken", "Marker")},
    "LastEvaluatedGlobalTableName": "ExclusiveStartGlobalTableName",
}


def collect(region: str, clients: aws_login.Clients | None = None) -> Snapshot:
    """Everything that the account of the environment's credentials answers about a region.

    What is refused is written down as such. Raises LoggedOutError where there are no credentials.
    """
    clients = clients or aws_login.clients(ATTEMPTS)
    with logged_in():
        account = clients("sts", region).get_caller_identity()["Account"]
    asking = _Asking(account, region, clients)
    taken = moment()
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        answers = everything(tables("aws").questions, account, region, lambda asked: asking.all(asked, pool))
    return Snapshot("aws", account, region, taken, answers)


class _Asking:
    def __init__(self, account: str, region: str, clients: aws_login.Clients) -> None:
        self._account, self._region, self._clients = account, region, clients
        self._made: dict[tuple[str, str], Any] = {}
        self._where = {ACCOUNT: account, REGION: region}

    def all(self, asked: Sequence[Asked], pool: ThreadPoolExecutor) -> list[Answers]:
        """The answers to several questions, in their order."""
        for question, _ in asked:  # clients are made one at a time: sessions are not safe for threads
            self._client(question)
        return list(pool.map(lambda pair: self._heard(*pair), asked))

    def _client(self, question: Question) -> Any:
        key = (question.service, question.region or self._region)
        if key not in self._made:
            with logged_in():
                self._made[key] = self._clients(*key)
        return self._made[key]

    def _heard(self, question: Question, asked: Mapping[str, Any]) -> Answers:
        try:
            with logged_in():
                return Answers(tuple(Item(redacted(one), asked) for one in self._items(question, asked)))
        except LoggedOutError:
            raise
        except exceptions.ClientError as error:
            code, message = told(error)
            unset = code in question.unset or (question.of and code.endswith(_GONE))
            return Answers() if unset else Answers((), (self._refusal(question, code, message, asked),))
        except (exceptions.BotoCoreError, ResponseParserError) as error:
            refusal = self._refusal(question, type(error).__name__, str(error), asked)
            return Answers((), (refusal,))

    def _refusal(self, question: Question, code: str, message: str, asked: Mapping[str, Any]) -> Refusal:
        return Refusal(code, message, right_of(question, self._client(question).meta.service_model), asked)

    def _items(self, question: Question, asked: Mapping[str, Any]) -> Iterator[Any]:
        client, method = self._client(question), xform_name(question.operation)
        given = {name: self._where.get(str(value), value) for name, value in question.given.items()}
        for page in _pages(client, method, {**given, **asked}):
            if not question.key:
                yield {name: value for name, value in page.items() if name != "ResponseMetadata"}
                continue
            found = jmespath.search(question.key, page)
            yield from found if isinstance(found, list) else [found] if found is not None else []


def _pages(client: Any, method: str, parameters: Mapping[str, Any]) -> Iterator[Any]:
    """Every page of an answer; of the few lists without a paginator in the SDK, by their token."""
    if client.can_paginate(method):
        yield from client.get_paginator(method).paginate(**parameters)
        return
    further: dict[str, Any] = {}
    while True:
        page = getattr(client, method)(**parameters, **further)
        yield page
        further = {asks: page[tells] for tells, asks in _TOKENS.items() if page.get(tells)}
        if not further:
            return


def right_of(question: Question, service: Any) -> str:
    """The action of IAM that a question needs, by the SDK's model of its service."""
    return question.right or f"{service.signing_name}:{question.operation}"
